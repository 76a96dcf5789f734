package main

import (
	"cmp"
	"encoding/json"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/migrate/dstackdb"
)

// newReadDstackCommand reads a dstack server's database for `bireme import dstack`, which knows no databases.
func newReadDstackCommand() *cobra.Command {
	var dir, database, file string
	c := &cobra.Command{
		Use: "read-dstack [--dir DIR] [--database DATABASE] [--config FILE]", Args: noOperands,
		Short: "print what a dstack server holds, for bireme import",
		Long: `Read the database of a dstack server, SQLite or PostgreSQL, and print its users with their tokens, its
projects, secrets and SSH fleets as JSON, in the clear: for a pipe or a file that only you can read. Nothing is changed.
DSTACK_SERVER_DIR and DSTACK_DATABASE_URL count where the options are not given, as for the server itself.`,
		RunE: func(c *cobra.Command, _ []string) error {
			home, err := os.UserHomeDir()
			if err != nil {
				home = ""
			}
			dir = cmp.Or(dir, os.Getenv("DSTACK_SERVER_DIR"), filepath.Join(home, ".dstack", "server"))
			database = cmp.Or(database, os.Getenv("DSTACK_DATABASE_URL"), filepath.Join(dir, "data", "sqlite.db"))
			if isTerminal(c.OutOrStdout()) {
				return core.Errorf(core.Invalid, "this prints tokens and secrets: use bireme import dstack, or write them to a "+
					"file that only you can read")
			}
			keys, err := dstackdb.ReadKeys(cmp.Or(file, filepath.Join(dir, "config.yml")))
			if err != nil {
				return err
			}
			inv, err := dstackdb.Read(c.Context(), database, keys)
			if err != nil {
				return err
			}
			return json.NewEncoder(c.OutOrStdout()).Encode(inv)
		},
	}
	f := c.Flags()
	f.StringVar(&dir, "dir", "", "`folder` of the server (default ~/.dstack/server)")
	f.StringVar(&database, "database", "", "its `database`: an SQLite file or postgresql://… (default DIR/data/sqlite.db)")
	f.StringVar(&file, "config", "", "its config `file`, which has the keys (default DIR/config.yml)")
	return c
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && info.Name() != "null"
}
