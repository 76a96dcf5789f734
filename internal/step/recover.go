package step

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/step/cgroup"
	"bireme.dev/bireme/internal/step/clock"
	"bireme.dev/bireme/internal/step/journal"
	"bireme.dev/bireme/internal/step/spool"
	"bireme.dev/bireme/internal/wire"
)

// recovery cleans up after a keeper that died in the same directory.
type recovery struct{ k *Keeper }

// filesWait is how long the start waits for the files of runs to be removed from their users' homes.
const filesWait = 10 * time.Second

func (r recovery) removeFiles() {
	ctx, cancel := context.WithTimeout(context.Background(), filesWait)
	defer cancel()
	if err := r.k.files.RemoveAll(ctx); err != nil {
		r.k.log.Warn("clean up after the keeper before", "err", err)
	}
}

// recover cleans up after a keeper that died here, and takes over what it had to tell.
func (r recovery) recover() error {
	k := r.k
	dirs, err := cgroup.Load(k.treeFile())
	if err != nil {
		return err
	}
	if len(dirs) > 0 {
		ctx, cancel := context.WithTimeout(context.Background(), k.cfg.Unkillable)
		defer cancel()
		if err := cgroup.Clean(ctx, dirs); err != nil {
			// The node must not take jobs while old ones may run, so this is the end of the start.
			return fmt.Errorf("clean up after the keeper before: %w", err)
		}
	}
	if err := k.openJournal(); err != nil {
		return err
	}
	lost := map[wire.Key]*wire.Exited{}
	for key, e := range k.journal.Live {
		if e.Exit == nil {
			lost[key] = r.lost(key, e.Launch)
		}
	}
	r.removeFiles()
	if err := k.volumes.DetachAll(); err != nil {
		return fmt.Errorf("unmount volumes of jobs that are dead: %w", err) // another node could be given them
	}
	// Before the ends are recorded: they say that the job is gone, and then nobody would look for its directories.
	for ref, rec := range k.journal.Jobs {
		if err := r.sweepLost(ref, rec); err != nil {
			k.log.Warn("clean up after the keeper before", "job", ref.Job, "err", err)
		}
		if err := k.journal.Add(&journal.Record{T: journal.KindDone, Job: &ref}); err != nil {
			return err
		}
	}
	for _, x := range lost {
		if err := k.journal.Add(&journal.Record{T: journal.KindExit, Exit: x}); err != nil {
			return err
		}
	}
	for key, e := range k.journal.Live {
		k.steps[key] = &step{
			k: k, l: &wire.Launch{Key: key}, key: key, exited: e.Exit, over: closedChan,
			job: &job{ref: journal.JobOf(key)},
		}
		if e.Exit.LogSize > 0 {
			k.steps[key].io = r.oldLog(key)
		}
	}
	if err := k.tmps.Recover(); err != nil {
		return err
	}
	return r.sweepSpool()
}

// openJournal opens the keeper's journal and tells what is wrong with it.
func (k *Keeper) openJournal() error {
	var err error
	if k.journal, err = journal.Open(filepath.Join(k.cfg.Dir, "journal")); err != nil {
		return err
	}
	if bad := k.journal.Bad; len(bad) > 0 {
		k.log.Error("journal is damaged: ends of steps may be lost", "lines", len(bad), "kept", k.journal.Path+".bad",
			"err", bad[0])
	}
	return nil
}

var closedChan = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// lost makes the end of a step whose keeper died. Its processes are dead: by their cgroup, or by their mark.
func (r recovery) lost(key wire.Key, l journal.Launch) *wire.Exited {
	k := r.k
	x := &wire.Exited{
		Key: key, Signal: int(unix.SIGKILL), Cause: wire.CauseKeeperLost, JobDone: true,
		Message: "the step keeper ended before the job did, and the job's processes were killed",
	}
	if l.Boot == k.bootID {
		x.Elapsed = clock.Now() - l.At
		for range 100 { // each round kills what the round before was too early for
			list := markedProcs(k.mark(key), nil)
			for _, pid := range list {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
			if len(list) == 0 {
				break
			}
		}
	} else {
		x.Message = "the node was restarted"
	}
	if st, err := os.Stat(filepath.Join(k.logDir(), key.String())); err == nil {
		x.LogSize = st.Size()
	}
	return x
}

// oldLog finds the log of a step that ended under the keeper before.
func (r recovery) oldLog(key wire.Key) *stdio {
	k := r.k
	path := filepath.Join(k.logDir(), key.String())
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil
	}
	file := logFile{fd: -1, path: path, dev: st.Dev, ino: st.Ino, file: true}
	return &stdio{spec: &wire.Stdio{}, log: path, out: file, err: file}
}

// sweepLost runs the epilog of a job whose keeper died and removes its directories.
func (r recovery) sweepLost(ref wire.JobRef, rec *journal.Launch) error {
	k := r.k
	j := &job{k: k, ref: ref, tmp: rec.Tmp}
	var faults []error
	if rec.Hooks != nil {
		j.hooks = *rec.Hooks
		done := make(chan struct{})
		go func() { defer close(done); k.reaper.run() }()
		for _, argv := range j.hooks.Epilog {
			faults = append(faults, k.hook(j, "epilog", argv))
		}
		k.reaper.close()
		<-done
		k.reaper.closing = false
	}
	if rec.Tmp != "" {
		faults = append(faults, spool.RemoveTree(rec.Tmp))
	}
	return errors.Join(faults...)
}

// sweepSpool removes scripts and logs that nobody will ask for.
func (r recovery) sweepSpool() error {
	k := r.k
	old, err := os.ReadDir(k.cfg.Spool)
	if err != nil {
		return err
	}
	for _, e := range old {
		if err := os.RemoveAll(filepath.Join(k.cfg.Spool, e.Name())); err != nil {
			return err
		}
	}
	logs, err := os.ReadDir(k.logDir())
	if err != nil {
		return err
	}
	wanted := map[string]bool{}
	for key := range k.steps {
		wanted[key.String()] = true
	}
	for _, e := range logs {
		if !wanted[e.Name()] {
			_ = os.Remove(filepath.Join(k.logDir(), e.Name()))
		}
	}
	return nil
}
