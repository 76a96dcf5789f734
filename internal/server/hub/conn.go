package hub

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/ca"
	"bireme.dev/bireme/internal/server/logstore"
	"bireme.dev/bireme/internal/store"
	"bireme.dev/bireme/internal/wire"
)

// Bounds of a connection.
const (
	helloTimeout = 10 * time.Second
	maxReports   = 128     // reports to the engine under way; the reader waits beyond
	flushAt      = 1 << 20 // a batch of frames is written when it has grown to this
)

// conn is one agent's stream.
type conn struct {
	h    *Hub
	who  ca.Node
	c    net.Conn
	r    *wire.Reader
	ctx  context.Context
	stop context.CancelCauseFunc

	protocol int // the version of the stream that both ends speak, from the hello on

	reports chan report // to settle, in the order they were sent to the engine
	// The reader's own:
	beats int64                    // heartbeats received
	skew  time.Duration            // of the node's clock, as it last told
	late  map[logstore.Key]lateLog // ended here, with output still to come

	mu      sync.Mutex
	orders  []order
	acks    []wire.Key
	leaving bool
	wake    chan struct{} // capacity 1: something is queued
}

// Serve runs one agent's stream on c until it breaks, ctx ends or the hub is shut down. The certificate has been
// verified; who is what it says.
func (h *Hub) Serve(ctx context.Context, c net.Conn, who ca.Node) error {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return errors.Join(errors.New("the server stops"), c.Close())
	}
	h.conns.Add(1)
	h.mu.Unlock()
	defer h.conns.Done()

	k := &conn{
		h: h, who: who, c: c, r: wire.NewSmallReader(c), reports: make(chan report, maxReports),
		wake: make(chan struct{}, 1),
		late: map[logstore.Key]lateLog{},
	}
	k.ctx, k.stop = context.WithCancelCause(ctx)
	// Closing the connection is what ends reader and writer, whoever wants it.
	unhook := context.AfterFunc(k.ctx, func() { _ = c.Close() })
	defer unhook()
	settled := make(chan struct{})
	go func() {
		defer close(settled)
		if err := k.guarded(k.commitReports); err != nil {
			k.disconnect(err)
		}
	}()
	err := k.guarded(k.run)
	k.disconnect(err)
	h.detach(k)
	<-settled
	_ = c.Close() // it may be closed already
	return err
}

func (k *conn) run() error {
	hello, err := k.hello()
	if err != nil {
		return err
	}
	k.h.attach(k, hello)
	// From here on a key that is replaced or revoked cuts the connection; it may have been a moment ago.
	if n, known := k.h.engine.Snapshot().Node(k.who.Name); k.who.Key != "" && (!known || !n.Pin.Takes(k.who.Key)) {
		return errors.New("the node's key was revoked or replaced")
	}
	welcome, err := k.register(hello)
	if err != nil {
		return err
	}
	if err := k.write(func(b []byte) ([]byte, error) {
		return wire.AppendFrame(b, wire.TypeWelcome, welcome)
	}); err != nil {
		return err
	}
	k.reconcile(hello)
	k.openStreams(hello)
	volumeConn{k}.order()
	k.sendPending()
	k.h.log.Info("node connected", "node", k.who.Name, "running", len(hello.Running), "ended", len(hello.Ended),
		"version", hello.Version)
	writer := make(chan struct{})
	go func() {
		defer close(writer)
		k.disconnect(k.guarded(k.writeLoop))
	}()
	err = k.readLoop()
	k.disconnect(err)
	<-writer
	if cause := context.Cause(k.ctx); cause != nil {
		err = cause
	}
	return err
}

// disconnect ends the connection; the first cause stays.
func (k *conn) disconnect(err error) {
	if err == nil {
		err = net.ErrClosed
	}
	k.stop(err)
}

func (k *conn) hello() (*wire.NodeHello, error) {
	if err := k.c.SetDeadline(time.Now().Add(helloTimeout)); err != nil {
		return nil, err
	}
	f, err := k.r.Next()
	if err != nil {
		return nil, fmt.Errorf("waiting for the agent's hello: %w", err)
	}
	if f.Type != wire.TypeNodeHello {
		return nil, fmt.Errorf("the agent began with a frame of type %d", f.Type)
	}
	hello := new(wire.NodeHello)
	if err := f.Decode(hello); err != nil {
		return nil, err
	}
	if hello.Node != k.who.Name {
		return nil, fmt.Errorf("the certificate is %s's, the hello %s's", k.who.Name, hello.Node)
	}
	if k.protocol, err = wire.Agree(hello.Oldest, hello.Protocol); err != nil {
		return nil, err
	}
	return hello, k.c.SetDeadline(time.Time{})
}

// attach makes k the node's connection; an older one is half-open and cut. From here on orders are queued for k.
func (h *Hub) attach(k *conn, hello *wire.NodeHello) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := h.node(k.who.Name)
	if n.conn != nil {
		n.conn.disconnect(errors.New("the agent connected again"))
	}
	n.conn, n.heard = k, time.Now()
	if hello.Now != 0 {
		n.skew = hello.Now.Go().Sub(n.heard)
	}
	if h.closed {
		k.queue(order{typ: wire.TypeBye})
		k.leave()
	}
}

func (h *Hub) detach(k *conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := h.nodes[k.who.Name]; n != nil && n.conn == k {
		n.conn = nil
		h.log.Info("node disconnected", "node", k.who.Name, "err", context.Cause(k.ctx))
	}
}

// register makes the ends the agent brings durable, then the node itself, and gives the welcome.
func (k *conn) register(hello *wire.NodeHello) (*wire.Welcome, error) {
	if hello.Now != 0 {
		k.skew = time.Until(hello.Now.Go())
	}
	in := &state.Register{
		Node: hello.Node, Hardware: hello.Hardware, Host: hello.Host, Roles: k.who.Roles, TrustRoot: k.who.TrustRoot,
		Fleet: hello.Fleet, Features: hello.Features, Trust: hello.Trust,
	}
	for _, r := range hello.Running {
		in.Running = append(in.Running, state.StepRef{Job: r.Job, Attempt: r.Attempt, Step: r.Step})
	}
	// The ends go with it: were they told before, a job could start where one ended, and be lost again if the node says
	// next that it was restarted.
	var logs []wire.LogAck
	for i := range hello.Ended {
		x := &hello.Ended[i]
		if have, stream := k.logEnd(x); stream {
			logs = append(logs, wire.LogAck{Key: x.Key, Offset: have}) // an agent that was started since sends on from there
		}
		in.Ended = append(in.Ended, *k.endOf(x))
	}
	reply, err := engine.Urgent(k.ctx, k.h.engine, in)
	if err != nil {
		return nil, fmt.Errorf("register: %w", err)
	}
	if !k.h.engine.HoldsLease() { // the welcome renews fences, and a node that has not changed is not written
		return nil, errors.New("register: this server leads no more")
	}
	for i := range hello.Ended {
		x := &hello.Ended[i]
		k.ack(x.Key)
		k.epilog(x)
	}
	w := k.h.welcome(k.protocol)
	w.Logs = logs
	for _, r := range reply.Kill {
		w.Kill = append(w.Kill, wire.Key{Job: r.Job, Attempt: r.Attempt, Step: r.Step, Node: k.who.Name})
	}
	snap := k.h.engine.Snapshot()
	for _, r := range hello.Running {
		j, ok := snap.Job(r.Job)
		if !ok || r.Step != wire.BatchStep || j.Attempt != r.Attempt {
			continue
		}
		if f := j.Spec.More().Fence; f > 0 {
			w.Fences = append(w.Fences, wire.JobFence{Job: j.ID, Fence: f.Duration()})
		}
		if j.Spec.IO.Stream {
			end, err := k.h.logs.Have(logstore.Key{Job: j.ID, Attempt: r.Attempt})
			if err != nil {
				k.h.log.Warn("log store", "job", j.ID, "err", err)
				continue
			}
			w.Logs = append(w.Logs, wire.LogAck{Key: r, Offset: end})
		}
	}
	return w, nil
}

// queue adds an order. An agent that does not drain its queue is cut: after its return everything is derived again.
func (k *conn) queue(o order) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.orders) >= maxQueue {
		k.disconnect(errors.New("the agent does not take its orders"))
		return
	}
	k.orders = append(k.orders, o)
	k.wakeWriter()
}

func (k *conn) ack(key wire.Key) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.acks = append(k.acks, key)
	k.wakeWriter()
}

// leave lets the writer end the connection when its queue is empty.
func (k *conn) leave() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.leaving = true
	k.wakeWriter()
}

func (k *conn) wakeWriter() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// writeLoop writes what is queued; what is queued during a write leaves together in the next.
func (k *conn) writeLoop() error {
	for {
		select {
		case <-k.wake:
		case <-k.ctx.Done():
			return context.Cause(k.ctx)
		}
		k.mu.Lock()
		orders, acks, leaving := k.orders, k.acks, k.leaving
		k.orders, k.acks = nil, nil
		k.mu.Unlock()
		if err := k.writeAll(orders, acks); err != nil {
			return err
		}
		if leaving {
			return errors.New("the server stops")
		}
	}
}

func (k *conn) writeAll(orders []order, acks []wire.Key) error {
	return k.write(func(b []byte) (_ []byte, err error) {
		if len(acks) > 0 {
			if b, err = wire.AppendFrame(b, wire.TypeAckExit, wire.AckExit{Keys: acks}); err != nil {
				return b, err
			}
		}
		for i := range orders {
			if b, err = k.append(b, &orders[i]); err != nil {
				return b, err
			}
			if len(b) >= flushAt {
				if err := k.flush(b); err != nil {
					return b, err
				}
				b = b[:0]
			}
		}
		return b, nil
	})
}

// append encodes an order. A launch whose blobs are gone ends the job; one whose blobs cannot be had now ends the
// connection, and is derived again after it.
func (k *conn) append(b []byte, o *order) ([]byte, error) {
	if o.launch == nil {
		return wire.AppendFrame(b, o.typ, o.header, o.payload...)
	}
	l, err := k.h.launches.jobLaunch(k.ctx, o.launch, k.who.Name)
	switch {
	case err == nil:
		return wire.AppendFrame(b, wire.TypeLaunch, l, l.Payload()...)
	case errors.As(err, new(*envError)):
		j := o.launch
		k.report(&state.Exited{
			Node: k.who.Name, Job: j.ID, Attempt: j.Attempt, Step: holder(j, k.who.Name), Cause: state.CauseLaunch,
			Message: err.Error(), JobDone: true,
		}, nil)
		return b, nil
	case errors.Is(err, store.ErrNotFound):
		j := o.launch
		k.h.log.Error("launch without its blob", "job", j.ID, "err", err)
		k.report(&state.Exited{
			Node: k.who.Name, Job: j.ID, Attempt: j.Attempt, Step: holder(j, k.who.Name),
			Cause:   state.CauseLaunch,
			Message: "its script, environment or files are not in the store any more", JobDone: true,
		}, nil)
		return b, nil
	}
	return b, err
}

var buffers = sync.Pool{New: func() any { return new([]byte) }}

// write lets fill make a batch of frames and writes it.
func (k *conn) write(fill func([]byte) ([]byte, error)) error {
	p := buffers.Get().(*[]byte)
	b, err := fill((*p)[:0])
	if err == nil && len(b) > 0 {
		err = k.flush(b)
	}
	if cap(b) <= 2*flushAt {
		*p = b
		buffers.Put(p)
	}
	return err
}

func (k *conn) flush(b []byte) error {
	if err := k.c.SetWriteDeadline(time.Now().Add(k.h.cfg.ioTimeout())); err != nil {
		return err
	}
	_, err := k.c.Write(b)
	return err
}

// patience is how long a peer may take nothing and say nothing.
func (c *Config) ioTimeout() time.Duration { return max(c.SilentAfter, time.Second) }

// readLoop takes the agent's frames. A connection that is silent for too long is half-open.
func (k *conn) readLoop() error {
	for {
		if k.r.Buffered() == 0 {
			if err := k.c.SetReadDeadline(time.Now().Add(k.h.cfg.ioTimeout())); err != nil {
				return err
			}
		}
		f, err := k.r.Next()
		if err != nil {
			return err
		}
		if err := k.handleFrame(f); err != nil {
			return err
		}
	}
}
