// Package dstackdbtest makes databases of dstack servers for tests, out of recorded ones.
package dstackdbtest

import (
	"context"
	"database/sql"
	_ "embed"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite" // the driver sqlite
)

//go:embed server-0.22.5.sql
var tables string

//go:embed config.yml
var config []byte

// What the recorded server holds.
const (
	AdminToken = "adm1n-t0ken-of-the-real-server"
	CarlToken  = "b36ca629-789d-4d1c-8185-164a6757f959" // of a user of project vision, sealed by an AES key
)

// Make lays the folder of a server out in dir: its config.yml, and a database of the recorded tables and of what more
// says.
func Make(ctx context.Context, dir string, more ...string) error {
	if err := os.MkdirAll(filepath.Join(dir, "data"), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "config.yml"), config, 0o600); err != nil {
		return err
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, "data", "sqlite.db"))
	if err != nil {
		return err
	}
	defer db.Close()
	for _, s := range append([]string{tables}, more...) {
		if _, err := db.ExecContext(ctx, s); err != nil {
			return err
		}
	}
	return nil
}
