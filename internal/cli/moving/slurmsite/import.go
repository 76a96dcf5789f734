package slurmsite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/migrate/slurmdb"
)

type importOptions struct {
	app     *app.App
	file    string
	cluster string
	dryRun  bool
	json    bool
	yes     bool
	replace bool
	noJobs  bool
	noUsage bool
}

// ImportCommand is bireme import slurmdbd.
func ImportCommand(a *app.App) *cobra.Command {
	o := &importOptions{app: a}
	c := &cobra.Command{
		Use: "slurmdbd FILE|-", Short: "take over accounts, QOS, usage and jobs of a slurmdbd database",
		Args: cobra.ExactArgs(1),
		Long: `Take over what slurmdbd keeps, from a dump of its database:

    mysqldump slurm_acct_db | gzip > slurm.sql.gz
    bireme import slurmdbd slurm.sql.gz --dry-run

Accounts become projects, with associations, limits, coordinators and shares; users, QOS with
preemption, usage for the fair share, and the jobs that have ended, with their steps, under
their ids. New jobs get ids above all of them. The dump may be packed by gzip or bzip2. It is
checked as a whole before anything is changed. For administrators.

It may be given again, also with a newer dump: what is here already stays, and what is new
comes. An account, user or QOS that is otherwise here stays as it is here, unless --replace is
given. A job id that another job has here is a conflict: nothing is done then, and the exit
status is 6.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.file = args[0]
			return o.run(cmd.Context())
		},
	}
	f := c.Flags()
	f.StringVar(&o.cluster, "cluster", "", "`NAME` of the cluster, where the database holds several")
	f.BoolVar(&o.dryRun, "dry-run", false, "only tell what would be done")
	f.BoolVar(&o.json, "json", false, "print what is done as JSON")
	f.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	f.BoolVar(&o.replace, "replace", false, "accounts, associations, users and QOS become as in the dump")
	f.BoolVar(&o.noJobs, "no-jobs", false, "leave the jobs where they are; ids go on above them all the same")
	f.BoolVar(&o.noUsage, "no-usage", false, "leave the usage where it is; fair share counts what is used here")
	return c
}

// source is the dump, which is read several times.
type source struct {
	name string
	f    *os.File
	size int64
	temp bool
}

func (o *importOptions) open() (*source, error) {
	if o.file != "-" {
		f, err := os.Open(o.file)
		if err != nil {
			return nil, app.Usagef("import: %v", err)
		}
		info, err := f.Stat()
		if err == nil && info.IsDir() {
			err = fmt.Errorf("%s is a folder", o.file)
		}
		if err != nil {
			return nil, errors.Join(app.Usagef("import: %v", err), f.Close())
		}
		if !info.Mode().IsRegular() { // a pipe: it can be read once
			defer func() { _ = f.Close() }()
			return spool(o.file, f)
		}
		return &source{name: o.file, f: f, size: info.Size()}, nil
	}
	return spool("standard input", o.app.In)
}

// spool keeps what can be read only once in a file that only its user can read.
func spool(name string, r io.Reader) (*source, error) {
	f, err := os.CreateTemp("", "bireme-import-")
	if err != nil {
		return nil, err
	}
	s := &source{name: name, f: f, temp: true}
	if s.size, err = io.Copy(f, r); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), s.close())
	}
	return s, s.rewind()
}

func (s *source) close() error {
	err := s.f.Close()
	if s.temp {
		err = errors.Join(err, os.Remove(s.f.Name()))
	}
	return err
}

func (s *source) rewind() error {
	_, err := s.f.Seek(0, io.SeekStart)
	return err
}

func (s *source) fault(err error) error {
	if err == nil {
		return nil
	}
	return app.Usagef("import: %s: %v; nothing was changed", s.name, err)
}

func (o *importOptions) run(ctx context.Context) (err error) {
	src, err := o.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.close()) }()
	say := &progress{a: o.app, size: src.size}
	db, err := slurmdb.Read(src.f, slurmdb.Options{Cluster: o.cluster, Progress: say.step("reading")})
	if err != nil {
		say.end()
		return src.fault(err)
	}
	c, _, err := o.app.ConnectAdmin(ctx, "take over another system's accounts and jobs")
	if err != nil {
		return err
	}
	m := &migration{o: o, c: c, db: db, src: src, say: say}
	if err := m.prepare(ctx); err != nil {
		say.end()
		return err
	}
	say.end()
	return m.finish(ctx)
}

// finish shows what there is to do, asks, and does it.
func (m *migration) finish(ctx context.Context) error {
	o := m.o
	if !o.json {
		if err := m.write(); err != nil {
			return err
		}
	}
	conflicts := len(m.conflicts) > 0
	if !o.dryRun && !conflicts && m.changes() > 0 {
		if !o.app.Confirm(o.yes, "Take over cluster %s?", m.db.Cluster) {
			return o.app.Declined("nothing was taken over")
		}
		if err := m.do(ctx); err != nil {
			m.say.end()
			return fmt.Errorf("%w; what came before it is taken over, and the same command goes on", err)
		}
		m.say.end()
	}
	if o.json {
		if err := o.app.PrintJSON(m.report()); err != nil {
			return err
		}
	}
	switch {
	case conflicts:
		o.app.Note("%s: the ids belong to other jobs here; nothing was changed",
			app.Plural(len(m.conflicts), "conflict"))
		return &app.StatusError{Code: app.ExitConflict}
	case o.dryRun:
	case m.changes() == 0:
		o.app.Note("all of it is here already; nothing was changed")
	case !o.json:
		o.app.Note("cluster %s is taken over", m.db.Cluster)
	}
	return nil
}

// progress tells on a terminal how far it is.
type progress struct {
	a     *app.App
	size  int64
	told  int64 // bytes, of the present pass
	shown bool
}

// everyBytes is after how much of a dump progress is shown.
const everyBytes = 64 << 20

func (p *progress) step(what string) func(int64) {
	p.told = 0
	return func(n int64) {
		if n-p.told < everyBytes {
			return
		}
		p.told, p.shown = n, true
		mark := "\n"
		if p.a.Terminal {
			mark = "\r"
		}
		fmt.Fprintf(p.a.Err, "%s: %d MiB%s", what, n>>20, mark)
	}
}

func (p *progress) end() {
	if p.shown && p.a.Terminal {
		fmt.Fprintln(p.a.Err)
	}
	p.shown = false
}

// takeOver sends one batch.
func (m *migration) takeOver(ctx context.Context, in *client.TakeHistory) (*client.HistoryTaken, error) {
	in.DryRun = in.DryRun || m.o.dryRun
	return client.TakeOverHistory(ctx, m.c, in)
}
