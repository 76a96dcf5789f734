package agent

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
	"bireme.dev/bireme/internal/wire/direct"
)

// streamTimeout is how long a server that does not know a running step's stream is asked again before its reader
// counts as gone: it may have been started since, and srun has to find it too.
const streamTimeout = time.Minute

// lastWords is how long the last frames of a step may take to be read.
const lastWords = 30 * time.Second

// lane is one stream of one task.
type lane struct{ task, fd int }

// item is a frame on its way to srun.
type item struct {
	t       wire.Type
	header  any
	payload []byte
	ack     *wire.DataAck // to the keeper, once it is sent
	frame   wire.Frame    // what payload is in, free once it is sent
}

// stepStream carries the stdio of a step between its keeper and the server, which joins it to the waiting srun. What
// the keeper sends waits here, at most a window a stream, until the connection is there.
type stepStream struct {
	a   *Agent
	key wire.Key

	mu    sync.Mutex
	ranks []int32
	got   map[lane]int64 // bytes received from the keeper
	queue []item
	wake  chan struct{} // something is in the queue
	room  chan struct{} // some input was acknowledged
	told  chan struct{} // there is a token
	token string
	near  *wire.Direct  // how srun is reached without the server; nil: it is not
	far   bool          // it was reached by the server
	open  bool          // somebody dials or copies
	over  bool          // the last frame is in the queue
	gone  chan struct{} // closed when the step is forgotten
	input map[int]*inputLane
	split bool          // what goes to all goes to each in its lane: some have had input of their own
	eaten map[int]int64 // input consumed by each task
	seq   int64         // srun's last frame of input that was passed on
	// readers is how many tasks have an input: all, or the one that has the terminal.
	readers int
	closed  bool
}

// inputLane is standard input on its way to a task (-1: all of them).
type inputLane struct {
	sent, acked int64
	unacked     []byte // sent from acked on, for a keeper that comes back
	eof         bool
}

// take notes that all tasks of the lane have consumed their input up to an offset.
func (in *inputLane) take(offset int64) {
	if n := offset - in.acked; n > 0 && n <= int64(len(in.unacked)) {
		in.unacked, in.acked = in.unacked[n:], offset
	}
}

func (a *Agent) stream(k wire.Key) *stepStream {
	a.ledger.mu.Lock()
	defer a.ledger.mu.Unlock()
	n := nameOf(k)
	st := a.ledger.streams[n]
	if st == nil {
		st = &stepStream{
			a: a, key: k, got: map[lane]int64{}, wake: make(chan struct{}, 1),
			room: make(chan struct{}, 1), told: make(chan struct{}, 1),
			gone: make(chan struct{}), input: map[int]*inputLane{}, eaten: map[int]int64{},
		}
		if r := a.ledger.running[n]; r != nil {
			st.ranks, st.readers, st.key = r.flow.Ranks, r.flow.Readers, r.key
		}
		a.ledger.streams[n] = st
	}
	return st
}

func (st *stepStream) launched(f wire.Flow) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.ranks, st.readers = f.Ranks, f.Readers
}

// found takes up the streams of a step that an agent before us started. srun may not have learned of the start, nor of
// the tasks that have ended since; it takes both twice.
func (a *Agent) found(f wire.Flow) {
	if a.streamOf(f.Key) == nil {
		st := a.stream(f.Key)
		st.launched(f)
		st.taken(f)
		st.started()
		st.open = true
		a.work.Go(func() { st.run(a.life) }) // before the server says whereto: until then its end is not forgotten
	}
	for _, x := range f.Exits {
		a.stream(f.Key).taskExited(x)
	}
}

// taken notes how much input each task was sent by an agent before us. Where that differs, what goes to all goes to
// each.
func (st *stepStream) taken(f wire.Flow) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.seq = f.Seq
	have := f.Have
	for task, at := range have {
		st.split = st.split || at != have[0]
		st.input[task] = &inputLane{sent: at, acked: at}
	}
	if len(have) > 0 && !st.split {
		st.input = map[int]*inputLane{-1: st.input[0]}
	}
}

// busy reports whether somebody still carries the step's streams: the keeper must not forget what it holds of them.
func (st *stepStream) busy() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.open
}

func (st *stepStream) rank(task int) int32 {
	if task >= 0 && task < len(st.ranks) {
		return st.ranks[task]
	}
	return int32(task)
}

// task is the task of a rank on this node, -1 for all; ok is false for a rank of another node.
func (st *stepStream) task(rank int32) (task int, ok bool) {
	if rank < 0 {
		return -1, true
	}
	if len(st.ranks) == 0 {
		return int(rank), true
	}
	task = slices.Index(st.ranks, rank)
	return task, task >= 0
}

func (st *stepStream) push(i item) {
	st.queue = append(st.queue, i)
	poke(st.wake)
}

func poke(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// data takes output from the keeper; what was had before is dropped.
func (st *stepStream) data(d wire.Data, f wire.Frame) {
	payload := f.Payload
	st.mu.Lock()
	defer st.mu.Unlock()
	at := lane{d.Task, d.FD}
	have, known := st.got[at]
	if !known {
		have = d.Offset // an agent that came later takes up what was not acknowledged
	}
	if d.Offset > have {
		st.a.log.Error("a gap in a step's output", "job", st.key.Job, "step", st.key.Step, "offset", d.Offset, "have", have)
		have = d.Offset
	}
	if skip := have - d.Offset; skip > 0 {
		payload = payload[min(skip, int64(len(payload))):]
	}
	have += int64(len(payload))
	st.got[at] = have
	header := wire.IOHeader{Rank: st.rank(d.Task), FD: int8(d.FD)}
	ack := &wire.DataAck{Key: st.key, Task: d.Task, FD: d.FD, Offset: have}
	if len(payload) > 0 {
		st.push(item{t: wire.TypeIO, header: header, payload: payload, ack: ack, frame: f})
	}
	if d.EOF {
		st.push(item{t: wire.TypeIO, header: header, ack: ack})
	}
}

func (st *stepStream) taskExited(x wire.TaskExited) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.push(item{t: wire.TypeTaskExit, header: wire.TaskExit{
		Rank: st.rank(x.Task), Node: st.a.id.name,
		Exit: core.Exit{Code: int32(x.ExitCode), Signal: int32(x.Signal)},
	}})
}

// meet passes on what the node's tasks put before a fence. The keeper repeats what is not answered: of what is the same
// the last one waits for srun. The first in the queue may be on its way.
func (st *stepStream) meet(m wire.Meet, payload []byte) {
	st.mu.Lock()
	defer st.mu.Unlock()
	h := wire.StepMeet{Node: st.a.id.name, N: m.N, Err: m.Err, Op: m.Op, Nodes: m.Nodes}
	if n := len(st.queue); n > 1<<16 {
		return
	} else if n > 1 {
		st.queue = st.queue[:1+len(slices.DeleteFunc(st.queue[1:], func(i item) bool { return i.header == any(h) }))]
	}
	st.push(item{t: wire.TypeStepMeet, header: h, payload: payload})
}

func (st *stepStream) started() {
	st.mu.Lock()
	defer st.mu.Unlock()
	for i := range max(1, len(st.ranks)) {
		st.push(item{t: wire.TypeTaskStart, header: wire.TaskExit{Rank: st.rank(i), Node: st.a.id.name}})
	}
}

// exited queues the last frame.
func (st *stepStream) exited(x wire.Exited) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.over {
		return
	}
	st.push(item{t: wire.TypeStepExit, header: wire.TaskExit{
		Rank: -1, Node: st.a.id.name,
		Exit: core.Exit{Code: int32(x.ExitCode), Signal: int32(x.Signal)}, Cause: string(x.Cause), Message: x.Message,
	}})
	st.over = true
	poke(st.room) // nobody takes input any more
}

// forgotten lets go when the server has the step's end: what srun has not taken within a while is dropped.
func (st *stepStream) forgotten() {
	st.mu.Lock()
	defer st.mu.Unlock()
	if !st.closed {
		st.closed = true
		close(st.gone)
	}
}

// acked takes the keeper's word how far a task has consumed its input. What goes to all counts by the slowest.
func (st *stepStream) acked(d wire.DataAck) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.eaten[d.Task] = d.Offset
	if in := st.input[d.Task]; in != nil {
		in.take(d.Offset)
	}
	if in := st.input[-1]; in != nil && len(st.eaten) >= st.readers {
		least := d.Offset
		for _, at := range st.eaten {
			least = min(least, at)
		}
		in.take(least)
	}
	poke(st.room)
}

// apart gives each task a lane of its own, which begins where the one to all is: from there on they may differ.
func (st *stepStream) apart() {
	st.split = true
	all := st.input[-1]
	if all == nil {
		return
	}
	delete(st.input, -1)
	for task := range st.readers {
		in := *all
		in.take(st.eaten[task])
		st.input[task] = &in
	}
}

// lane returns the input of a task (-1: all).
func (st *stepStream) lane(task int) *inputLane {
	in := st.input[task]
	if in == nil {
		in = &inputLane{}
		st.input[task] = in
	}
	return in
}

// again sends a new keeper's connection the input it may not have.
func (st *stepStream) again() {
	st.mu.Lock()
	defer st.mu.Unlock()
	for task, in := range st.input {
		if len(in.unacked) > 0 || in.eof {
			_ = st.a.ledger.send(wire.TypeData, wire.Data{Key: st.key, Task: task, Offset: in.acked, EOF: in.eof}, in.unacked)
		}
	}
}

// openStream begins to carry a step's stdio to the server under a token. One that is over and forgotten has nothing to
// carry.
func (a *Agent) openStream(o wire.OpenStream) {
	st := a.streamOf(o.Key)
	if st == nil {
		return
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	st.token = o.Token
	poke(st.told)
	if o.Direct != nil || !st.open { // one that is told again still knows the shorter way
		st.near = o.Direct
	}
	if st.open {
		return
	}
	st.open = true
	a.work.Go(func() { st.run(a.life) })
}

// run dials and copies until the step's last frame is sent, nobody wants it, or the agent ends.
func (st *stepStream) run(ctx context.Context) {
	defer func() {
		st.mu.Lock()
		st.open = false
		over := st.over
		st.mu.Unlock()
		if over && ctx.Err() == nil {
			st.a.ledger.logged(st.key)
		}
	}()
	broke := time.Now()
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		c, err := st.dial(ctx)
		if err == nil {
			began := time.Now()
			// No deadline for writes: who reads may pause for as long as they like (a pager), and what was written before is
			// known to be theirs. A reader that is gone closes the connection, or the kernel does.
			if err = st.copy(ctx, wire.NewConn(c)); err == nil {
				return
			}
			if time.Since(began) > time.Second {
				wait = 20 * time.Millisecond
			}
		}
		if ctx.Err() != nil {
			return
		}
		refused := answered(err) && core.CodeOf(err) != core.NotFound
		if !answered(err) { // whether srun is there is known when somebody answers
			broke = time.Now()
		}
		if refused || time.Since(broke) > streamTimeout {
			st.a.log.Info("nobody reads a step's streams any more", "job", st.key.Job, "step", st.key.Step, "err", err)
			_ = st.a.ledger.send(wire.TypeStreamDrop, wire.StreamDrop{Key: st.key}) // without a keeper there is nothing to drop
			return
		}
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-t.C:
		case <-st.told:
		}
		t.Stop()
	}
}

// dial reaches srun: directly, or, when that fails, by the server. Once that was the way it is tried first.
func (st *stepStream) dial(ctx context.Context) (net.Conn, error) {
	st.mu.Lock()
	far := st.far
	st.mu.Unlock()
	if !far {
		if c := st.dialSrun(ctx); c != nil {
			return c, nil
		}
	}
	c, err := st.dialServer(ctx)
	if err == nil {
		st.mu.Lock()
		st.far = true
		st.mu.Unlock()
	} else if far && !answered(err) {
		if c := st.dialSrun(ctx); c != nil {
			return c, nil
		}
	}
	return c, err
}

// answered reports whether an error is a server's word on a stream.
func answered(err error) bool {
	return slices.Contains([]core.Code{core.NotFound, core.Gone, core.Denied, core.Conflict}, core.CodeOf(err))
}

// dialSrun reaches srun directly, or gives nil.
func (st *stepStream) dialSrun(ctx context.Context) net.Conn {
	st.mu.Lock()
	near := st.near
	st.mu.Unlock()
	if near == nil {
		return nil
	}
	c, err := direct.Dial(ctx, near, st.a.id.name)
	if err != nil {
		st.a.log.Debug("srun is not reached directly", "job", st.key.Job, "step", st.key.Step, "err", err)
		return nil
	}
	return c
}

// dialServer reaches srun by the server.
func (st *stepStream) dialServer(ctx context.Context) (net.Conn, error) {
	st.mu.Lock()
	token := st.token
	st.mu.Unlock()
	if token != "" {
		c, _, err := st.a.up.Upgrade(ctx, wire.PathStream+token, "bireme-stream")
		return c, err
	}
	// We were started since srun's key was told.
	st.a.ledger.mu.Lock()
	away := st.a.ledger.up == nil
	st.a.ledger.mu.Unlock()
	if away {
		return nil, core.Errorf(core.Unavailable, "no server tells whether srun is there")
	}
	return nil, core.Errorf(core.NotFound, "the server knows of no srun")
}

// copy carries frames both ways. A nil error means that all has been sent.
func (st *stepStream) copy(ctx context.Context, c *wire.Conn) error {
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	broken := make(chan error, 1)
	go func() { broken <- st.read(ctx, c) }() // ends with c, which copy closes
	defer func() {
		c.Close()
		<-broken
	}()
	st.mu.Lock()
	at := wire.InputAt{Node: st.a.id.name, Seq: st.seq, Again: true}
	st.mu.Unlock()
	if err := c.Send(wire.TypeInputAt, at); err != nil {
		return err
	}
	for {
		st.mu.Lock()
		var next item
		some := len(st.queue) > 0
		if some {
			next = st.queue[0]
		}
		st.mu.Unlock()
		if !some {
			select {
			case <-st.wake:
				continue
			case err := <-broken:
				broken <- err
				return err
			case <-st.gone:
				st.mu.Lock()
				some = len(st.queue) > 0 // the last frames may have come just before
				st.mu.Unlock()
				if some {
					continue
				}
				return nil
			}
		}
		if err := c.Send(next.t, next.header, next.payload); err != nil {
			return err
		}
		st.mu.Lock()
		st.queue[0] = item{}
		st.queue = st.queue[1:]
		st.mu.Unlock()
		next.frame.Free()
		if next.ack != nil {
			_ = st.a.ledger.send(wire.TypeDataAck, *next.ack) // a keeper that did not hear it repeats, and we drop
		}
		if next.t == wire.TypeStepExit {
			// The other end hangs up when it has it. To do so here would throw away what is still on its way if input
			// lies unread.
			late := time.NewTimer(lastWords)
			defer late.Stop()
			select {
			case err := <-broken:
				broken <- err
			case <-late.C:
			case <-ctx.Done():
			}
			return nil
		}
	}
}

// read takes srun's frames.
func (st *stepStream) read(ctx context.Context, c *wire.Conn) error {
	for {
		f, err := c.Next()
		if err != nil {
			return err
		}
		switch f.Type {
		case wire.TypeInput:
			var h wire.IOHeader
			if err := f.Decode(&h); err != nil {
				return err
			}
			if err := st.feed(ctx, h, f.Payload); err != nil {
				return err
			}
		case wire.TypeStepSignal:
			var s wire.StepSignal
			if err := f.Decode(&s); err != nil {
				return err
			}
			err = st.a.ledger.send(wire.TypeSignal,
				wire.Signal{Job: st.key.Job, Attempt: st.key.Attempt, Step: st.key.Step, Number: int(s.Signal)})
		case wire.TypeStepMeet:
			var m wire.StepMeet
			if err := f.Decode(&m); err != nil {
				return err
			}
			err = st.a.ledger.send(wire.TypeMeet, wire.Meet{Key: st.key, N: m.N, Err: m.Err, Op: m.Op}, f.Payload)
		case wire.TypeWindow:
			var w wire.Window
			if err := f.Decode(&w); err != nil {
				return err
			}
			err = st.a.ledger.send(wire.TypeResize, wire.Resize{Key: st.key, Rows: w.Rows, Cols: w.Cols})
		default:
			return fmt.Errorf("srun sent a frame of type %d", f.Type)
		}
		if err != nil {
			st.a.log.Debug("order of srun not passed on", "job", st.key.Job, "step", st.key.Step, "err", err)
		}
	}
}

// feed passes input on, and waits while the task has not taken what it was sent. Empty input is its end. What was had
// before a stream was opened again is dropped, and what comes after a gap: srun is about to send all again.
func (st *stepStream) feed(ctx context.Context, h wire.IOHeader, data []byte) error {
	st.mu.Lock()
	task, mine := st.task(h.Rank)
	fresh := h.Seq == 0 || h.Seq == st.seq+1
	if fresh && mine && task >= 0 && !st.split {
		st.apart()
	}
	tasks := []int{task}
	if task < 0 && st.split {
		tasks = tasks[:0]
		for t := range st.readers {
			tasks = append(tasks, t)
		}
	}
	st.mu.Unlock()
	if !fresh {
		return nil
	}
	told := false
	for i, task := range tasks {
		seq := int64(0)
		if i == len(tasks)-1 {
			seq = h.Seq
		}
		if mine {
			passed, err := st.feedTask(ctx, task, seq, data)
			if err != nil {
				return err
			}
			told = passed && seq != 0
		}
	}
	if h.Seq == 0 {
		return nil
	}
	if !told { // nothing of it is for this node, or nobody takes it any more
		_ = st.a.ledger.send(wire.TypeData, wire.Data{Key: st.key, Task: wire.NoTask, Seq: h.Seq})
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	st.seq = h.Seq
	st.push(item{t: wire.TypeInputAt, header: wire.InputAt{Node: st.a.id.name, Seq: h.Seq}})
	return nil
}

// feedTask passes input on to one task (-1: all) and reports whether it was wanted.
func (st *stepStream) feedTask(ctx context.Context, task int, seq int64, data []byte) (passed bool, err error) {
	eof := len(data) == 0
	for {
		st.mu.Lock()
		in := st.lane(task)
		if in.eof || st.over {
			st.mu.Unlock()
			return false, nil
		}
		if len(in.unacked) < wire.StreamWindow {
			d := wire.Data{Key: st.key, Task: task, Offset: in.sent, EOF: eof, Seq: seq}
			in.sent += int64(len(data))
			in.unacked = append(in.unacked[:len(in.unacked):len(in.unacked)], data...)
			in.eof = eof
			st.mu.Unlock()
			_ = st.a.ledger.send(wire.TypeData, d, data) // a keeper that comes back gets it from unacked
			return true, nil
		}
		st.mu.Unlock()
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-st.gone:
			return false, nil
		case <-st.room:
		}
	}
}
