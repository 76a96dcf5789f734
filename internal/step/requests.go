package step

import (
	"errors"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/step/clock"
	"bireme.dev/bireme/internal/step/intake"
	"bireme.dev/bireme/internal/step/journal"
	"bireme.dev/bireme/internal/step/procuse"
	"bireme.dev/bireme/internal/wire"
)

// requests does what an agent's messages ask of the keeper.
type requests struct{ k *Keeper }

// handle does what one message asks. What may take long goes into a goroutine of its own.
func (r requests) handle(f wire.Frame) error {
	k := r.k
	switch f.Type {
	case wire.TypeLaunch:
		l, err := wire.DecodeLaunch(f)
		if err != nil {
			return err
		}
		k.launch(l)
	case wire.TypeSignal:
		return wire.With(f, func(m wire.Signal) { k.later(func() { r.reply(m.Ref, r.signalJob(m)) }) })
	case wire.TypeKill:
		return wire.With(f, func(m wire.Kill) { k.later(func() { r.reply(m.Ref, r.killJob(m)) }) })
	case wire.TypeSetLimit:
		return wire.With(f, func(m wire.SetLimit) { r.reply(m.Ref, r.setLimit(m)) })
	case wire.TypeSuspend:
		return wire.With(f, func(m wire.Suspend) { k.later(func() { r.reply(m.Ref, r.suspendJob(m)) }) })
	case wire.TypeFinish:
		return wire.With(f, func(m wire.Finish) {
			if m.Left {
				r.leave(m)
			}
			k.later(func() { r.finishJob(m) })
		})
	case wire.TypeAckExit:
		return wire.With(f, r.ackExit)
	case wire.TypeList:
		return wire.With(f, func(m wire.List) {
			k.mu.Lock()
			h := k.hello()
			k.mu.Unlock()
			h.Ref = m.Ref
			k.send(wire.TypeKeeperHello, h)
		})
	case wire.TypeStat:
		return wire.With(f, func(m wire.Stat) { k.later(func() { k.send(wire.TypeUsage, r.stat(m)) }) })
	case wire.TypeReadLog:
		return wire.With(f, func(m wire.ReadLog) { k.later(func() { r.readLog(m) }) })
	case wire.TypeData:
		return wire.With(f, func(m wire.Data) {
			r.withStreams(m.Key, len(f.Payload), func(st *streams) { st.input(m, f.Payload) })
		})
	case wire.TypeDataAck:
		return wire.With(f, func(m wire.DataAck) { r.withStreams(m.Key, 0, func(st *streams) { st.ack(m) }) })
	case wire.TypeMeet:
		return wire.With(f, func(m wire.Meet) { r.met(m, f.Payload) })
	case wire.TypeStreamDrop:
		return wire.With(f, func(m wire.StreamDrop) { r.withStreams(m.Key, 0, (*streams).drop) })
	case wire.TypeResize:
		return wire.With(f, func(m wire.Resize) { r.withStreams(m.Key, 0, func(st *streams) { st.resize(m.Rows, m.Cols) }) })
	case wire.TypeUpgrade:
		return wire.With(f, func(m wire.Upgrade) { r.reply(m.Ref, handover{k}.upgrade(m)) }) // a success does not return
	case wire.TypeShutdown:
		k.Shutdown()
	default:
		k.log.Warn("message of an unknown type", "type", f.Type) // from a newer agent
	}
	return nil
}

func (r requests) reply(ref uint64, err error) {
	if ref == 0 {
		return
	}
	answer := wire.Reply{Ref: ref}
	if err != nil {
		answer.Code, answer.Error = string(core.CodeOf(err)), err.Error()
	}
	r.k.send(wire.TypeReply, answer)
}

// stepsOf finds the living steps of a job, or one of them.
func (r requests) stepsOf(ref wire.JobRef, name string) ([]*step, error) {
	k := r.k
	k.mu.Lock()
	defer k.mu.Unlock()
	j := k.jobs[ref]
	if j == nil {
		return nil, core.Errorf(core.NotFound, "job %d attempt %d does not run here", ref.Job, ref.Attempt)
	}
	var list []*step
	for s := range j.steps {
		if name == "" || s.key.Step == name {
			list = append(list, s)
		}
	}
	if name != "" && len(list) == 0 {
		return nil, core.Errorf(core.NotFound, "step %d.%s does not run here", ref.Job, name)
	}
	return list, nil
}

func (r requests) signalJob(m wire.Signal) error {
	list, err := r.stepsOf(wire.JobRef{Job: m.Job, Attempt: m.Attempt}, m.Step)
	if err != nil {
		return err
	}
	if m.Number <= 0 || m.Number > 64 {
		return core.Errorf(core.Invalid, "signal %s is not known", strconv.Itoa(m.Number))
	}
	var faults []error
	for _, s := range list {
		batch := s.key.Step == wire.BatchStep
		switch {
		case m.Batch && !batch, batch && !m.Batch && !m.Full && m.Step == "":
			continue
		case m.Batch:
			faults = append(faults, s.signal(unix.Signal(m.Number), shellOnly))
		default:
			faults = append(faults, s.signal(unix.Signal(m.Number), everyone))
		}
	}
	return errors.Join(faults...)
}

func (r requests) killJob(m wire.Kill) error {
	list, err := r.stepsOf(wire.JobRef{Job: m.Job, Attempt: m.Attempt}, m.Step)
	if err != nil {
		return err
	}
	e := end{cause: m.Cause, message: m.Reason, notice: m.Notice, grace: m.Grace, warn: m.Warn}
	if e.cause == wire.CauseNone {
		e.cause = wire.CauseCancelled
	}
	for _, s := range list {
		s.terminate(e)
	}
	return nil
}

func (r requests) setLimit(m wire.SetLimit) error {
	k := r.k
	list, err := r.stepsOf(wire.JobRef{Job: m.Job, Attempt: m.Attempt}, "")
	if err != nil {
		return err
	}
	for _, s := range list {
		k.mu.Lock()
		s.limit = m.Limit
		if own, ok := m.Steps[s.key.Step]; ok {
			s.limit = own
		}
		k.mu.Unlock()
		s.arm()
	}
	return nil
}

func (r requests) suspendJob(m wire.Suspend) error {
	k := r.k
	k.mu.Lock()
	j := k.jobs[wire.JobRef{Job: m.Job, Attempt: m.Attempt}]
	k.mu.Unlock()
	if j == nil {
		return core.Errorf(core.NotFound, "job %d attempt %d does not run here", m.Job, m.Attempt)
	}
	<-j.ready
	return j.suspend(!m.Resume)
}

// leave notes that jobs which begin from now on wait for the end of one that has lost the node.
func (r requests) leave(m wire.Finish) {
	r.k.mu.Lock()
	defer r.k.mu.Unlock()
	if j := r.k.jobs[wire.JobRef{Job: m.Job, Attempt: m.Attempt}]; j != nil {
		j.left = true
	}
}

func (r requests) finishJob(m wire.Finish) {
	k := r.k
	ref := wire.JobRef{Job: m.Job, Attempt: m.Attempt}
	k.mu.Lock()
	j := k.jobs[ref]
	k.mu.Unlock()
	done := wire.JobDone{Ref: m.Ref, Job: m.Job, Attempt: m.Attempt}
	if j != nil {
		j.finish(nil)
		done.EpilogFailed, done.Unkillable = j.epilogErr, j.stuck
		if err := k.journal.Add(&journal.Record{T: journal.KindDone, Job: &ref}); err != nil {
			k.log.Warn("end of a job", "job", m.Job, "err", err)
		}
	}
	if r.detach(ref, done) {
		k.send(wire.TypeJobDone, done)
	}
}

// detachEvery is how often a volume is tried again that could not be unmounted.
const detachEvery = 5 * time.Second

// detach unmounts the job's volumes, however long that takes: once the job is done here another node may have them. It
// reports false if the keeper is shut down before; the next one begins with what is mounted.
func (r requests) detach(ref wire.JobRef, done wire.JobDone) bool {
	k := r.k
	for told := false; ; told = true {
		err := k.volumes.Detach(ref)
		if err == nil {
			return true
		}
		if !told {
			k.log.Error("a volume cannot be unmounted; the job is not done before", "job", ref.Job, "err", err)
			done.Mounted = true
			k.send(wire.TypeJobDone, done)
		}
		select {
		case <-k.stop:
			return false
		case <-time.After(detachEvery):
		}
	}
}

func (r requests) ackExit(m wire.AckExit) {
	k := r.k
	var gone []*step
	keys := m.Keys[:0]
	k.mu.Lock()
	for _, key := range m.Keys {
		if s := k.steps[key]; s != nil && s.exited != nil {
			delete(k.steps, key)
			gone = append(gone, s)
			keys = append(keys, key)
		}
	}
	k.mu.Unlock()
	if len(keys) == 0 {
		return
	}
	if err := k.journal.Add(&journal.Record{T: journal.KindAck, Keys: keys}); err != nil {
		k.log.Warn("acknowledgement", "err", err) // it will be told again, and acknowledged again
	}
	for _, s := range gone {
		s.io.forget()
	}
}

func (r requests) stat(m wire.Stat) wire.Usage {
	k := r.k
	u := wire.Usage{Ref: m.Ref}
	list, err := r.stepsOf(wire.JobRef{Job: m.Job, Attempt: m.Attempt}, m.Step)
	if err != nil {
		return u
	}
	u.Found = true
	for _, s := range list {
		k.mu.Lock()
		started, roots := s.started, s.pids()
		k.mu.Unlock()
		if !started {
			continue
		}
		pids := s.procs()
		u.PIDs = append(u.PIDs, pids...)
		if m.Tasks {
			u.Tasks = append(u.Tasks, procuse.Tasks(roots, pids, s.l.Program.Tasks)...)
		}
		if s.cg == nil {
			continue
		}
		if c, err := s.cg.Usage(); err == nil {
			u.Used.UserCPU += c.UserCPU
			u.Used.SysCPU += c.SysCPU
			u.Used.MaxRSS += c.Peak
			u.RSS += c.Now
		}
	}
	return u
}

// readLog answers with a piece of a step's output.
func (r requests) readLog(m wire.ReadLog) {
	k := r.k
	n := m.Max
	if n <= 0 || n > maxInline {
		n = 256 << 10
	}
	deadline := clock.Now() + m.Wait
	for {
		var more, over <-chan struct{}
		answer := wire.Log{Ref: m.Ref, Key: m.Key, Offset: m.Offset}
		k.mu.Lock()
		s := k.steps[m.Key]
		ended := s != nil && s.exited != nil
		usable := s != nil && (s.started || ended)
		k.mu.Unlock()
		var b []byte
		var wait time.Duration
		switch {
		case s == nil:
			answer.Ended, answer.Error = true, "step "+m.Key.String()+" is not known here"
		case usable && s.io != nil:
			if s.io.intake != nil {
				more, over = s.io.intake.Wait(), s.over // before the look, so that nothing is missed
			}
			b, wait = s.io.piece(&m, n, &answer, ended || k.isEnding())
		}
		answer.Ended = answer.Ended || ended
		if len(b) > 0 || answer.Ended || answer.Error != "" || clock.Now() >= deadline || k.isEnding() {
			k.send(wire.TypeLog, answer, b)
			return
		}
		intake.Await(more, over, wait)
	}
}

// piece reads n bytes of the output that was asked for and says what they are. Unless it must be now, a piece that is
// not full may have to wait for more.
func (o *stdio) piece(m *wire.ReadLog, n int, answer *wire.Log, now bool) (b []byte, wait time.Duration) {
	if o.intake != nil {
		answer.Offset, answer.Dropping = max(m.Offset, o.intake.Free(m.Free)), o.intake.Drops()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	file := &o.out
	if m.Stderr {
		file = &o.err
	}
	answer.Size = file.size()
	if answer.Size <= answer.Offset {
		return nil, 0
	}
	if o.intake != nil && !now && answer.Size-answer.Offset < int64(n) {
		if wait := o.intake.Gather(); wait > 0 {
			return nil, wait
		}
	}
	b, err := o.read(file, answer.Offset, n)
	if err != nil {
		answer.Error = err.Error()
	}
	return b, 0
}

// withStreams calls do with a step's streams, size being how many bytes of a message it holds on to. While the step is
// being started it is kept for later; what is beyond the window an agent keeps to is not.
func (r requests) withStreams(key wire.Key, size int, do func(*streams)) {
	k := r.k
	k.mu.Lock()
	s := k.steps[key]
	if s != nil && !s.flowing && s.exited == nil && s.l.Stdio.Mode == wire.StdioStream {
		if s.earlySize += size + 64; s.earlySize <= 2*wire.StreamWindow {
			s.early = append(s.early, do)
		}
		k.mu.Unlock()
		return
	}
	ok := s != nil && s.io != nil && s.io.streams != nil
	k.mu.Unlock()
	if ok {
		do(s.io.streams)
	}
}
