package step

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/step/cgroup"
	"bireme.dev/bireme/internal/step/clock"
	"bireme.dev/bireme/internal/step/journal"
	"bireme.dev/bireme/internal/wire"
)

// job is what steps of one job share on this node: cgroup, temporary directory, prolog and epilog.
type job struct {
	k     *Keeper
	ref   wire.JobRef
	id    wire.Identity
	hooks wire.Hooks
	tmp   string // temporary directory; empty: none

	ready  chan struct{} // closed when prepared, or failed to be
	failed *failure      // read after ready
	cg     *cgroup.Job

	// Guarded by the keeper's lock.
	steps     map[*step]struct{} // not yet ended
	closing   bool
	left      bool          // it goes on elsewhere, and others may have what it had here
	gone      chan struct{} // closed when nothing is left
	suspended time.Duration // since when; zero: not
	epilogErr string
	result    [2]int // exit code and signal of the batch step
	worst     int    // of the other steps' exit codes
	stuck     string
}

// failure is why something did not come to run.
type failure struct {
	cause   wire.Cause
	code    int // exit code
	signal  int
	message string
}

func launchFailed(err error) *failure {
	return &failure{cause: wire.CauseLaunchFailed, signal: wire.LaunchFailedSignal, message: err.Error()}
}

// jobFor finds or makes the job of a launch; first tells that the caller must prepare it. The keeper's lock is held.
func (k *Keeper) jobFor(l *wire.Launch) (j *job, first bool) {
	ref := journal.JobOf(l.Key)
	if j := k.jobs[ref]; j != nil {
		return j, false
	}
	j = &job{
		k: k, ref: ref, id: l.Identity, hooks: l.Hooks,
		ready: make(chan struct{}), gone: make(chan struct{}), steps: map[*step]struct{}{},
	}
	if l.TmpBase != "" {
		j.tmp = filepath.Join(l.TmpBase, "bireme-"+strconv.FormatInt(int64(ref.Job), 10)+"."+strconv.Itoa(int(ref.Attempt)))
	}
	k.jobs[ref] = j
	return j, true
}

// leaving gives the jobs that have lost the node and are not gone. The keeper's lock is held.
func (k *Keeper) leaving() (list []*job) {
	for _, j := range k.jobs {
		if j.left {
			list = append(list, j)
		}
	}
	return list
}

// prepare makes the job's place on the node. It is called once, by the first step.
func (j *job) prepare(l *wire.Launch) {
	j.failed = j.make(l)
	close(j.ready)
}

func (j *job) make(l *wire.Launch) *failure {
	if j.k.tree != nil {
		lim := cgroup.Limits{
			CPUs: l.Limits.CPUs, Memory: l.Limits.Memory, Swap: l.Limits.Swap, PIDs: l.Limits.PIDs, Devices: l.Limits.Devices,
		}
		for _, path := range l.Limits.DenyDevices {
			rule, err := cgroup.DeviceRule(path)
			if err != nil {
				return launchFailed(err)
			}
			if rule != "" {
				lim.Deny = append(lim.Deny, rule)
			}
		}
		cg, err := j.k.tree.Get(lim)
		if err != nil {
			return launchFailed(err)
		}
		j.cg = cg
	}
	if j.tmp != "" {
		if err := j.makeTmp(); err != nil {
			return launchFailed(err)
		}
	}
	if err := j.k.volumes.Attach(j.ref, l.Volumes, j.k.root); err != nil {
		return launchFailed(err)
	}
	for _, argv := range j.hooks.Prolog {
		if err := j.k.hook(j, "prolog", argv); err != nil {
			return &failure{cause: wire.CausePrologFailed, code: 1, message: err.Error()}
		}
	}
	return nil
}

// makeTmp makes the private temporary directory. Somebody may have taken its name in a public place; then it gets
// another.
func (j *job) makeTmp() error {
	if j.k.tmps.Take(j.tmp, j.id) {
		return nil
	}
	err := unix.Mkdir(j.tmp, 0o700)
	if errors.Is(err, unix.ENOENT) {
		if err = os.MkdirAll(filepath.Dir(j.tmp), 0o755); err == nil {
			err = unix.Mkdir(j.tmp, 0o700)
		}
	}
	if errors.Is(err, unix.EEXIST) {
		var r [6]byte
		_, _ = unix.Getrandom(r[:], 0)
		j.tmp += "-" + hex.EncodeToString(r[:])
		if err := j.k.journal.Add(&journal.Record{T: journal.KindTmp, Job: &j.ref, Dir: j.tmp}); err != nil {
			return err
		}
		err = unix.Mkdir(j.tmp, 0o700)
	}
	if err == nil && j.k.root && (j.id.UID != 0 || j.id.GID != 0) {
		err = os.Lchown(j.tmp, int(j.id.UID), int(j.id.GID))
	}
	if err != nil {
		return fmt.Errorf("make temporary directory %s: %w", j.tmp, err)
	}
	return nil
}

// endOthers begins to end the other steps of a job whose script has ended, and reports whether there are any. They keep
// their grace: their traps run, and checkpoints are written.
func (j *job) endOthers(caller *step) bool {
	k := j.k
	k.mu.Lock()
	var others []*step
	for s := range j.steps {
		if s != caller && !j.closing {
			others = append(others, s)
		}
	}
	k.mu.Unlock()
	for _, s := range others {
		j.end(s)
	}
	return len(others) > 0
}

// end begins to end a step, as the job has ended.
func (j *job) end(s *step) {
	e := end{cause: wire.CauseCancelled, message: "job ended"}
	j.k.mu.Lock()
	if j.k.ending || s.l.Time.WithJob {
		e.grace = -1
	}
	j.k.mu.Unlock()
	s.terminate(e)
}

// finish ends the job on this node and returns when nothing of it is left, or cannot be helped. The calling step, if
// one calls, has ended except for the telling. Whoever comes second waits for the first; only a step does not, because
// the first waits for it: then it is false.
func (j *job) finish(caller *step) bool {
	k := j.k
	k.mu.Lock()
	if j.closing {
		k.mu.Unlock()
		if caller == nil {
			<-j.gone
		}
		return caller == nil
	}
	j.closing = true
	var others []*step
	for s := range j.steps {
		if s != caller {
			others = append(others, s)
		}
	}
	k.mu.Unlock()
	for _, s := range others {
		j.end(s)
	}
	for _, s := range others {
		<-s.over
	}
	<-j.ready
	if j.failed == nil || j.failed.cause == wire.CausePrologFailed {
		for _, argv := range j.hooks.Epilog {
			if err := k.hook(j, "epilog", argv); err != nil {
				j.epilogErr = err.Error()
				k.log.Warn("epilog", "job", j.ref.Job, "err", err)
			}
		}
	}
	if err := j.sweep(); err != nil {
		j.stuck = err.Error()
		k.log.Warn("job cannot be cleaned away", "job", j.ref.Job, "err", err)
	}
	k.mu.Lock()
	delete(k.jobs, j.ref)
	k.rest()
	close(j.gone)
	k.mu.Unlock()
	return true
}

// sweep removes the job's directories.
func (j *job) sweep() error {
	faults := []error{j.k.files.Remove(j.ref), j.k.volumes.Detach(j.ref)}
	if j.tmp != "" {
		faults = append(faults, j.k.tmps.Give(j.tmp, j.id))
	}
	if j.cg != nil {
		faults = append(faults, j.k.tree.Put(j.cg))
	}
	return errors.Join(faults...)
}

// suspend stops or continues all processes of the job.
func (j *job) suspend(on bool) error {
	k := j.k
	k.mu.Lock()
	if on == (j.suspended != 0) {
		k.mu.Unlock()
		return nil
	}
	now := clock.Now()
	var list []*step
	for s := range j.steps {
		list = append(list, s)
	}
	if on {
		j.suspended = now
	} else {
		for _, s := range list {
			s.slept += now - max(j.suspended, s.begun)
		}
		j.suspended = 0
	}
	k.mu.Unlock()
	var err error
	if j.cg != nil {
		err = j.cg.Freeze(on)
	} else {
		sig := unix.SIGCONT
		if on {
			sig = unix.SIGSTOP
		}
		for _, s := range list {
			_ = s.signal(sig, everyone)
		}
	}
	for _, s := range list {
		s.arm()
	}
	return err
}
