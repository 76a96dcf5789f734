package step

import (
	"errors"
	"io"
	"net"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/step/clock"
	"bireme.dev/bireme/internal/wire"
)

// session is one connection of an agent. There is one at a time: a new one replaces the old, whose agent is gone or
// hangs.
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

const agentTimeout = 30 * time.Second

func (c impatient) Write(b []byte) (int, error) {
	err := c.SetWriteDeadline(time.Now().Add(agentTimeout))
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
		if x := ends[st]; x != nil { // so that srun learns of the end after all the rest; a break ends this session
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
		if err := (requests{k}).handle(f); err != nil {
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

// flows reports whether an srun waits for a step that has started. The keeper's lock is held.
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

// Shutdown makes Run end.
func (k *Keeper) Shutdown() { k.stopped.Do(func() { close(k.stop) }) }

// later runs f beside the reading of messages.
func (k *Keeper) later(f func()) { k.work.Go(f) }

func (k *Keeper) isEnding() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.ending
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
