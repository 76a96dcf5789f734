package agent

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

// errNoKeeper means that the keeper is not there at this moment; another will be.
var errNoKeeper = errors.New("the keeper is not connected")

// maxWaiting bounds the orders that wait for a keeper. Beyond it the session is dropped, and the server sends again
// what still matters when the agent is back.
const maxWaiting = 10000

// localRef marks requests of the agent itself; smaller refs are the server's, and their answers go there.
const localRef = uint64(1) << 62

// name is a launch without the node: this one.
type name struct {
	job     core.JobID
	attempt int32
	step    string
}

func nameOf(k wire.Key) name { return name{k.Job, k.Attempt, k.Step} }

// running is a launch that has not ended.
type running struct {
	key    wire.Key
	stream bool         // its output is streamed into the log store
	logged bool         // and is there, all of it
	fenced bool         // killed after too long a silence
	pid    int          // of its first process; 0: not known yet
	flow   wire.Flow    // its stdio, when that goes to srun
	redo   []wire.Frame // until it is known to have started: the launch and the orders after it, for a keeper's successor
}

// end is a launch that ended and whose end the server has not yet made durable.
type end struct {
	exited wire.Exited
	header json.RawMessage
	stream bool
	logged bool     // its output is where it should be, so that the keeper may forget it
	acked  bool     // the server has the end
	inline *session // the session that sent its output along with it; an acknowledgement there counts for both
}

// ledger is what the node holds, as far as the agent knows. It sits between the two streams: each of them may be away,
// and what comes from one is passed on to the other or kept until that is back.
type ledger struct {
	log *slog.Logger

	// order makes what is sent to a keeper one sequence: a kill must not overtake its launch when a successor is told
	// again what its predecessor was told.
	order sync.Mutex

	mu      sync.Mutex
	up      *session   // nil while no server has welcomed the agent
	down    *wire.Conn // nil while no keeper is connected
	keeper  wire.KeeperHello
	running map[name]*running
	ended   map[name]*end
	waiting []wire.Frame // orders for the next keeper
	calls   map[uint64]chan wire.Frame
	refs    uint64
	streams map[name]*stepStream
	busy    bool          // something was started since the agent rested, be it the agent itself
	known   chan struct{} // closed when the first keeper has told what it holds
	forgot  func([]wire.Key)
	rest    chan struct{} // something that ran has ended
}

func newLedger(log *slog.Logger) *ledger {
	return &ledger{
		log: log, running: map[name]*running{}, ended: map[name]*end{}, calls: map[uint64]chan wire.Frame{},
		streams: map[name]*stepStream{}, known: make(chan struct{}), rest: make(chan struct{}, 1), busy: true,
	}
}

// held returns what belongs into a hello.
func (l *ledger) held() (run []wire.Key, ended []wire.Exited) {
	l.mu.Lock()
	defer l.mu.Unlock()
	run, ended = make([]wire.Key, 0, len(l.running)), make([]wire.Exited, 0, len(l.ended))
	for _, r := range l.running {
		run = append(run, r.key)
	}
	for _, e := range l.ended {
		ended = append(ended, e.exited)
	}
	return run, ended
}

// attach makes s, which the server has welcomed, the stream to it: from here on news go to s. It returns the ends that
// came after its hello. Nothing is sent before the welcome: a server takes nothing before the hello, and what is sent
// on a connection that it then closes is lost.
func (l *ledger) attach(s *session, hello []wire.Exited) (news []*end) {
	told := make(map[name]bool, len(hello))
	for i := range hello {
		told[nameOf(hello[i].Key)] = true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.up = s
	for n, e := range l.ended {
		if !told[n] {
			news = append(news, e)
		}
	}
	return news
}

func (l *ledger) detach(s *session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.up == s {
		l.up = nil
	}
}

// tell sends news to the server, if it is there; all news are also in the next hello.
func (l *ledger) tell(t wire.Type, header any, payload ...[]byte) {
	l.mu.Lock()
	s := l.up
	l.mu.Unlock()
	if s != nil {
		s.send(t, header, payload...)
	}
}

// launch passes a launch on. One that is known is not passed on twice: the keeper would refuse it, but its news may be
// under way.
func (l *ledger) launch(w *wire.Launch) error {
	f := wire.Frame{Type: wire.TypeLaunch}
	payload := w.Payload()
	header, err := json.Marshal(w)
	if err != nil {
		return err
	}
	f.Header = header
	f.Payload = bytes.Join(payload, nil)
	r := &running{key: w.Key, stream: w.Stdio.Mode == wire.StdioLog, flow: w.Flow(), redo: []wire.Frame{f}}
	l.order.Lock()
	defer l.order.Unlock()
	l.mu.Lock()
	n := nameOf(w.Key)
	if l.running[n] != nil || l.ended[n] != nil {
		e, up := l.ended[n], l.up
		l.mu.Unlock()
		if e != nil && up != nil {
			up.send(wire.TypeExited, e.header)
		}
		return nil
	}
	l.running[n], l.busy = r, true
	st, down, up := l.streams[n], l.down, l.up
	l.mu.Unlock()
	if st != nil {
		st.launched(r.flow)
	}
	if down != nil {
		_ = down.Send(f.Type, json.RawMessage(f.Header), f.Payload) // a broken stream: the next keeper gets it from redo
	}
	if r.stream && up != nil {
		up.follow(w.Key, 0)
	}
	return nil
}

// pass hands an order about a job to the keeper, or to the next one.
func (l *ledger) pass(f wire.Frame, job core.JobID, attempt int32) error {
	l.order.Lock()
	defer l.order.Unlock()
	l.mu.Lock()
	for n, r := range l.running {
		if n.job == job && n.attempt == attempt && r.redo != nil {
			r.redo = append(r.redo, f)
		}
	}
	down := l.down
	if down == nil {
		defer l.mu.Unlock()
		if len(l.waiting) >= maxWaiting {
			return core.Errorf(core.Exhausted, "%d orders wait for a keeper", len(l.waiting))
		}
		l.waiting = append(l.waiting, f)
		return nil
	}
	l.mu.Unlock()
	_ = down.Send(f.Type, json.RawMessage(f.Header), f.Payload) // a broken stream: see redo
	return nil
}

// connected takes a keeper's account of what it holds, tells the server what is new in it, and hands over what waited.
func (l *ledger) connected(c *wire.Conn, h wire.KeeperHello) {
	l.order.Lock()
	defer l.order.Unlock()
	l.mu.Lock()
	l.keeper = h
	seen := map[name]bool{}
	for _, r := range h.Running {
		n := nameOf(r.Key)
		seen[n] = true
		if have := l.running[n]; have == nil {
			l.running[n] = &running{key: r.Key, pid: r.PID}
		} else {
			have.redo, have.pid = nil, r.PID
		}
	}
	var news []*end
	for _, e := range h.Ended {
		n := nameOf(e.Key)
		seen[n] = true
		if l.ended[n] == nil {
			news = append(news, l.endLocked(e, nil))
		}
	}
	var redo []wire.Frame
	for n, r := range l.running {
		switch {
		case seen[n]:
		case r.redo != nil:
			redo = append(redo, r.redo...)
		default:
			// Its journal does not know it any more: whatever ran was killed with its cgroup.
			news = append(news, l.endLocked(wire.Exited{
				Key: r.key, Cause: wire.CauseKeeperLost, Signal: 9,
				Message: "the step keeper ended before the job did, and its journal is gone",
			}, nil))
			l.ended[n].logged = true
		}
	}
	redo = append(redo, l.waiting...)
	l.waiting = nil
	select {
	case <-l.known:
	default:
		close(l.known)
	}
	up := l.up
	l.mu.Unlock()
	for _, f := range redo {
		_ = c.Send(f.Type, json.RawMessage(f.Header), f.Payload) // a broken stream: it is all tried again
	}
	l.mu.Lock()
	l.down = c // not before: questions about a launch must come after it
	l.mu.Unlock()
	if up != nil {
		for _, e := range news {
			up.ended(e, nil)
		}
	}
}

// disconnected forgets a keeper's stream; whoever waits for an answer gets none.
func (l *ledger) disconnected(c *wire.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down == c {
		l.down = nil
	}
	for ref, ch := range l.calls {
		close(ch)
		delete(l.calls, ref)
	}
}

// endLocked moves a launch from running to ended; l.mu is held.
func (l *ledger) endLocked(x wire.Exited, header json.RawMessage) *end {
	n := nameOf(x.Key)
	e := &end{exited: x, header: header}
	if header == nil {
		e.header, _ = json.Marshal(x) // plain fields: cannot fail
	}
	if r := l.running[n]; r != nil {
		e.stream, e.logged = r.stream, r.logged
		delete(l.running, n)
	}
	l.ended[n] = e
	l.rested()
	return e
}

// started notes that a launch need not be told to a successor any more.
func (l *ledger) started(k wire.Key, pid int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.running[nameOf(k)]; r != nil {
		r.redo, r.pid = nil, pid
	}
}

// pid is the first process of a launch; 0: there is none.
func (l *ledger) pid(k wire.Key) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.running[nameOf(k)]; r != nil {
		return r.pid
	}
	return 0
}

// exited takes an end from the keeper.
func (l *ledger) exited(x wire.Exited, f wire.Frame) {
	l.mu.Lock()
	var e *end
	if l.ended[nameOf(x.Key)] == nil { // else it was in the keeper's hello, and this comes after the rest of its output
		e = l.endLocked(x, f.Header)
		if len(f.Payload) > 0 && !e.stream {
			e.inline = l.up
		}
	}
	up := l.up
	st := l.streams[nameOf(x.Key)]
	l.mu.Unlock()
	if st != nil {
		st.exited(x)
	}
	if up != nil && e != nil {
		up.ended(e, f.Payload)
	}
}

// acked takes the server's word, on session s, that ends are durable; the keeper forgets those whose output is safe,
// too.
func (l *ledger) acked(s *session, keys []wire.Key) {
	l.mu.Lock()
	var forget, flowing []wire.Key
	var streams []*stepStream
	for _, k := range keys {
		n := nameOf(k)
		e := l.ended[n]
		if e == nil {
			forget = append(forget, k) // an old end told twice
			continue
		}
		e.acked = true
		switch {
		case e.inline != s: // its output is acknowledged apart
		case l.streams[n] == nil:
			e.logged = true
		default:
			flowing = append(flowing, e.exited.Key)
		}
		if e.logged {
			forget = append(forget, e.exited.Key)
			streams = append(streams, l.dropLocked(n))
		}
	}
	l.mu.Unlock()
	l.forget(forget, streams...)
	for _, k := range flowing {
		l.logged(k)
	}
}

// logged notes that a launch's output is where it should be. What goes to srun is when srun has it.
func (l *ledger) logged(k wire.Key) {
	n := nameOf(k)
	l.mu.Lock()
	flow := l.streams[n]
	l.mu.Unlock()
	if flow != nil && flow.busy() {
		return
	}
	l.mu.Lock()
	e := l.ended[n]
	if e == nil {
		if r := l.running[n]; r != nil {
			r.logged = true // its end is under way
		}
		l.mu.Unlock()
		return
	}
	e.logged = true
	acked := e.acked
	var st *stepStream
	if acked {
		st = l.dropLocked(n)
	}
	l.mu.Unlock()
	if acked {
		l.forget([]wire.Key{e.exited.Key}, st)
	}
}

// dropLocked takes an end out of the ledger and gives its streams, if it had any, for forget: streams use the ledger
// under their own lock, so theirs is never taken under ours.
func (l *ledger) dropLocked(n name) *stepStream {
	st := l.streams[n]
	delete(l.ended, n)
	delete(l.streams, n)
	return st
}

// forget lets go of streams that are over and tells the keeper to forget ends.
func (l *ledger) forget(keys []wire.Key, streams ...*stepStream) {
	for _, st := range streams {
		if st != nil {
			st.forgotten()
		}
	}
	if len(keys) == 0 {
		return
	}
	if l.forgot != nil {
		l.forgot(keys)
	}
	l.mu.Lock()
	down := l.down
	l.mu.Unlock()
	if down != nil {
		_ = down.Send(wire.TypeAckExit, wire.AckExit{Keys: keys}) // a keeper that did not hear it tells the end again
	}
}

// holds reports whether a launch, named as Key.String does, runs or has an end that is not yet told.
func (l *ledger) holds(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.running {
		if r.key.String() == key {
			return true
		}
	}
	for _, e := range l.ended {
		if e.exited.Key.String() == key {
			return true
		}
	}
	return false
}

// jobs lists what runs.
func (l *ledger) jobs() map[core.JobID]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	jobs := map[core.JobID]bool{}
	for n := range l.running {
		jobs[n.job] = true
	}
	return jobs
}

// call asks the keeper and waits for its answer. ask gets the ref to put into the header.
func (l *ledger) call(done <-chan struct{}, t wire.Type, ask func(ref uint64) any) (wire.Frame, error) {
	ch := make(chan wire.Frame, 1)
	l.mu.Lock()
	down := l.down
	if down == nil {
		l.mu.Unlock()
		return wire.Frame{}, errNoKeeper
	}
	l.refs++
	ref := localRef | l.refs
	l.calls[ref] = ch
	l.mu.Unlock()
	err := errNoKeeper // also when the stream is found broken: another keeper will be there
	if down.Send(t, ask(ref)) == nil {
		select {
		case f, ok := <-ch:
			if ok {
				return f, nil
			}
		case <-done:
			err = errors.New("the session ended")
		}
	}
	l.mu.Lock()
	delete(l.calls, ref)
	l.mu.Unlock()
	return wire.Frame{}, err
}

// answer delivers the answer to a call, or tells that it was none of the agent's own.
func (l *ledger) answer(ref uint64, f wire.Frame) bool {
	if ref&localRef == 0 {
		return false
	}
	l.mu.Lock()
	ch := l.calls[ref]
	delete(l.calls, ref)
	l.mu.Unlock()
	if ch != nil {
		ch <- f
	}
	return true
}

// send sends something of no consequence to the keeper.
func (l *ledger) send(t wire.Type, header any, payload ...[]byte) error {
	l.mu.Lock()
	down := l.down
	l.mu.Unlock()
	if down == nil {
		return errNoKeeper
	}
	return down.Send(t, header, payload...)
}

// fence kills the jobs chosen, at once, and says why.
func (l *ledger) fence(silence time.Duration, chosen func(job core.JobID) bool) {
	var jobs []wire.JobRef
	l.mu.Lock()
	for n, r := range l.running {
		if !r.fenced && chosen(n.job) {
			r.fenced = true
			jobs = append(jobs, wire.JobRef{Job: n.job, Attempt: n.attempt})
		}
	}
	l.mu.Unlock()
	slices.SortFunc(jobs, func(a, b wire.JobRef) int {
		return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Attempt, b.Attempt))
	})
	for _, j := range slices.Compact(jobs) { // a job may have several steps here
		l.log.Warn("fence: killing a job", "job", j.Job, "attempt", j.Attempt, "silence", silence)
		k := wire.Kill{
			Job: j.Job, Attempt: j.Attempt, Grace: -1, Cause: causeFenced,
			Reason: "no word from the server for " + silence.Round(time.Second).String(),
		}
		header, _ := json.Marshal(k) // plain fields: cannot fail
		if err := l.pass(wire.Frame{Type: wire.TypeKill, Header: header}, j.Job, j.Attempt); err != nil {
			l.log.Error("fence: kill not passed on", "job", j.Job, "err", err)
		}
	}
}
