package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/backup"
	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/store/open"
	"bireme.dev/bireme/internal/store/sqlite"
)

// backupCommand is `biremed backup`.
type backupCommand struct {
	settings   configFlags
	cfg        *config.Config
	every      time.Duration
	keep       int
	logs       bool
	withoutKey bool
	notes      io.Writer
}

func newBackupCommand() *cobra.Command {
	var b backupCommand
	c := &cobra.Command{
		Use:   "backup FILE | --every DURATION [--keep N] FOLDER",
		Short: "copy the server's data, while it runs, into one file",
		Args:  cobra.MaximumNArgs(1),
		Long: `Copy the database as of one moment, the sealing keys and the settings into FILE, while the server runs
or not. FILE holds every secret of the cluster and is readable by you only; --without-key leaves the
sealing keys out, without which nobody can read the secrets in it. A FILE that is there is never
overwritten, and one that could not be finished is not left.

With --every it goes on until it is ended: FOLDER gets one file each time, named by its time in UTC, and
the oldest beyond --keep are removed. The unit biremed-backup does that.

SQLite needs nothing else. PostgreSQL is copied by pg_dump, which must be installed here.`,
		RunE: func(c *cobra.Command, args []string) (err error) {
			b.notes = c.ErrOrStderr()
			if len(args) != 1 {
				return core.Errorf(core.Invalid, "backup: name the FILE to write, or with --every the FOLDER")
			}
			regular := c.Flags().Changed("every")
			switch {
			case regular && b.every < time.Minute:
				return core.Errorf(core.Invalid, "--every %v: expected a minute at least", b.every)
			case c.Flags().Changed("keep") && !regular:
				return core.Errorf(core.Invalid, "--keep goes with --every")
			case b.keep < 1:
				return core.Errorf(core.Invalid, "--keep %d: expected 1 at least", b.keep)
			}
			if b.cfg, err = b.settings.load(); err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			if regular {
				return b.regularly(ctx, args[0])
			}
			return b.write(ctx, args[0])
		},
	}
	b.settings.add(c)
	f := c.Flags()
	f.DurationVar(&b.every, "every", 0, "go on, with a backup at this `interval`")
	f.IntVar(&b.keep, "keep", 24, "with --every: how many to keep")
	f.BoolVar(&b.logs, "logs", false, "also the output of jobs that the server keeps")
	f.BoolVar(&b.withoutKey, "without-key", false, "leave the sealing keys out: keep a copy of them elsewhere")
	return c
}

// regularly makes backups until it is ended. One that fails is told and tried again at the next time.
func (b *backupCommand) regularly(ctx context.Context, folder string) error {
	if st, err := os.Stat(folder); err != nil || !st.IsDir() {
		return core.Errorf(core.NotFound, "backup: %s is no folder", folder)
	}
	last, err := backup.Latest(folder)
	if err != nil {
		return err
	}
	wait := time.NewTimer(max(0, time.Until(last.Add(b.every))))
	defer wait.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-wait.C:
		}
		wait.Reset(b.every)
		err := b.write(ctx, filepath.Join(folder, backup.Name(time.Now())))
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			fmt.Fprintln(b.notes, "biremed: backup:", err)
			continue
		}
		gone, err := backup.Prune(folder, b.keep)
		for _, name := range gone {
			fmt.Fprintln(b.notes, "removed", filepath.Join(folder, name))
		}
		if err != nil {
			fmt.Fprintln(b.notes, "biremed: backup:", err)
		}
	}
}

func (b *backupCommand) write(ctx context.Context, file string) (err error) {
	if _, err := os.Lstat(file); err == nil {
		return core.Errorf(core.Conflict, "%s is there already; a backup overwrites nothing", file)
	}
	work, err := os.MkdirTemp(
		filepath.Dir(file),
		".backup-*",
	) // of mode 0700, on the disk that must hold the file anyway
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	m := backup.Manifest{Version: version, Made: time.Now().UTC().Truncate(time.Second), Cluster: b.cfg.Cluster}
	from := backup.Source{Store: filepath.Join(work, "store")}
	if err := b.copyStore(ctx, from.Store, &m); err != nil {
		return err
	}
	if !b.withoutKey {
		from.SealKey = b.cfg.SealKey()
		if _, err := os.Stat(from.SealKey); err != nil {
			return core.Errorf(core.NotFound, "the sealing keys: %v; --without-key leaves them out", err)
		}
	}
	if settings := b.settings.path(); settings != "" {
		from.Settings = settings
	}
	if b.logs {
		from.Logs = filepath.Join(b.cfg.Dir, "logs")
		if _, err := os.Stat(from.Logs); errors.Is(err, os.ErrNotExist) {
			from.Logs = ""
		}
	}
	if err := backup.Write(file, m, from); err != nil {
		return err
	}
	st, err := os.Stat(file)
	if err != nil {
		return err
	}
	fmt.Fprintf(b.notes, "wrote %s: %d bytes, cluster %s as of event %d\n", file, st.Size(), m.Cluster, m.Seq)
	return nil
}

// copyStore copies the database into a file and notes in m what the copy holds.
func (b *backupCommand) copyStore(ctx context.Context, to string, m *backup.Manifest) error {
	if file, ok := open.File(b.cfg.Store()); ok {
		m.Kind = backup.SQLite
		if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
			return core.Errorf(core.NotFound, "there is no database %s: has a server run with these settings?", file)
		}
		if err := sqlite.Copy(file, to); err != nil {
			return err
		}
		facts, faults, err := open.Inspect(ctx, "sqlite:"+to, false)
		if err == nil && len(faults) > 0 {
			err = fmt.Errorf(
				"the copy of the database is damaged, as the database may be: %s; see `biremed doctor`",
				faults[0],
			)
		}
		m.Schema, m.Seq, m.NextJob = facts.Schema, facts.Seq, facts.NextJob
		return err
	}
	m.Kind = backup.Postgres
	facts, _, err := open.Inspect(ctx, b.cfg.Store(), false)
	if err != nil {
		return err
	}
	m.Schema, m.Seq, m.NextJob = facts.Schema, facts.Seq, facts.NextJob // the copy is not older
	return postgresTool(ctx, b.cfg.Store(), "pg_dump", "--format=custom", "--no-owner", "--file="+to)
}

// postgresTool runs one of PostgreSQL's programs on the database of a URL. Everybody sees a program's arguments: the
// password goes by the environment.
func postgresTool(ctx context.Context, store, name string, words ...string) error {
	u, err := url.Parse(store)
	if err != nil {
		return errors.New("server.store: PostgreSQL's programs need a URL here, postgres://USER@HOST/NAME")
	}
	env := os.Environ()
	if password, ok := u.User.Password(); ok {
		env = append(env, "PGPASSWORD="+password)
		u.User = url.User(u.User.Username())
	}
	if q := u.Query(); q.Has("password") {
		env = append(env, "PGPASSWORD="+q.Get("password"))
		q.Del("password")
		u.RawQuery = q.Encode()
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return core.Errorf(core.NotFound, "%s is not installed here: it is in PostgreSQL's client package", name)
	}
	cmd := exec.CommandContext(ctx, path, append(words, "--dbname="+u.String())...)
	cmd.Env = env
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return nil
}
