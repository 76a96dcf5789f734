package srun

import (
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"encoding/hex"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
	"bireme.dev/bireme/internal/wire/direct"
)

// door is where nodes reach this srun without the server between; nil: they do not.
type door struct {
	l   net.Listener
	tls *tls.Config
	ask client.Direct
}

// openDoor listens for nodes. What fails here costs speed, not the step: its streams then go by the server.
func openDoor() *door {
	if os.Getenv("BIREME_DIRECT") == "off" {
		return nil
	}
	cfg, print, err := direct.New()
	if err != nil {
		return nil
	}
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		return nil
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	var secret [16]byte
	_, _ = rand.Read(secret[:]) // never fails
	d := &door{l: l, tls: cfg, ask: client.Direct{Print: print, Secret: hex.EncodeToString(secret[:])}}
	for _, host := range direct.HostAddrs() {
		d.ask.Addrs = append(d.ask.Addrs, net.JoinHostPort(host, port))
	}
	if len(d.ask.Addrs) == 0 {
		_ = l.Close()
		return nil
	}
	return d
}

func (d *door) direct() *client.Direct {
	if d == nil {
		return nil
	}
	return &d.ask
}

// vars tell tasks where their srun is.
func (d *door) vars() []string {
	if d == nil {
		return nil
	}
	host, port, err := net.SplitHostPort(d.ask.Addrs[0])
	if err != nil {
		return nil
	}
	return []string{
		"SLURM_LAUNCH_NODE_IPADDR=" + host, "SLURM_SRUN_COMM_HOST=" + host, "SLURM_SRUN_COMM_PORT=" + port,
		"SLURM_STEP_LAUNCHER_PORT=" + port,
	}
}

func (d *door) close() {
	if d != nil {
		_ = d.l.Close()
	}
}

// link carries a step's frames: from each node directly, or by the server.
type link struct {
	hub    *wire.Conn     // under mu
	first  <-chan opening // nil: hub is what came of it
	resume resumer
	all    []core.NodeName
	door   *door
	part   int // of the step
	frames chan<- partFrame
	broken chan<- error
	quit   chan struct{}

	mu     sync.Mutex
	nodes  map[core.NodeName]*wire.Conn // nil: by the server, or not there yet
	came   map[core.NodeName]bool
	queue  []frame // for when all have come: the server would wait for those that have not
	moving bool    // somebody is sending what waited
	away   bool    // the server is, and held waits for it
	held   []frame
	moved  sync.Cond // some of what waited is sent
	intake
	closed bool
}

type frame struct {
	t       wire.Type
	header  any
	payload []byte
}

// newFrame keeps a frame: whose bytes they are uses them again.
func newFrame(t wire.Type, header any, payload [][]byte) frame {
	return frame{t, header, slices.Concat(payload...)}
}

func newLink(part int, hub *wire.Conn, nodes []core.NodeName, d *door, again resumer) *link {
	l := &link{
		part: part, hub: hub, door: d, quit: make(chan struct{}), all: nodes, resume: again, away: hub == nil,
		nodes: map[core.NodeName]*wire.Conn{}, came: map[core.NodeName]bool{}, intake: intake{fed: map[core.NodeName]int64{}},
	}
	l.moved.L = &l.mu
	for _, n := range nodes {
		l.nodes[n] = nil
	}
	return l
}

// start begins to read. All ends with close.
func (l *link) start() {
	go l.fromServer()
	if l.door == nil {
		return
	}
	go func() {
		for {
			c, err := l.door.l.Accept()
			if err != nil {
				return
			}
			go l.serve(c)
		}
	}()
}

// pass hands a frame to the pump and notes who is there.
func (l *link) pass(f wire.Frame, near bool) bool {
	switch f.Type {
	case wire.TypeInputAt:
		var at wire.InputAt
		if f.Decode(&at) == nil {
			l.inputAt(at, near)
		}
		return true
	case wire.TypeTaskStart, wire.TypeTaskExit, wire.TypeStepExit:
		var t wire.TaskExit
		if f.Decode(&t) == nil {
			l.arrived(t.Node)
		}
	}
	select {
	case l.frames <- partFrame{l.part, f}:
		return true
	case <-l.quit:
		return false
	}
}

// serve reads from a node that came to the door.
func (l *link) serve(raw net.Conn) {
	_ = raw.SetDeadline(time.Now().Add(5 * time.Second)) // somebody who is no node gets no longer
	c := wire.NewConn(direct.Server(raw, l.door.tls))
	defer c.Close()
	f, err := c.Next()
	var hello wire.DirectHello
	if err != nil || f.Type != wire.TypeDirectHello || f.Decode(&hello) != nil ||
		subtle.ConstantTimeCompare([]byte(hello.Secret), []byte(l.door.ask.Secret)) != 1 || !l.enter(hello.Node, c) {
		return
	}
	_ = raw.SetDeadline(time.Time{})
	for {
		f, err := c.Next()
		if err != nil || !l.pass(f, true) {
			l.leave(hello.Node, c)
			return
		}
		if f.Type == wire.TypeStepExit {
			return
		}
	}
}

// done takes a node away that has said its last: there is nothing more to hear from it, or to tell it. The server is
// told before srun can leave, or it would take the step for one that lost its srun.
func (l *link) done(node core.NodeName) {
	l.mu.Lock()
	near := l.nodes[node] != nil
	delete(l.nodes, node)
	delete(l.came, node) // or it would stand for one that has not come yet
	delete(l.fed, node)
	l.trim()
	l.mu.Unlock()
	if near {
		l.tell(node, "done")
	}
}

// enter takes a node's connection on; one that was there before is half open.
func (l *link) enter(node core.NodeName, c *wire.Conn) bool {
	l.mu.Lock()
	old, known := l.nodes[node]
	if !known || l.closed {
		l.mu.Unlock()
		return false
	}
	l.nodes[node] = c
	l.mu.Unlock()
	if old != nil {
		_ = old.Close()
	}
	l.tell(node, "direct")
	l.arrived(node)
	return true
}

func (l *link) leave(node core.NodeName, c *wire.Conn) {
	l.mu.Lock()
	mine := l.nodes[node] == c
	if mine {
		l.nodes[node] = nil
	}
	closed := l.closed
	l.mu.Unlock()
	if mine && !closed {
		l.tell(node, "gone")
		l.refeed(node) // what was sent it last is not known to have come
	}
}

// arrived notes that a node is there. When all are, what waited is sent.
func (l *link) arrived(node core.NodeName) {
	l.mu.Lock()
	if _, left := l.nodes[node]; left {
		l.came[node] = true
	}
	l.mu.Unlock()
	l.flush()
}

// flush sends what waited, once all have come. Whatever else is to be sent meanwhile waits behind it.
func (l *link) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.moving || len(l.came) < len(l.nodes) {
		return
	}
	l.moving = true
	for len(l.queue) > 0 {
		f := l.queue[0]
		l.queue = l.queue[1:]
		l.mu.Unlock()
		l.send(f.t, f.header, f.payload)
		l.mu.Lock()
	}
	l.moving = false
	l.moved.Broadcast()
}

// Send sends a frame to all nodes, once all have come.
func (l *link) Send(t wire.Type, header any, payload ...[]byte) error {
	l.mu.Lock()
	if len(l.came) < len(l.nodes) || l.moving || len(l.queue) > 0 {
		l.queue = append(l.queue, newFrame(t, header, payload))
		l.mu.Unlock()
		l.flush()
		return nil
	}
	l.mu.Unlock()
	l.send(t, header, payload...)
	return nil
}

// send sends a frame to all nodes. A break shows in the readers.
func (l *link) send(t wire.Type, header any, payload ...[]byte) {
	if t == wire.TypeInput {
		l.feed(newFrame(t, header, payload))
		return
	}
	l.mu.Lock()
	var near []*wire.Conn
	for _, c := range l.nodes {
		if c != nil {
			near = append(near, c)
		}
	}
	far := len(near) < len(l.nodes)
	l.mu.Unlock()
	for _, c := range near {
		_ = c.Send(t, header, payload...)
	}
	if far {
		l.toServer(newFrame(t, header, payload))
	}
}

func (l *link) close() {
	close(l.quit)
	l.mu.Lock()
	l.closed = true
	l.moved.Broadcast()
	var near []*wire.Conn
	for _, c := range l.nodes {
		if c != nil {
			near = append(near, c)
		}
	}
	l.mu.Unlock()
	if c := l.server(); c != nil {
		near = append(near, c)
	}
	for _, c := range near {
		_ = c.Finish(copyPatience)
	}
}
