package step

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/step/cgroup"
	"bireme.dev/bireme/internal/step/clock"
	"bireme.dev/bireme/internal/step/intake"
	"bireme.dev/bireme/internal/step/journal"
	"bireme.dev/bireme/internal/wire"
)

// A keeper upgrades by executing its new program in its own process: children, adopted ones too, stay its children.
// What the old program knows goes to the new one through a memory file; open files stay open.

// stateVariable names the descriptor of that file to the new program.
const stateVariable = "BIREME_STEP_STATE"

// saved is a keeper at rest.
type saved struct {
	Instance string      `json:"instance"`
	Lock     int         `json:"lock"`     // descriptor
	Listener int         `json:"listener"` // descriptor
	Scripts  int         `json:"scripts"`  // places numbered so far
	Jobs     []savedJob  `json:"jobs"`
	Steps    []savedStep `json:"steps"`
}

type savedJob struct {
	Ref       wire.JobRef   `json:"ref"`
	Identity  wire.Identity `json:"identity"`
	Hooks     wire.Hooks    `json:"hooks"`
	Tmp       string        `json:"tmp,omitempty"`
	Suspended time.Duration `json:"suspended,omitempty"`
	Failed    string        `json:"failed,omitempty"`
	Cgroup    *cgroup.Saved `json:"cgroup,omitempty"`
}

type savedStep struct {
	Launch   *wire.Launch  `json:"launch"`
	PIDs     []int         `json:"pids,omitempty"`
	Place    int           `json:"place"`            // index of its cgroup in the job's
	Anchor   int           `json:"anchor,omitempty"` // first process of its namespace
	Script   string        `json:"script,omitempty"`
	Received time.Duration `json:"received"`
	Begun    time.Duration `json:"begun"`
	Slept    time.Duration `json:"slept,omitempty"`
	Limit    time.Duration `json:"limit,omitempty"`
	Cause    wire.Cause    `json:"cause,omitempty"` // why it is being ended
	Message  string        `json:"message,omitempty"`
	Grace    time.Duration `json:"grace,omitempty"`
	KillAt   time.Duration `json:"kill_at,omitempty"`
	Killed   bool          `json:"killed,omitempty"`
	Warned   bool          `json:"warned,omitempty"`
	Exited   *wire.Exited  `json:"exited,omitempty"`
	Log      string        `json:"log,omitempty"`
	Out      savedFile     `json:"out"`
	Err      savedFile     `json:"err"`
	Intake   *intake.Saved `json:"intake,omitempty"`
}

type savedFile struct {
	FD   int    `json:"fd"`
	Path string `json:"path,omitempty"`
	Dev  uint64 `json:"dev,omitempty"`
	Ino  uint64 `json:"ino,omitempty"`
	Base int64  `json:"base,omitempty"`
	File bool   `json:"file,omitempty"`
}

// restTimeout is how long an upgrade waits for steps between two states.
const restTimeout = 5 * time.Second

// handover passes what a keeper holds to another program, which takes the place of its own by exec.
type handover struct{ k *Keeper }

// upgrade replaces the program. It returns only if that failed. No message is read meanwhile, so nothing new begins.
func (h handover) upgrade(m wire.Upgrade) error {
	k := h.k
	path := m.Path
	if path == "" {
		var err error
		if path, err = os.Executable(); err != nil {
			return err
		}
	}
	if err := unix.Access(path, unix.X_OK); err != nil {
		return core.Errorf(core.Invalid, "%s: %s", path, err)
	}
	deadline := clock.Now() + restTimeout
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		k.mu.Lock()
		busy := h.moving()
		if busy == "" {
			break // the lock stays ours: nothing moves until the new program runs
		}
		k.mu.Unlock()
		if clock.Now() > deadline {
			return core.Errorf(core.Conflict, "not now: %s", busy)
		}
		<-tick.C
	}
	defer k.mu.Unlock()
	k.purge()
	if k.tree != nil {
		if err := k.tree.Purge(); err != nil {
			return err
		}
	}
	state, keep, err := h.save()
	defer func() { // the exec failed: jobs must not get these
		for _, fd := range keep {
			unix.CloseOnExec(fd)
		}
		for _, s := range k.steps {
			if s.io != nil && s.io.intake != nil {
				s.io.intake.Resume()
			}
		}
	}()
	if err != nil {
		return err
	}
	fd, err := memfile(state)
	if err != nil {
		return err
	}
	k.log.Info("upgrade", "program", path)
	env := append(os.Environ(), stateVariable+"="+strconv.Itoa(fd))
	err = syscall.Exec(path, append([]string{path}, os.Args[1:]...), env)
	_ = unix.Close(fd)
	return fmt.Errorf("execute %s: %w", path, err)
}

// moving names something that cannot be handed over at this moment. The lock is held.
func (h handover) moving() string {
	k := h.k
	for _, j := range k.jobs {
		if j.closing {
			return fmt.Sprintf("job %d is ending", j.ref.Job)
		}
	}
	for key, s := range k.steps {
		switch {
		case s.exited != nil:
		case !s.started:
			return fmt.Sprintf("step %s is starting", key)
		case s.io.streams != nil || s.pmi != nil:
			return fmt.Sprintf("step %s has its standard streams here", key)
		default:
			for _, c := range s.tasks {
				if k.reaper.children[c.pid] != c {
					return fmt.Sprintf("step %s is ending", key)
				}
			}
		}
	}
	return ""
}

// save describes the keeper and keeps open what the new program needs. The lock is held.
func (h handover) save() (*saved, []int, error) {
	k := h.k
	l, err := k.listener.File() // a copy; the new program has only this one
	if err != nil {
		return nil, nil, err
	}
	st := &saved{Instance: k.instance, Lock: int(k.lock.Fd()), Listener: int(l.Fd()), Scripts: k.scripts.Next}
	keep := []int{st.Lock, st.Listener}
	for _, j := range k.jobs {
		sj := savedJob{Ref: j.ref, Identity: j.id, Hooks: j.hooks, Tmp: j.tmp, Suspended: j.suspended}
		if j.failed != nil {
			sj.Failed = j.failed.message
		}
		if j.cg != nil {
			c := j.cg.Save()
			sj.Cgroup = &c
		}
		st.Jobs = append(st.Jobs, sj)
	}
	for _, s := range k.steps {
		ss := savedStep{
			Launch: s.l, PIDs: s.pids(), Script: s.script, Received: s.received, Begun: s.begun, Slept: s.slept, Limit: s.limit,
			Cause: s.end.cause, Message: s.end.message, Grace: s.end.grace, Killed: s.killed, Warned: s.warned, Exited: s.exited,
			Out: savedFile{FD: -1}, Err: savedFile{FD: -1},
		}
		if s.killT != nil {
			ss.KillAt = s.killT.Due()
		}
		if s.cg != nil {
			ss.Place = s.cg.Index()
		}
		if s.anchor != nil {
			ss.Anchor = s.anchor.pid
		}
		if s.io != nil {
			if in := s.io.intake; in != nil {
				ss.Intake = in.Pause() // until the exec, or until it has failed
				if ss.Intake.Pipe >= 0 {
					keep = append(keep, ss.Intake.Pipe)
				}
			}
			ss.Log, ss.Out, ss.Err = s.io.log, s.io.out.save(), s.io.err.save()
			for _, fd := range []int{ss.Out.FD, ss.Err.FD} {
				if fd >= 0 && !slices.Contains(keep, fd) {
					keep = append(keep, fd)
				}
			}
		}
		st.Steps = append(st.Steps, ss)
	}
	for _, fd := range keep {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
			return nil, keep, err
		}
	}
	return st, keep, nil
}

func (l *logFile) save() savedFile {
	return savedFile{FD: l.fd, Path: l.path, Dev: l.dev, Ino: l.ino, Base: l.base, File: l.file}
}

func (s savedFile) load() logFile {
	if s.FD >= 0 {
		unix.CloseOnExec(s.FD)
	}
	return logFile{fd: s.FD, path: s.Path, dev: s.Dev, ino: s.Ino, base: s.Base, file: s.File}
}

// memfile puts the state where the next program finds it.
func memfile(st *saved) (int, error) {
	b, err := json.Marshal(st)
	if err != nil {
		return -1, err
	}
	fd, err := unix.MemfdCreate("bireme-step", 0) // open across exec
	if err != nil {
		return -1, os.NewSyscallError("memfd_create", err)
	}
	for len(b) > 0 {
		n, err := unix.Write(fd, b)
		if err != nil {
			_ = unix.Close(fd)
			return -1, err
		}
		b = b[n:]
	}
	return fd, nil
}

// inherited reads the state of the program before, if there was one.
func inherited() (*saved, error) {
	text := os.Getenv(stateVariable)
	if text == "" {
		return nil, nil
	}
	_ = os.Unsetenv(stateVariable) // jobs have no business with it
	fd, err := strconv.Atoi(text)
	if err != nil {
		return nil, fmt.Errorf("%s=%s: %w", stateVariable, text, err)
	}
	f := os.NewFile(uintptr(fd), "state")
	defer f.Close()
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	st := new(saved)
	if err := json.NewDecoder(f).Decode(st); err != nil {
		return nil, fmt.Errorf("state of the program before: %w", err)
	}
	return st, nil
}

// resume takes over from the program before.
func (h handover) resume(st *saved) error {
	k := h.k
	k.instance, k.scripts.Next = st.Instance, st.Scripts
	unix.CloseOnExec(st.Lock)
	k.lock = os.NewFile(uintptr(st.Lock), "lock")
	err := k.openJournal()
	if err != nil {
		return err
	}
	if err := k.openTree(); err != nil {
		return err
	}
	places := map[wire.JobRef][]*cgroup.Step{}
	for _, sj := range st.Jobs {
		j := &job{
			k: k, ref: sj.Ref, id: sj.Identity, hooks: sj.Hooks, tmp: sj.Tmp, suspended: sj.Suspended,
			ready: closedChan, gone: make(chan struct{}), steps: map[*step]struct{}{},
		}
		if sj.Failed != "" {
			j.failed = launchFailed(errors.New(sj.Failed))
		}
		if sj.Cgroup != nil && k.tree != nil {
			if j.cg, places[j.ref], err = k.tree.Adopt(*sj.Cgroup); err != nil {
				return err
			}
		}
		k.jobs[j.ref] = j
	}
	for _, ss := range st.Steps {
		h.resumeStep(ss, places)
	}
	unix.CloseOnExec(st.Listener)
	f := os.NewFile(uintptr(st.Listener), "listener")
	defer f.Close()
	l, err := net.FileListener(f)
	if err != nil {
		return err
	}
	k.listener = l.(*net.UnixListener)
	k.listener.SetUnlinkOnClose(true)
	return nil
}

func (h handover) resumeStep(ss savedStep, places map[wire.JobRef][]*cgroup.Step) {
	k := h.k
	l := ss.Launch
	s := &step{
		k: k, l: l, key: l.Key, job: k.jobs[journal.JobOf(l.Key)], received: ss.Received, script: ss.Script,
		over: make(chan struct{}), exits: make(chan taskExit, max(1, len(l.Program.Tasks))), stuck: make(chan struct{}),
		started: ss.Begun != 0, begun: ss.Begun, slept: ss.Slept, limit: ss.Limit, killed: ss.Killed, warned: ss.Warned,
		end: end{cause: ss.Cause, message: ss.Message, grace: ss.Grace}, exited: ss.Exited,
	}
	s.io = newStdio(s)
	s.io.log, s.io.out, s.io.err = ss.Log, ss.Out.load(), ss.Err.load()
	if ss.Intake != nil {
		var err error
		if s.io.intake, err = ss.Intake.Load(&k.outputs, l.Stdio.Bounds, s.io.out.fd); err != nil {
			k.log.Error("the output of a step is lost", "job", s.key.Job, "step", s.key.Step, "err", err)
		}
	}
	k.steps[s.key] = s
	if s.exited != nil {
		close(s.over)
		if s.job == nil {
			s.job = &job{ref: journal.JobOf(l.Key)}
		}
		return
	}
	if p := places[s.job.ref]; ss.Place < len(p) {
		s.cg = p[ss.Place]
	}
	s.job.steps[s] = struct{}{}
	if ss.Anchor != 0 {
		s.anchor = k.anchorOf()
		s.anchor.pid = ss.Anchor
		k.reaper.children[ss.Anchor] = &s.anchor.child
	}
	for i, pid := range ss.PIDs {
		c := s.child(i)
		c.pid = pid
		k.reaper.children[pid] = c
		s.tasks = append(s.tasks, c)
	}
	// What the program before had decided it may not have done yet.
	switch {
	case s.killed:
		s.stuckT = k.timers.At(clock.Now()+s.patience(), func() { close(s.stuck) })
		k.work.Go(s.killOnce)
	case ss.KillAt != 0:
		s.killT = k.timers.At(ss.KillAt, s.kill)
	case s.end.cause != wire.CauseNone:
		k.work.Go(s.hit)
	}
	s.arm()
	k.work.Go(func() { s.finish(nil, s.wait()) })
}
