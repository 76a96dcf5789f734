package step

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/step/clock"
	"bireme.dev/bireme/internal/wire"
)

// audience says who gets a signal.
type audience int

const (
	everyone  audience = iota
	shellOnly          // the task itself, not its children
)

// arm sets the deadlines of a step from its limit, its start and the time it was suspended.
func (s *step) arm() {
	k := s.k
	k.mu.Lock()
	defer k.mu.Unlock()
	k.timers.Cancel(s.warnT)
	k.timers.Cancel(s.limitT)
	s.warnT, s.limitT = nil, nil
	if !s.started || s.exited != nil || s.limit <= 0 || s.job.suspended != 0 || s.end.cause != wire.CauseNone {
		return
	}
	at := s.begun + s.slept + s.limit
	s.limitT = k.timers.At(at, func() {
		s.terminate(end{cause: wire.CauseTimeout, message: "time limit reached", notice: "DUE TO TIME LIMIT"})
	})
	if s.l.Time.WarnSignal > 0 && !s.warned {
		s.warnT = k.timers.At(at-s.l.Time.WarnBefore, s.warn)
	}
}

// warn sends the signal that a job asked for ahead of its limit.
func (s *step) warn() {
	s.k.mu.Lock()
	again := s.warned
	s.warned = true
	s.k.mu.Unlock()
	if again {
		return
	}
	sig := unix.Signal(s.l.Time.WarnSignal)
	batch := s.key.Step == wire.BatchStep
	switch {
	case s.l.Time.WarnAll:
		_ = s.signal(sig, everyone)
	case batch && s.l.Time.WarnBatch:
		_ = s.signal(sig, shellOnly)
	case batch || s.l.Time.WarnBatch:
		// As Slurm: without B: every step but the batch shell, with it nothing but that.
	default:
		_ = s.signal(sig, everyone)
	}
}

// terminate begins to end a step: TERM, after a grace KILL. The first reason counts; a later one may only hasten it.
func (s *step) terminate(e end) {
	k := s.k
	k.mu.Lock()
	if s.exited != nil || s.killed {
		k.mu.Unlock()
		return
	}
	if e.grace == 0 {
		e.grace = s.l.Time.KillGrace
	}
	if e.grace == 0 {
		e.grace = 30 * time.Second
	}
	first := s.end == (end{})
	if first {
		s.end = e
	}
	s.end.grace = min(s.end.grace, e.grace)
	started, cg, anchor := s.started, s.cg, s.anchor
	again := !first && e.grace >= 0
	k.mu.Unlock()
	if !started || again {
		if cg != nil && !started {
			_ = cg.Kill() // a login shell at work; start looks again once it has processes
		}
		if anchor != nil && !started {
			_ = k.reaper.signal(&anchor.child, unix.SIGKILL)
		}
		return
	}
	if first {
		s.sayCancelled(e.notice)
	}
	s.hit()
}

// sayCancelled writes the line users look for.
func (s *step) sayCancelled(notice string) {
	if notice != "" {
		notice = " " + notice
	}
	if s.key.Step == wire.BatchStep {
		s.io.notice("*** JOB %d ON %s CANCELLED AT %s%s ***", s.key.Job, s.key.Node, stamp(), notice)
		return
	}
	s.io.notice("*** STEP %d.%s ON %s CANCELLED AT %s%s ***", s.key.Job, s.key.Step, s.key.Node, stamp(), notice)
}

// stamp is the time of day as Slurm writes it.
func stamp() string { return time.Now().Format("2006-01-02T15:04:05") }

// lastGrace is what is left of the grace when a step that was warned of its end first is told to end.
const lastGrace = 5 * time.Second

// hit carries out what terminate decided.
func (s *step) hit() {
	k := s.k
	k.mu.Lock()
	grace := s.end.grace
	if grace < 0 {
		k.mu.Unlock()
		s.kill()
		return
	}
	if s.killT == nil {
		s.killT = k.timers.At(clock.Now()+grace, s.kill)
	}
	frozen := s.job.suspended != 0
	warn := s.end.warn && s.l.Time.WarnSignal > 0 && !s.warned
	if warn {
		s.termT = k.timers.At(clock.Now()+grace-min(lastGrace, grace/2), s.hit) // by then it has been warned
	}
	k.mu.Unlock()
	if frozen {
		_ = s.job.suspend(false) // what is frozen gets no signal
	}
	if warn {
		_ = s.signal(unix.SIGCONT, everyone)
		s.warn()
		return
	}
	_ = s.signal(unix.SIGCONT, everyone)
	_ = s.signal(unix.SIGTERM, everyone)
}

// kill is the last word.
func (s *step) kill() {
	k := s.k
	k.mu.Lock()
	if s.exited != nil || s.killed {
		k.mu.Unlock()
		return
	}
	s.killed = true
	frozen := s.job.suspended != 0
	s.stuckT = k.timers.At(clock.Now()+s.patience(), func() { close(s.stuck) })
	k.mu.Unlock()
	if frozen {
		_ = s.job.suspend(false)
	}
	s.killOnce()
}

// patience is how long processes may take to die.
func (s *step) patience() time.Duration {
	if d := s.l.Time.Unkillable; d > 0 {
		return d
	}
	return s.k.cfg.Unkillable
}

// killOnce tells every process of the step to die.
func (s *step) killOnce() {
	if s.cg != nil {
		if err := s.cg.Kill(); err != nil {
			s.k.log.Warn("kill cgroup", "job", s.key.Job, "step", s.key.Step, "err", err)
		}
		return
	}
	if s.anchor != nil {
		_ = s.k.reaper.signal(&s.anchor.child, unix.SIGKILL) // and the kernel all the others
		return
	}
	_ = s.signal(unix.SIGKILL, everyone)
}

// reapRest makes sure that nothing of the step is left and reports whether it succeeded.
func (s *step) reapRest() bool {
	if s.empty() {
		return true
	}
	deadline := clock.Now() + s.patience()
	tick := time.NewTimer(0)
	defer tick.Stop()
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		s.killOnce()
		if s.empty() {
			return true
		}
		if clock.Now() > deadline {
			return false
		}
		tick.Reset(wait)
		<-tick.C
	}
}

func (s *step) empty() bool {
	if s.cg != nil {
		empty, err := s.cg.Empty()
		return empty && err == nil
	}
	if s.anchor != nil {
		return s.anchor.gone()
	}
	s.k.mu.Lock()
	none := len(s.tasks) == 0
	for _, c := range s.tasks {
		if s.k.reaper.children[c.pid] == c {
			s.k.mu.Unlock()
			return false
		}
	}
	s.k.mu.Unlock()
	return none || len(s.procs()) == 0
}

// procs lists the step's processes.
func (s *step) procs() []int {
	if s.cg != nil {
		list, _ := s.cg.Procs()
		return list
	}
	s.k.mu.Lock()
	roots := s.pids()
	if s.anchor != nil {
		roots = append(roots, s.anchor.pid)
	}
	s.k.mu.Unlock()
	mark := s.k.mark(s.key)
	if list, ok := s.k.family(mark, roots); ok {
		return s.anchor.without(list)
	}
	return s.anchor.without(markedProcs(mark, roots))
}

// signal sends a signal to processes of the step.
func (s *step) signal(sig unix.Signal, to audience) error {
	s.k.mu.Lock()
	tasks := s.tasks
	s.k.mu.Unlock()
	if to == shellOnly {
		var faults []error
		for _, c := range tasks {
			faults = append(faults, s.k.reaper.signal(c, sig))
		}
		return errors.Join(faults...)
	}
	task := map[int]bool{}
	for _, c := range tasks {
		task[c.pid] = true
	}
	var faults []error
	list := s.procs()
	// A shell should have its own signal before it sees its child die of it.
	slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(boolInt(task[b]), boolInt(task[a])) })
	for _, pid := range list {
		if err := unix.Kill(pid, sig); err != nil && !errors.Is(err, unix.ESRCH) {
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
