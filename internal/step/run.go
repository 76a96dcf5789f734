package step

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/step/cgroup"
	"bireme.dev/bireme/internal/step/clock"
	"bireme.dev/bireme/internal/step/journal"
	"bireme.dev/bireme/internal/step/mpi"
	"bireme.dev/bireme/internal/wire"
)

// step is one launch on its way.
type step struct {
	k        *Keeper
	l        *wire.Launch
	key      wire.Key
	job      *job
	received time.Duration // boottime
	cg       *cgroup.Step  // nil: no cgroups
	anchor   *anchor       // nil: no PID namespace
	io       *stdio
	pmi      *mpi.Service  // nil: its tasks need none
	script   string        // where its script is; empty: none
	over     chan struct{} // closed when it has ended and all is told
	exits    chan taskExit // one for each task
	stuck    chan struct{} // closed when its processes do not die

	// Guarded by the keeper's lock.
	tasks                        []*child
	started                      bool
	flowing                      bool             // its streams take what comes
	early                        []func(*streams) // came before, in order
	earlySize                    int
	begun                        time.Duration // boottime of the start
	slept                        time.Duration // how long it has been suspended
	limit                        time.Duration
	end                          end // why it is being ended from outside
	killed                       bool
	warned                       bool
	told                         []wire.TaskExited
	exited                       *wire.Exited // set at the end
	warnT, limitT, killT, stuckT *clock.Timer
	termT                        *clock.Timer // after a warning
}

// End is a reason to end a step, and how.
type end struct {
	cause   wire.Cause
	message string
	notice  string        // written after "CANCELLED AT <time>"
	grace   time.Duration // zero: the step's own; negative: none
	warn    bool          // the signal ahead of the limit comes first
}

// taskExit is the end of one task.
type taskExit struct {
	task   int
	status unix.WaitStatus
	usage  unix.Rusage
}

// launch takes a step on, once for a key.
func (k *Keeper) launch(l *wire.Launch) {
	k.mu.Lock()
	if old := k.steps[l.Key]; old != nil {
		x, started, pids := old.exited, old.started, old.pids()
		took := old.begun - old.received
		k.mu.Unlock()
		switch {
		case x != nil:
			k.sendExited(old, x)
		case started:
			k.sendStarted(l.Key, pids, took)
		}
		return
	}
	s := &step{
		k: k, l: l, key: l.Key, received: clock.Now(), limit: l.Time.Limit,
		over: make(chan struct{}), exits: make(chan taskExit, max(1, len(l.Program.Tasks))), stuck: make(chan struct{}),
	}
	k.steps[l.Key] = s
	var first, refuse bool
	s.job, first = k.jobFor(l)
	var before []*job
	if first {
		before = k.leaving()
	}
	refuse = k.ending || s.job.closing
	s.job.steps[s] = struct{}{}
	k.work.Add(1)
	k.mu.Unlock()
	go func() {
		defer k.work.Done()
		for _, j := range before {
			<-j.gone
		}
		s.run(first, refuse)
	}()
}

// run is the life of a step.
func (s *step) run(first, refuse bool) {
	k := s.k
	rec := &journal.Launch{At: s.received, Boot: k.bootID, Tmp: s.job.tmp}
	if len(s.job.hooks.Epilog) > 0 {
		rec.Hooks = &s.job.hooks
	}
	var f *failure
	if err := k.journal.Add(&journal.Record{T: journal.KindLaunch, Key: &s.key, Launch: rec}); err != nil {
		f = launchFailed(err)
		if first {
			s.job.failed = f
			close(s.job.ready)
		}
	} else if first {
		s.job.prepare(s.l)
	}
	<-s.job.ready
	if f == nil {
		f = s.job.failed
	}
	if f == nil {
		f = s.check()
	}
	if f == nil && refuse {
		f = &failure{cause: wire.CauseCancelled, message: "the job is ending"}
	}
	if f == nil {
		f = s.start()
	}
	var tasks []taskExit
	if f == nil {
		tasks = s.wait()
	}
	s.finish(f, tasks)
}

// check refuses what no honest agent sends: the step's name becomes part of file names.
func (s *step) check() *failure {
	for _, c := range []byte(s.key.Step) {
		if c != '+' && c != '_' && c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return launchFailed(fmt.Errorf("step name %q: only letters, digits, + _ - are allowed", s.key.Step))
		}
	}
	if s.key.Job <= 0 || s.key.Step == "" {
		return launchFailed(fmt.Errorf("launch %s: it needs a job and a step", s.key))
	}
	return nil
}

// start brings the step's processes to life.
func (s *step) start() *failure {
	k := s.k
	if s.job.cg != nil {
		var err error
		k.mu.Lock() // steps of one job share its list of places
		s.cg, err = s.job.cg.Step()
		k.mu.Unlock()
		if err == nil {
			err = s.cg.LimitMemory(s.l.Limits.StepMemory)
		}
		if err != nil {
			return launchFailed(err)
		}
	}
	if k.pidns {
		a, err := k.newAnchor(k.mark(s.key))
		if err != nil {
			return launchFailed(err)
		}
		k.mu.Lock()
		s.anchor = a
		k.mu.Unlock()
	}
	if f := s.fork(); f != nil {
		if s.anchor != nil && s.cancelled() { // nobody can be born into a namespace that was killed
			return &failure{cause: wire.CauseCancelled, message: "ended while it was started"}
		}
		return f
	}
	k.mu.Lock()
	s.started, s.begun = true, clock.Now()
	pids := s.pids()
	early := s.end.cause != wire.CauseNone // told to end while it was being started
	k.mu.Unlock()
	s.arm() // before anything that an agent could hold up
	s.flow()
	k.sendStarted(s.key, pids, s.begun-s.received)
	if early {
		s.hit()
	}
	return nil
}

// wait collects the ends of the tasks.
func (s *step) wait() []taskExit {
	n := max(1, len(s.l.Program.Tasks))
	tell := len(s.l.Program.Tasks) > 0
	list := make([]taskExit, 0, n)
	for len(list) < n {
		select {
		case x := <-s.exits:
			list = append(list, x)
			if tell {
				end := wire.TaskExited{
					Key: s.key, Task: x.task, ExitCode: max(x.status.ExitStatus(), 0),
					Signal: termSignal(x.status),
				}
				s.k.mu.Lock()
				s.told = append(s.told, end)
				s.k.mu.Unlock()
				s.k.send(wire.TypeTaskExited, end)
			}
			if s.l.Program.KillOnBadExit && (x.status.ExitStatus() != 0) && len(list) < n {
				s.terminate(end{cause: wire.CauseNone, message: "task failed"})
			}
		case <-s.stuck:
			return list
		}
	}
	return list
}

// finish cleans up after the tasks, or after a start that failed, and tells the end.
func (s *step) finish(f *failure, tasks []taskExit) {
	k := s.k
	k.mu.Lock()
	for _, t := range []*clock.Timer{s.warnT, s.limitT, s.termT, s.killT} {
		k.timers.Cancel(t)
	}
	k.mu.Unlock()
	empty := s.reapRest()
	s.pmi.Close()
	s.anchor.close()
	x := &wire.Exited{Key: s.key, Elapsed: clock.Now() - s.received, At: core.At(time.Now())}
	s.account(x, f, tasks)
	if !empty {
		x.Cause, x.Message = wire.CauseUnkillable, "processes do not die: "+fmt.Sprint(s.procs())
	}
	k.timers.Cancel(s.stuckT)
	if s.script != "" && empty {
		if err := k.scripts.Free(s.l.Identity.UID, s.script); err != nil {
			k.log.Warn("remove a script", "job", s.key.Job, "err", err)
		}
	}
	payload := s.io.finish(x)
	k.mu.Lock()
	s.job.note(x)
	k.mu.Unlock()
	// While other steps end, the script's end is told already: the server asks for the rest.
	if s.l.EndsJob && !s.job.endOthers(s) && s.job.finish(s) {
		x.JobDone, x.EpilogFailed = s.job.stuck == "", s.job.epilogErr
	}
	if err := k.journal.Add(&journal.Record{T: journal.KindExit, Exit: x}); err != nil {
		k.log.Error("the end of a step is known only to this process", "job", s.key.Job, "step", s.key.Step, "err", err)
	}
	k.mu.Lock()
	s.exited = x
	delete(s.job.steps, s)
	close(s.over)
	k.mu.Unlock()
	k.send(wire.TypeExited, x, payload)
	// What a launch carried is not needed until the acknowledgement.
	s.l.Script, s.l.Files, s.l.Env = nil, nil, nil
}

// account fills in how the step ended and what it used.
func (s *step) account(x *wire.Exited, f *failure, tasks []taskExit) {
	k := s.k
	k.mu.Lock()
	why, started := s.end, s.started
	if started {
		x.Started = true
		x.Elapsed = clock.Now() - s.begun
		x.Suspended = s.slept
		if since := s.job.suspended; since != 0 {
			x.Suspended += clock.Now() - max(since, s.begun)
		}
	}
	k.mu.Unlock()
	for _, t := range tasks {
		x.ExitCode = max(x.ExitCode, t.status.ExitStatus())
		if sig := termSignal(t.status); sig > x.Signal {
			x.Signal, x.CoreDump = sig, t.status.CoreDump()
		}
		x.Usage.UserCPU += t.usage.Utime.Nano() / 1000
		x.Usage.SysCPU += t.usage.Stime.Nano() / 1000
		x.Usage.MaxRSS = max(x.Usage.MaxRSS, t.usage.Maxrss<<10)
	}
	oom := int64(0)
	if s.cg != nil && started {
		if u, err := s.cg.Usage(); err != nil {
			k.log.Warn("usage of a step", "job", s.key.Job, "step", s.key.Step, "err", err)
		} else {
			oom = u.OOMKills
			addCgroup(&x.Usage, u)
		}
	}
	if x.Cause, x.Message = why.cause, why.message; x.Message == wire.ReasonForsaken && x.ExitCode+x.Signal == 0 {
		x.Cause, x.Message = wire.CauseNone, ""
	}
	switch {
	case f != nil:
		x.Cause, x.Message, x.ExitCode, x.Signal = f.cause, f.message, f.code, f.signal
		if why.cause != wire.CauseNone && (f.cause == wire.CauseCancelled || f.cause == wire.CauseEnvFailed) {
			x.Cause, x.Message = why.cause, why.message
		}
	case oom > 0 && why.cause == wire.CauseNone:
		x.Cause = wire.CauseOOM
		x.Message = fmt.Sprintf("out of memory: the kernel killed %d process%s", oom, map[bool]string{false: "es"}[oom == 1])
		s.io.notice("Detected %d oom_kill event%s in StepId=%d.%s. Some of the step tasks have been OOM Killed.",
			oom, plural(oom), s.key.Job, s.key.Step)
	}
}

func plural(n int64) string {
	if n == 1 {
		return ""
	}
	return "s"
}

// termSignal is the signal that ended a process, zero if none.
func termSignal(w unix.WaitStatus) int {
	if w.Signaled() {
		return int(w.Signal())
	}
	return 0
}

func (s *step) pids() []int {
	list := make([]int, len(s.tasks))
	for i, c := range s.tasks {
		list[i] = c.pid
	}
	return list
}

func (k *Keeper) sendStarted(key wire.Key, pids []int, took time.Duration) {
	m := wire.Started{Key: key, Took: took}
	if len(pids) > 0 {
		m.PID = pids[0]
	}
	if len(pids) > 1 {
		m.PIDs = pids
	}
	k.send(wire.TypeStarted, m)
}

func (k *Keeper) sendExited(s *step, x *wire.Exited) {
	k.send(wire.TypeExited, x, s.io.tail(x))
}
