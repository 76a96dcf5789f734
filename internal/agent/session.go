package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"bireme.dev/bireme/internal/agent/hardware"
	"bireme.dev/bireme/internal/agent/rest"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

// causeFenced is the cause of ends that a fence made.
const causeFenced wire.Cause = "fenced"

// session is one connection to a server: hello, welcome, then orders down and news up until it breaks.
type session struct {
	a    *Agent
	conn *wire.Conn
	done chan struct{} // closed at the end; readers of logs and streams stop
	work sync.WaitGroup

	mu   sync.Mutex
	logs map[name]*follower
	over bool // done is closed, no more work begins
	// beats are the times the hello (0) and the heartbeats (from 1) were sent; those answered are cut off, first counts
	// them.
	beats []time.Duration
	first int64
}

// connect dials and runs one session. welcomed reports whether it came so far that the server was found good.
func (a *Agent) connect(ctx context.Context) (welcomed bool, err error) {
	c, server, err := a.up.Upgrade(ctx, wire.PathAgent, "bireme-agent")
	if err != nil {
		return false, err
	}
	defer func() {
		if err != nil && ctx.Err() == nil { // it stops, leads no more or is silent: another one may lead
			a.up.Left(server)
		}
	}()
	s := &session{a: a, conn: wire.NewConn(&impatient{Conn: c}), done: make(chan struct{}), logs: map[name]*follower{}}
	stop := context.AfterFunc(ctx, func() {
		_ = s.conn.Send(wire.TypeBye, nil) // courtesy: a closed connection says the same
		s.conn.Close()
	})
	defer stop()
	defer s.close()
	run, ended := a.ledger.held()
	s.beats = append(s.beats, hardware.BootTime())
	if err := s.conn.Send(wire.TypeNodeHello, a.hello(run, ended)); err != nil {
		return false, err
	}
	f, err := s.conn.Next()
	if err != nil {
		return false, fmt.Errorf("waiting for the server's welcome: %w", err)
	}
	if f.Type != wire.TypeWelcome {
		return false, fmt.Errorf("the server began with a frame of type %d, not with its welcome", f.Type)
	}
	if err := s.welcome(f, ended); err != nil {
		return false, err
	}
	for _, e := range a.ledger.attach(s, ended) {
		s.ended(e, nil)
	}
	a.containers.retell(a.ledger)
	s.begin(func() { s.beat() })
	a.flushProblems(s)
	for {
		f, err := s.conn.Next()
		if err != nil {
			return true, err
		}
		a.heard()
		if err := s.take(f); err != nil {
			return true, err
		}
	}
}

// begin runs f as a part of the session, which waits for it at its end.
func (s *session) begin(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	s.work.Go(f)
}

func (s *session) close() {
	s.a.ledger.detach(s)
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	close(s.done)
	s.conn.Close()
	s.work.Wait()
}

// send sends news. A broken connection is noticed by the reader; what was lost is in the next hello.
func (s *session) send(t wire.Type, header any, payload ...[]byte) {
	if err := s.conn.Send(t, header, payload...); err != nil {
		s.conn.Close()
	}
}

func (a *Agent) hello(run []wire.Key, ended []wire.Exited) *wire.NodeHello {
	a.ledger.mu.Lock()
	keeper := a.ledger.keeper
	a.ledger.mu.Unlock()
	h := a.host
	h.Containment = string(keeper.Containment)
	h.UserNS = a.containers.engine.RemapsRoot()
	if missing := a.machine.MissingLimits(&keeper); len(missing) > 0 {
		h.Containment += " without " + strings.Join(missing, ", ")
	}
	return &wire.NodeHello{
		Protocol: wire.AgentProtocol, Oldest: wire.OldestAgentProtocol, Version: a.opt.Version, Node: a.id.name,
		Hardware: a.machine.Hardware, Host: h,
		Features: a.opt.Features, Fleet: a.opt.Fleet, Running: run, Ended: ended, Now: core.At(time.Now()),
		Trust: a.id.trusts(),
	}
}

// welcome takes the server's settings and what it says about the hello.
func (s *session) welcome(f wire.Frame, ended []wire.Exited) error {
	var w wire.Welcome
	if err := f.Decode(&w); err != nil {
		return err
	}
	if w.Protocol != 0 {
		if _, err := wire.Agree(0, w.Protocol); err != nil {
			return err
		}
	}
	a := s.a
	a.up.Learn(w.Servers)
	a.settle(&w)
	s.renew(0)
	a.log.Info("connected", "cluster", w.Cluster, "server_version", w.Version, "ended", len(ended))
	for _, k := range w.Kill {
		s.a.log.Info("killing what the server does not want", "job", k.Job, "attempt", k.Attempt, "step", k.Step)
		header, err := json.Marshal(
			wire.Kill{Job: k.Job, Attempt: k.Attempt, Step: k.Step, Grace: -1, Reason: "not wanted by the server"})
		if err != nil {
			return err
		}
		if err := a.ledger.pass(wire.Frame{Type: wire.TypeKill, Header: header}, k.Job, k.Attempt); err != nil {
			return err
		}
	}
	from := map[name]int64{}
	for _, l := range w.Logs {
		from[nameOf(l.Key)] = l.Offset
		s.follow(l.Key, l.Offset)
	}
	// Streams the server did not mention have sent nothing yet; and the output of what ended is still to be told.
	for _, k := range a.ledger.streamed() {
		s.follow(k, from[nameOf(k)])
	}
	for _, x := range ended {
		s.begin(func() { s.output(&x, func() {}) })
	}
	return nil
}

// take acts on a frame from the server.
func (s *session) take(f wire.Frame) error {
	a := s.a
	switch f.Type {
	case wire.TypeLaunch:
		l, err := wire.DecodeLaunch(f)
		if err != nil {
			return err
		}
		a.localize(l)
		if l.Fence > 0 {
			a.fenceJob(l.Key.Job, l.Fence)
		}
		a.mu.Lock()
		isLate := a.fences.passed(l.Key.Job, hardware.BootTime()-a.lease)
		a.mu.Unlock()
		if isLate { // it was under way for so long that the job may have been started elsewhere since
			return core.Errorf(core.Unavailable, "a launch of job %d came after its fence", l.Key.Job)
		}
		if len(l.Program.Tasks) > 0 || l.Stdio.Mode == wire.StdioStream {
			// it is there before the keeper speaks of the step, which may be before the server says where it goes
			a.stream(l.Key)
		}
		return a.ledger.launch(l)
	case wire.TypeKill, wire.TypeSignal, wire.TypeSetLimit, wire.TypeSuspend, wire.TypeFinish:
		var about wire.JobRef
		if err := f.Decode(&about); err != nil {
			return err
		}
		if f.Type == wire.TypeSuspend {
			var order wire.Suspend
			if err := f.Decode(&order); err != nil {
				return err
			}
			s.begin(func() { a.containers.suspend(a.life, order) })
		}
		return a.ledger.pass(f, about.Job, about.Attempt)
	case wire.TypeAckExit:
		var ack wire.AckExit
		if err := f.Decode(&ack); err != nil {
			return err
		}
		a.ledger.acked(s, ack.Keys)
	case wire.TypeLogAck:
		return wire.With(f, s.logAck)
	case wire.TypeOpenStream:
		return wire.With(f, a.openStream)
	case wire.TypeOpenService:
		return wire.With(f, func(o wire.OpenService) {
			a.work.Go(func() { a.replicas.Open(a.life, o) }) // it lasts longer than the session
		})
	case wire.TypeStat:
		if err := a.ledger.send(f.Type, json.RawMessage(f.Header)); err != nil {
			a.log.Debug("usage not asked for", "err", err)
		}
	case wire.TypeWelcome: // settings changed
		var w wire.Welcome
		if err := f.Decode(&w); err != nil {
			return err
		}
		a.settle(&w)
		a.containers.retell(a.ledger)
	case wire.TypeVolume:
		return a.volumes.Take(a.life, f, a.id.name, a.opt.Dir, a.ledger.tell)
	case wire.TypeCheck:
		a.checkHealth(true)
	case wire.TypeReboot:
		return wire.With(f, a.reboot)
	case wire.TypeBye:
		return errBye
	case wire.TypePong:
		return wire.With(f, func(p wire.Pong) { s.renew(p.Seq) })
	default:
		a.log.Debug("frame of an unknown type", "type", int(f.Type)) // a newer server: what matters has a version
	}
	return nil
}

// errBye says that the server goes away in peace.
var errBye = errors.New("the server said goodbye")

// ended tells the server an end: short output before it, so that whoever sees the end sees the output; long output
// after.
func (s *session) ended(e *end, payload []byte) {
	x := &e.exited
	switch {
	case e.stream:
		s.send(wire.TypeExited, e.header)
	case len(payload) > 0:
		s.send(wire.TypeExited, e.header, payload) // its acknowledgement is one of the output, too
	case x.LogSize <= x.LogFrom:
		s.send(wire.TypeExited, e.header)
		s.a.ledger.logged(x.Key)
	case x.LogSize-x.LogFrom <= shortTail:
		s.begin(func() {
			s.output(x, func() { s.send(wire.TypeExited, e.header) })
		})
	default:
		s.send(wire.TypeExited, e.header)
		s.begin(func() { s.output(x, func() {}) })
	}
	switch {
	case x.Cause == wire.CauseUnkillable:
		s.a.problem(true, "Kill task failed") // as Slurm 22.05 words it
	case x.Cause == wire.CausePrologFailed:
		s.a.problem(true, "Prolog error")
	}
}

// beat sends heartbeats and ends the session when the server is silent for three of them.
func (s *session) beat() {
	a := s.a
	for {
		every := a.heartbeat()
		t := time.NewTimer(every)
		select {
		case <-s.done:
			t.Stop()
			return
		case <-t.C:
		}
		if a.silence() > 3*every {
			a.log.Warn("the server is silent", "silence", a.silence())
			s.conn.Close()
			return
		}
		a.rest()
		free, _ := hardware.MemInfo(a.root, "MemAvailable") // 0 where the kernel does not say
		s.mu.Lock()
		s.beats = append(s.beats, hardware.BootTime())
		s.mu.Unlock()
		s.send(wire.TypeHeartbeat, wire.Heartbeat{Load: hardware.LoadAvg(a.root), FreeMem: free, Now: core.At(time.Now())})
	}
}

// rest returns memory to the system when the start or the last job is over: an idle agent is one of many things
// there.
func (a *Agent) rest() {
	a.ledger.mu.Lock()
	idle := a.ledger.busy && len(a.ledger.running) == 0
	if idle {
		a.ledger.busy = false
	}
	a.ledger.mu.Unlock()
	if idle {
		rest.GiveBack()
	}
}

// renew notes that the server has heard the hello or a heartbeat. Fences count from when that was sent, not from when
// the answer came: the server counts from in between.
func (s *session) renew(seq int64) {
	s.mu.Lock()
	i := seq - s.first
	if i < 0 || i >= int64(len(s.beats)) {
		s.mu.Unlock()
		return
	}
	sent := s.beats[i]
	s.beats, s.first = s.beats[i+1:], seq+1
	s.mu.Unlock()
	s.a.renewFence(sent)
}

// impatient is a connection that gives up on a peer that takes nothing for a while, so that no sender waits forever.
type impatient struct{ net.Conn }

const sessionTimeout = 30 * time.Second

func (i *impatient) Write(b []byte) (int, error) {
	if err := i.SetWriteDeadline(time.Now().Add(sessionTimeout)); err != nil {
		return 0, err
	}
	return i.Conn.Write(b)
}
