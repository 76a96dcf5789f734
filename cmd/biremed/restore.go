package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/agent/process"
	"bireme.dev/bireme/internal/backup"
	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server"
	"bireme.dev/bireme/internal/server/seal"
	"bireme.dev/bireme/internal/store/open"
)

// restoreCommand is `biremed restore`.
type restoreCommand struct {
	settings configFlags
	cfg      *config.Config
	force    bool
	nextJob  int64
	notes    io.Writer
	stamp    string // of what is moved aside
}

func newRestoreCommand() *cobra.Command {
	var r restoreCommand
	var list bool
	c := &cobra.Command{
		Use: "restore FILE [--force] [--next-job-id N]", Short: "put a backup back, without a server",
		Args: cobra.ExactArgs(1),
		Long: `Put back what 'biremed backup' wrote to FILE: the database, the sealing keys, and output of jobs if it is
in it. The settings in it are put back only where no settings file is. All of FILE is checked before
anything is changed. Where there is a database or another sealing key already, nothing is done without
--force, which keeps what it replaces beside it.

Stop every server first; agents and jobs may continue. docs/backup.md says what becomes of jobs, and
why the next job id has to be raised on another machine.`,
		RunE: func(c *cobra.Command, args []string) (err error) {
			r.notes = c.ErrOrStderr()
			if list {
				return describe(c.OutOrStdout(), args[0])
			}
			if r.nextJob < 0 {
				return core.Errorf(core.Invalid, "--next-job-id %d: expected a job id", r.nextJob)
			}
			return r.run(c.Context(), args[0])
		},
	}
	r.settings.add(c)
	c.Flags().
		BoolVar(&r.force, "force", false, "replace a database and sealing keys that are there; they are kept beside")
	c.Flags().Int64Var(&r.nextJob, "next-job-id", 0, "raise the next job id to `N`, past all that were given out since")
	c.Flags().BoolVar(&list, "list", false, "check FILE and show what is in it, change nothing")
	return c
}

func describe(w io.Writer, file string) error {
	m, err := backup.Check(file)
	if err != nil {
		return err
	}
	fmt.Fprintf(
		w,
		"cluster %s, %s, made %s by biremed %s, as of event %d; the next job would get id %d\n",
		m.Cluster,
		m.Kind,
		m.Made.Format(time.RFC3339),
		m.Version,
		m.Seq,
		m.NextJob,
	)
	for _, name := range []string{backup.Store, backup.SealKey, backup.Settings} {
		if x := m.Members[name]; x != nil {
			fmt.Fprintf(w, "  %-10s %d bytes\n", name, x.Size)
		} else {
			fmt.Fprintf(w, "  %-10s not in it\n", name)
		}
	}
	if m.Logs {
		fmt.Fprintln(w, "  logs")
	}
	return nil
}

func (r *restoreCommand) run(ctx context.Context, file string) (err error) {
	m, err := backup.Check(file)
	if err != nil {
		return err
	}
	if r.cfg, err = r.settings.load(); err != nil {
		return err
	}
	if err := r.refuse(ctx, m); err != nil {
		return err
	}
	dir, err := holdDir(r.cfg.Dir)
	if err != nil {
		return err
	}
	var store *process.Lock
	defer func() { err = errors.Join(err, release(store, dir)) }()
	if store, err = holdStore(r.cfg); err != nil {
		return err
	}
	r.stamp = time.Now().UTC().Format(".before-restore-20060102T150405Z")
	work, err := os.MkdirTemp(r.cfg.Dir, ".restore-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	if _, err := backup.Extract(file, work); err != nil {
		return err
	}
	if err := r.ownedBy(work); err != nil {
		return err
	}
	if err := r.place(ctx, m, work); err != nil {
		return err
	}
	fmt.Fprintf(r.notes, "cluster %s is restored, as of %s (event %d)\n", m.Cluster, m.Made.Format(time.RFC3339), m.Seq)
	return r.raiseNextJob(ctx, m)
}

// refuse finds what would stop it before anything is changed.
func (r *restoreCommand) refuse(ctx context.Context, m *backup.Manifest) error {
	file, isFile := open.File(r.cfg.Store())
	if kind := map[bool]string{true: backup.SQLite, false: backup.Postgres}[isFile]; kind != m.Kind {
		return core.Errorf(core.Invalid, "the backup is of %s, and server.store names a database of %s", m.Kind, kind)
	}
	if r.force {
		return nil
	}
	if isFile {
		if _, err := os.Stat(file); err == nil {
			return core.Errorf(core.Conflict, "there is a database already: %s; --force replaces it and keeps it beside", file)
		}
	} else if facts, _, err := open.Inspect(ctx, r.cfg.Store(), false); err != nil {
		return err
	} else if facts.Schema != 0 {
		return core.Errorf(core.Conflict, "the database that server.store names holds a cluster already (event %d); --force "+
			"replaces it, and keeps nothing of it", facts.Seq)
	}
	if m.Members[backup.SealKey] == nil {
		if _, err := seal.Open(r.cfg.SealKey(), false); err != nil {
			return core.Errorf(
				core.NotFound,
				"the backup holds no sealing keys, and %v; put the keys of its time there first, or "+
					"its secrets and its certificate authority cannot be read",
				err,
			)
		}
		return nil
	}
	if _, err := os.Stat(r.cfg.SealKey()); err == nil {
		return core.Errorf(core.Conflict, "there are sealing keys already: %s; --force replaces them and keeps them beside",
			r.cfg.SealKey())
	}
	return nil
}

// ownedBy gives what root extracted to the owner of the server's folder: the server may run as another user.
func (r *restoreCommand) ownedBy(work string) error {
	st, err := os.Stat(r.cfg.Dir)
	if err != nil {
		return err
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok || os.Geteuid() != 0 {
		return nil
	}
	return filepath.WalkDir(work, func(p string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(p, int(sys.Uid), int(sys.Gid))
	})
}

// place moves what was extracted to where the server looks for it: the keys first, the database last.
func (r *restoreCommand) place(ctx context.Context, m *backup.Manifest, work string) error {
	if m.Members[backup.SealKey] != nil {
		if err := r.replace(filepath.Join(work, backup.SealKey), r.cfg.SealKey()); err != nil {
			return err
		}
	}
	if m.Members[backup.Settings] != nil {
		if err := r.settingsBack(work); err != nil {
			return err
		}
	}
	if m.Logs {
		if err := r.replace(filepath.Join(work, "logs"), filepath.Join(r.cfg.Dir, "logs")); err != nil {
			return err
		}
	}
	copied := filepath.Join(work, backup.Store)
	file, ok := open.File(r.cfg.Store())
	if !ok {
		return postgresTool(
			ctx,
			r.cfg.Store(),
			"pg_restore",
			"--clean",
			"--if-exists",
			"--no-owner",
			"--single-transaction",
			copied,
		)
	}
	facts, faults, err := open.Inspect(ctx, "sqlite:"+copied, true)
	switch {
	case err != nil:
		return err
	case len(faults) > 0:
		return core.Errorf(core.Invalid, "the database in the backup is damaged: %s; take another", faults[0])
	case facts.Oldest > facts.Known:
		return core.Errorf(
			core.Invalid,
			"the backup is of a newer version (schema %d, this program knows up to %d): use biremed %s "+
				"or a newer one",
			facts.Schema,
			facts.Known,
			m.Version,
		)
	}
	for _, more := range []string{"-wal", "-shm"} { // of the file that goes: they would be taken for the new one's
		if err := r.aside(file + more); err != nil {
			return err
		}
		_ = os.Remove(copied + more) // looking at it may have made them; they are empty
	}
	return r.replace(copied, file)
}

// settingsBack puts the settings back where there are none.
func (r *restoreCommand) settingsBack(work string) error {
	to := r.settings.file
	if to == "" {
		to = defaultConfig
	}
	if _, err := os.Stat(to); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(work, backup.Settings), to); err != nil {
		text, rerr := os.ReadFile(filepath.Join(work, backup.Settings))
		if rerr != nil {
			return rerr
		}
		if err := os.WriteFile(to, text, 0o600); err != nil {
			return err
		}
	}
	fmt.Fprintln(r.notes, "the settings are in", to)
	return nil
}

// aside renames what is there; it is kept.
func (r *restoreCommand) aside(path string) error {
	err := os.Rename(path, path+r.stamp)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		fmt.Fprintf(r.notes, "%s is kept as %s\n", path, path+r.stamp)
	}
	return err
}

func (r *restoreCommand) replace(from, to string) error {
	if err := r.aside(to); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return os.Rename(from, to)
}

func (r *restoreCommand) raiseNextJob(ctx context.Context, m *backup.Manifest) error {
	if r.nextJob == 0 {
		fmt.Fprintf(
			r.notes,
			"the next job gets id %d at least; if jobs were submitted after the backup and this is another machine, "+
				"raise it\nbefore the server starts: biremed next-job-id N\n",
			m.NextJob,
		)
		return nil
	}
	if err := r.leaseOver(ctx); err != nil {
		return err
	}
	_, is, err := server.RaiseNextJob(ctx, r.cfg, core.JobID(r.nextJob))
	if err != nil {
		return err
	}
	fmt.Fprintf(r.notes, "the next job gets id %d\n", is)
	return nil
}

// leaseOver waits until the lease has ended that whoever led when the copy was made left in it.
func (r *restoreCommand) leaseOver(ctx context.Context) error {
	facts, _, err := open.Inspect(ctx, r.cfg.Store(), false)
	if err != nil || facts.Left <= 0 {
		return err
	}
	left := time.Duration(facts.Left) * time.Microsecond
	fmt.Fprintf(r.notes, "waiting %s for the end of the lease in the copy\n", left.Round(100*time.Millisecond))
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(left + 50*time.Millisecond):
		return nil
	}
}
