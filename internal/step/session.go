package step

import (
	"errors"
	"io"
	"net"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/step/clock"
	"bireme.dev/bireme/internal/step/journal"
	"bireme.dev/bireme/internal/wire"
)

// session is one connection of an agent. There is one at a time: a new one replaces the old, whose agent is gone or hangs.
type session struct {
	c     *wire.Conn
	ready chan struct{} // closed when the hello is out: nothing may come before it
}

// accept serves agents until the listener is closed.
func (k *Keeper) accept() {
	const least, most = 5 * time.Millisecond, time.Second
	pause := least
	tick := time.NewTimer(0)
	defer tick.Stop()
	for {
		c, err := k.listener.AcceptUnix()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			// Out of descriptors or memory: the connection waits, and it would fail again at once.
			k.log.Warn("accept", "err", err, "again", pause)
			tick.Reset(pause)
			<-tick.C
			pause = min(2*pause, most)
			continue
		}
		pause = least
		if uid, err := peer(c); err != nil || uid != 0 && uid != k.uid {
			k.log.Warn("refused a connection", "user", uid, "err", err)
			_ = c.Close()
			continue
		}
		s := &session{c: wire.NewConn(impatient{c}), ready: make(chan struct{})}
		k.serving.Go(func() {
			defer s.c.Close()
			err := k.serve(s)
			k.conn.CompareAndSwap(s, nil)
			if !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
				k.log.Warn("agent's connection", "err", err)
			}
		})
	}
}

// impatient is a connection that is closed when the agent takes nothing for a while, so that no step waits for one that
// hangs: what it was not told is in the hello of the next.
type impatient struct{ *net.UnixConn }

const agentPatience = 30 * time.Second

func (c impatient) Write(b []byte) (int, error) {
	err := c.SetWriteDeadline(time.Now().Add(agentPatience))
	n := 0
	if err == nil {
		n, err = c.UnixConn.Write(b)
	}
	if err != nil {
		_ = c.Close()
	}
	return n, err
}

// peer asks the kernel who is at the other end.
func peer(c *net.UnixConn) (uint32, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var fault error
	if err := raw.Control(func(fd uintptr) {
		cred, fault = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil || fault != nil {
		return 0, errors.Join(err, fault)
	}
	return cred.Uid, nil
}

// serve reads an agent's messages until the connection ends.
func (k *Keeper) serve(s *session) error {
	f, err := s.c.Next()
	if err != nil {
		return err
	}
	var hello wire.AgentHello
	if f.Type != wire.TypeHello {
		return core.Errorf(core.Invalid, "connection began with message %d, not with hello", f.Type)
	}
	if err := f.Decode(&hello); err != nil {
		return err
	}
	// From the moment of the snapshot on, everything new goes to this agent.
	k.mu.Lock()
	h := k.hello()
	old := k.conn.Swap(s)
	var flows []*step
	ends := map[*step]*wire.Exited{}
	for _, st := range k.steps {
		if st.flows() {
			flows = append(flows, st)
			ends[st] = st.exited
		}
	}
	k.mu.Unlock()
	if old != nil {
		_ = old.c.Close()
	}
	err = s.c.Send(wire.TypeKeeperHello, h)
	for _, st := range flows { // before anything newer: what comes after a gap is taken for all there is
		if st.io.streams != nil {
			st.io.streams.resend(s.c)
		}
		if x := ends[st]; x != nil { // so that srun hears of the end after all the rest; a break ends this session
			_ = s.c.Send(wire.TypeExited, x)
		}
	}
	close(s.ready)
	if err != nil {
		return err
	}
	for {
		f, err := s.c.Next()
		if err != nil {
			return err
		}
		if err := k.handle(f); err != nil {
			return err
		}
	}
}

// send tells the agent something, if there is one. What matters is told again by the hello of the next.
func (k *Keeper) send(t wire.Type, header any, payload ...[]byte) {
	s := k.conn.Load()
	if s == nil {
		return
	}
	<-s.ready
	_ = s.c.Send(t, header, payload...) // a broken connection ends its own session
}

// flows tells whether an srun waits for a step that has started. The keeper's lock is held.
func (s *step) flows() bool { return s.started && (len(s.l.Program.Tasks) > 0 || s.io.streams != nil) }

// flowOf tells a new agent of such a step. The keeper's lock is held.
func (s *step) flowOf() wire.Flow {
	f := s.l.Flow()
	f.Exits = s.told
	if s.io.streams != nil {
		f.Have, f.Seq = s.io.streams.taken()
	}
	return f
}

// hello tells everything. The lock is held.
func (k *Keeper) hello() *wire.KeeperHello {
	h := &wire.KeeperHello{
		Version: wire.KeeperVersion, Program: k.cfg.Program, PID: unix.Getpid(), BootID: k.bootID, Instance: k.instance,
		Containment: k.containment(),
	}
	if k.tree != nil {
		h.Enforces = k.tree.Enforces()
	}
	now := clock.Now()
	for key, s := range k.steps {
		if s.flows() {
			h.Flows = append(h.Flows, s.flowOf())
		}
		if s.exited != nil {
			h.Ended = append(h.Ended, *s.exited)
			continue
		}
		r := wire.Running{Key: key, Suspended: s.job.suspended != 0}
		if s.started {
			r.PID, r.Elapsed = s.tasks[0].pid, now-s.begun
		}
		h.Running = append(h.Running, r)
	}
	for ref := range k.jobs {
		h.Jobs = append(h.Jobs, ref)
	}
	slices.SortFunc(h.Jobs, func(a, b wire.JobRef) int { return int(a.Job - b.Job) })
	return h
}

// handle does what one message asks. What may take long goes into a goroutine of its own.
func (k *Keeper) handle(f wire.Frame) error {
	switch f.Type {
	case wire.TypeLaunch:
		l, err := wire.DecodeLaunch(f)
		if err != nil {
			return err
		}
		k.launch(l)
	case wire.TypeSignal:
		return with(f, func(m wire.Signal) { k.later(func() { k.reply(m.Ref, k.signalJob(m)) }) })
	case wire.TypeKill:
		return with(f, func(m wire.Kill) { k.later(func() { k.reply(m.Ref, k.killJob(m)) }) })
	case wire.TypeSetLimit:
		return with(f, func(m wire.SetLimit) { k.reply(m.Ref, k.setLimit(m)) })
	case wire.TypeSuspend:
		return with(f, func(m wire.Suspend) { k.later(func() { k.reply(m.Ref, k.suspendJob(m)) }) })
	case wire.TypeFinish:
		return with(f, func(m wire.Finish) { k.later(func() { k.finishJob(m) }) })
	case wire.TypeAckExit:
		return with(f, k.ackExit)
	case wire.TypeList:
		return with(f, func(m wire.List) {
			k.mu.Lock()
			h := k.hello()
			k.mu.Unlock()
			h.Ref = m.Ref
			k.send(wire.TypeKeeperHello, h)
		})
	case wire.TypeStat:
		return with(f, func(m wire.Stat) { k.later(func() { k.send(wire.TypeUsage, k.stat(m)) }) })
	case wire.TypeReadLog:
		return with(f, func(m wire.ReadLog) { k.later(func() { k.readLog(m) }) })
	case wire.TypeData:
		return with(f, func(m wire.Data) { k.withStreams(m.Key, len(f.Payload), func(st *streams) { st.input(m, f.Payload) }) })
	case wire.TypeDataAck:
		return with(f, func(m wire.DataAck) { k.withStreams(m.Key, 0, func(st *streams) { st.ack(m) }) })
	case wire.TypeMeet:
		return with(f, func(m wire.Meet) { k.met(m, f.Payload) })
	case wire.TypeStreamDrop:
		return with(f, func(m wire.StreamDrop) { k.withStreams(m.Key, 0, (*streams).drop) })
	case wire.TypeResize:
		return with(f, func(m wire.Resize) { k.withStreams(m.Key, 0, func(st *streams) { st.resize(m.Rows, m.Cols) }) })
	case wire.TypeUpgrade:
		return with(f, func(m wire.Upgrade) { k.reply(m.Ref, k.upgrade(m)) }) // a success does not return
	case wire.TypeShutdown:
		k.Shutdown()
	default:
		k.log.Warn("message of an unknown type", "type", f.Type) // from a newer agent
	}
	return nil
}

// Shutdown makes Run end.
func (k *Keeper) Shutdown() { k.stopped.Do(func() { close(k.stop) }) }

// with decodes a header and hands it on.
func with[M any](f wire.Frame, do func(M)) error {
	var m M
	if err := f.Decode(&m); err != nil {
		return err
	}
	do(m)
	return nil
}

// later runs f beside the reading of messages.
func (k *Keeper) later(f func()) { k.work.Go(f) }

func (k *Keeper) reply(ref uint64, err error) {
	if ref == 0 {
		return
	}
	r := wire.Reply{Ref: ref}
	if err != nil {
		r.Code, r.Error = string(core.CodeOf(err)), err.Error()
	}
	k.send(wire.TypeReply, r)
}

// stepsOf finds the living steps of a job, or one of them.
func (k *Keeper) stepsOf(ref wire.JobRef, name string) ([]*step, error) {
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

func (k *Keeper) signalJob(m wire.Signal) error {
	list, err := k.stepsOf(wire.JobRef{Job: m.Job, Attempt: m.Attempt}, m.Step)
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

func (k *Keeper) killJob(m wire.Kill) error {
	list, err := k.stepsOf(wire.JobRef{Job: m.Job, Attempt: m.Attempt}, m.Step)
	if err != nil {
		return err
	}
	e := end{cause: m.Cause, message: m.Reason, notice: m.Notice, grace: m.Grace}
	if e.cause == wire.CauseNone {
		e.cause = wire.CauseCancelled
	}
	for _, s := range list {
		s.terminate(e)
	}
	return nil
}

func (k *Keeper) setLimit(m wire.SetLimit) error {
	list, err := k.stepsOf(wire.JobRef{Job: m.Job, Attempt: m.Attempt}, "")
	if err != nil {
		return err
	}
	for _, s := range list {
		k.mu.Lock()
		s.limit = m.Limit
		k.mu.Unlock()
		s.arm()
	}
	return nil
}

func (k *Keeper) suspendJob(m wire.Suspend) error {
	k.mu.Lock()
	j := k.jobs[wire.JobRef{Job: m.Job, Attempt: m.Attempt}]
	k.mu.Unlock()
	if j == nil {
		return core.Errorf(core.NotFound, "job %d attempt %d does not run here", m.Job, m.Attempt)
	}
	<-j.ready
	return j.suspend(!m.Resume)
}

func (k *Keeper) finishJob(m wire.Finish) {
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
	k.send(wire.TypeJobDone, done)
}

func (k *Keeper) ackExit(m wire.AckExit) {
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

func (k *Keeper) stat(m wire.Stat) wire.Usage {
	u := wire.Usage{Ref: m.Ref}
	list, err := k.stepsOf(wire.JobRef{Job: m.Job, Attempt: m.Attempt}, m.Step)
	if err != nil {
		return u
	}
	u.Found = true
	for _, s := range list {
		k.mu.Lock()
		started := s.started
		k.mu.Unlock()
		if !started {
			continue
		}
		u.PIDs = append(u.PIDs, s.procs()...)
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

// logPoll is how often a log is looked at while somebody waits for more of it, and how long what comes is collected. logIdle is
// how often one is looked at of which the keeper knows when there is more.
const (
	logPoll = 50 * time.Millisecond
	logIdle = time.Second
)

// readLog answers with a piece of a step's output.
func (k *Keeper) readLog(m wire.ReadLog) {
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
		switch {
		case s == nil:
			answer.Ended, answer.Error = true, "step "+m.Key.String()+" is not known here"
		case usable && s.io != nil:
			if s.io.intake != nil {
				more, over = s.io.intake.Wait(), s.over // before the look, so that nothing is missed
			}
			b = s.io.piece(&m, n, &answer)
		}
		answer.Ended = answer.Ended || ended
		if len(b) > 0 || answer.Ended || answer.Error != "" || clock.Now() >= deadline || k.isEnding() {
			k.send(wire.TypeLog, answer, b)
			return
		}
		awaitMore(more, over)
	}
}

// piece reads n bytes of the output that was asked for and says what they are.
func (o *stdio) piece(m *wire.ReadLog, n int, answer *wire.Log) (b []byte) {
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
		return nil
	}
	b, err := o.read(file, answer.Offset, n)
	if err != nil {
		answer.Error = err.Error()
	}
	return b
}

// awaitMore returns when there may be more of a log. What comes is collected for a moment: a job that writes a line at a time
// would otherwise cost a message a line.
func awaitMore(more, over <-chan struct{}) {
	wait := logPoll
	if more != nil {
		wait = logIdle
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
	case <-over:
	case <-more:
		t.Reset(logPoll)
		select {
		case <-t.C:
		case <-over:
		}
	}
}

func (k *Keeper) isEnding() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.ending
}

// withStreams calls do with a step's streams, size being how many bytes of a message it holds on to. While the step is being
// started it is kept for later; what is beyond the window an agent keeps to is not.
func (k *Keeper) withStreams(key wire.Key, size int, do func(*streams)) {
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

// flow hands over what came for the streams before they were there, in order, and lets the rest through.
func (s *step) flow() {
	for {
		s.k.mu.Lock()
		list := s.early
		s.early = nil
		s.flowing = len(list) == 0
		s.k.mu.Unlock()
		if len(list) == 0 {
			return
		}
		if s.io.streams != nil {
			for _, do := range list {
				do(s.io.streams)
			}
		}
	}
}
