package moving

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/cli/moving/slurmsite"
	"bireme.dev/bireme/internal/migrate/inventory"
)

type importOptions struct {
	app       *app.App
	exe       func() (string, error)
	dir       string
	database  string
	config    string
	inventory string
	dryRun    bool
	json      bool
	yes       bool
	sameNames bool
	noFleets  bool
}

// ImportCommand is bireme import; exe gives the path of this program, beside which biremed lies.
func ImportCommand(a *app.App, exe func() (string, error)) *cobra.Command {
	c := &cobra.Command{
		Use: "import", Short: "take over from another system", Args: app.NoSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(importDstackCommand(a, exe), slurmsite.ImportCommand(a))
	return c
}

func importDstackCommand(a *app.App, exe func() (string, error)) *cobra.Command {
	o := &importOptions{app: a, exe: exe}
	c := &cobra.Command{
		Use: "dstack", Short: "take over users, projects, secrets and fleets of a dstack server", Args: cobra.NoArgs,
		Long: `Take over what a dstack server holds: users with their tokens and keys, projects with
their members, secrets, and fleets of SSH hosts. Its clients then change the server's
address and nothing else. The database is read, never changed; it is found as the server
finds it (~/.dstack/server, DSTACK_SERVER_DIR, DSTACK_DATABASE_URL), by biremed, which
lies beside this program. For administrators; give it on the server's machine.

It may be given again: what is here already stays. A name that is taken by another is a
conflict, listed and left alone; --same-names says that equal names are the same people
and projects. The exit status is 6 where there are conflicts.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	f := c.Flags()
	f.StringVar(&o.dir, "dir", "", "`FOLDER` of the dstack server (~/.dstack/server)")
	f.StringVar(&o.database, "database", "", "its `DATABASE`: a file of SQLite or postgresql://…")
	f.StringVar(&o.config, "config", "", "its config `FILE`, which has the encryption keys")
	f.StringVar(&o.inventory, "inventory", "", "take it from `FILE`, made by biremed read-dstack; - for standard input")
	f.BoolVar(&o.dryRun, "dry-run", false, "only tell what would be done")
	f.BoolVar(&o.json, "json", false, "print what is done as JSON")
	f.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	f.BoolVar(&o.sameNames, "same-names", false, "users and projects of the same name are the same")
	f.BoolVar(&o.noFleets, "no-fleets", false, "leave fleets where they are")
	c.MarkFlagsMutuallyExclusive("inventory", "dir")
	c.MarkFlagsMutuallyExclusive("inventory", "database")
	return c
}

func (o *importOptions) run(ctx context.Context) error {
	inv, err := o.read(ctx)
	if err != nil {
		return err
	}
	c, me, err := o.app.ConnectAdmin(ctx, "take over another server's users")
	if err != nil {
		return err
	}
	if me.Token != "" && !o.dryRun {
		o.app.Note("tokens that are taken over by a token (%s) end with it; use the server's own socket to have them last",
			me.Token)
	}
	p := &plan{c: c, o: o, inv: inv}
	if err := p.make(ctx); err != nil {
		return err
	}
	if !o.dryRun && p.changes() > 0 {
		if !o.json {
			if err := p.write(); err != nil {
				return err
			}
		}
		if !o.app.Confirm(o.yes, "Take over %d things?", p.changes()) {
			return o.app.Declined("nothing was taken over")
		}
		err = p.do(ctx)
	} else if !o.json {
		err = p.write()
	}
	return errors.Join(err, p.report())
}

// read reads what the other server holds: from a file, or by biremed.
func (o *importOptions) read(ctx context.Context) (*inventory.Inventory, error) {
	var data []byte
	var err error
	if o.inventory != "" {
		data, err = o.app.ReadFile(o.inventory)
	} else {
		data, err = o.ask(ctx)
	}
	if err != nil {
		return nil, err
	}
	inv := &inventory.Inventory{}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	err = d.Decode(inv)
	if err == nil && inv.Users == nil {
		err = errors.New(`it has no "users"`)
	}
	if err != nil {
		from := "what biremed read-dstack wrote"
		if o.inventory != "" {
			from = o.inventory
		}
		return nil, app.Usagef("import: %s is not an inventory that `biremed read-dstack` wrote: %s", from, jsonFault(err))
	}
	return inv, nil
}

// jsonFault words what is wrong with a JSON document, without names of this program's types.
func jsonFault(err error) string {
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &kind) && kind.Field == "":
		return "it is a JSON " + kind.Value + ", not an object"
	case errors.As(err, &kind):
		return fmt.Sprintf("%q cannot be a %s", kind.Field, kind.Value)
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

// ask runs biremed, which knows databases. A URL may have a password: it is handed over in the environment.
func (o *importOptions) ask(ctx context.Context) ([]byte, error) {
	program := "biremed"
	if self, err := o.exe(); err == nil {
		if beside := filepath.Join(filepath.Dir(self), program); isFile(beside) {
			program = beside
		}
	}
	cmd := exec.CommandContext(ctx, program, "read-dstack")
	cmd.Env = os.Environ()
	if o.dir != "" {
		cmd.Args = append(cmd.Args, "--dir", o.dir)
		if o.database == "" { // the folder's own, whatever the environment says
			cmd.Args = append(cmd.Args, "--database", filepath.Join(o.dir, "data", "sqlite.db"))
		}
	}
	if o.config != "" {
		cmd.Args = append(cmd.Args, "--config", o.config)
	}
	if o.database != "" {
		cmd.Env = append(cmd.Env, "DSTACK_DATABASE_URL="+o.database)
	}
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problem
	if err := cmd.Run(); err != nil {
		text := strings.TrimPrefix(strings.TrimSpace(problem.String()), "biremed: ")
		if text == "" {
			text = fmt.Sprintf("%s read-dstack: %v", program, err)
		}
		return nil, app.Usagef("import: %s", text)
	}
	return out.Bytes(), nil
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// Row is one thing of the other server and what becomes of it.
type Row struct {
	Kind    string `json:"kind"` // user, token, ssh_key, public_key, project, member, secret, fleet, or what is left
	Project string `json:"project,omitempty"`
	Name    string `json:"name"`
	Action  string `json:"action"`
	Note    string `json:"note,omitempty"`
}

// What becomes of a thing.
const (
	actTake     = "take"     // it is taken over
	actSame     = "same"     // it is here already
	actConflict = "conflict" // it is not taken over: another has the name, or it cannot be
	actLeave    = "leave"    // nobody takes over such things
	actDone     = "taken"    // it was taken over
	actFailed   = "failed"
)

// report prints the rows as JSON, and gives the exit status.
func (p *plan) report() error {
	if p.o.json {
		if err := p.o.app.PrintJSON(struct {
			Rows []Row `json:"rows"`
		}{p.rows}); err != nil {
			return err
		}
	}
	conflicts := 0
	for _, r := range p.rows {
		if r.Action == actConflict {
			conflicts++
		}
	}
	switch {
	case conflicts > 0:
		p.o.app.Note("%s left alone: see the notes", app.Plural(int32(conflicts), "conflict"))
		return &app.StatusError{Code: app.ExitConflict}
	case p.changes() == 0 && !p.o.dryRun && !p.ran:
		p.o.app.Note("all of it is here already; nothing was changed")
	}
	return nil
}

// write prints the rows as a table.
func (p *plan) write() error {
	t := app.Table{{"KIND", "PROJECT", "NAME", "ACTION", "NOTE"}}
	dash := func(s string) string {
		if s == "" {
			return "-"
		}
		return s
	}
	for _, r := range p.rows {
		t.Row(r.Kind, dash(r.Project), r.Name, r.Action, dash(r.Note))
	}
	return t.Write(p.o.app.Out)
}
