package pmix

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Config describes a step to the tasks of one of its nodes.
type Config struct {
	Job       uint32
	Namespace string
	UID       uint32 // who may connect
	Size      int    // tasks on all nodes
	Nodes     []Placement
	Here      int // which of them this is
	// Send passes a message to srun, which passes it on; see Message. It does not wait.
	Send func(Message)
	// Abort is called when a task wants the whole step to end.
	Abort func(rank int32, code int, message string)
	// Patience is how long a call waits for a key of a task that has committed others; zero: 2 seconds.
	Patience time.Duration
	// Owner is who has the other end of a connection; nil: asked of the kernel.
	Owner func(net.Conn) (uint32, error)
}

// Bounds of what tasks may make the node keep.
const (
	maxMessage   = 4 << 20   // bytes of one message of a task, and so of what it has committed
	maxBytes     = 64 << 20  // of all tasks of a step on a node
	allBytes     = 512 << 20 // of all steps of a node
	maxQueue     = 4 << 20   // bytes that wait for a task to read them, beyond one message
	maxWaiting   = 128 << 20 // bytes of large parts, different ones, that wait for all tasks of a step on a node
	connsPerRank = 4         // a task may fork others that connect in its name
	maxCalls     = 1024      // of a connection that are not answered
	maxSets      = 4096      // different sets of tasks that fence
	maxFences    = 4096      // that are not over
	maxKey       = 511       // bytes of a key, as the standard has it
	maxKeys      = 1024      // of a task that are remembered
	smallMessage = 64 << 10  // bytes that every connection may send at a time
	maxLarge     = 8         // messages above that are read at once
	maxHandshake = 10 * time.Second
)

// total is how many bytes all steps of this process hold.
var total atomic.Int64

// Node serves the tasks of one node.
type Node struct {
	cfg      Config
	listener net.Listener
	large    chan struct{} // a large message that is read holds a place
	waits    backlog       // answers that are not read
	local    map[int32]int // rank -> local number
	where    map[int32]int // rank -> node

	mu     sync.Mutex
	ranks  map[int32]*rankState
	conns  map[*conn]struct{}
	fences []*fence
	counts map[string]int // fences of a set so far
	gets   []*get
	asks   map[int32]*ask // of other nodes' tasks
	info   map[dialect][]byte
	wanted map[int32]string // keys that other nodes wait for, of tasks here
	held   int64
	closed bool
	done   chan struct{} // closed with closed
}

// rankState is what is known of a task, here or elsewhere.
type rankState struct {
	conns     int
	finalized bool
	committed bool
	// What it committed, packed by itself: for tasks of its own node, and for those of others.
	dialect dialect
	near    []byte
	far     []byte
	// The keys of far and of near, once somebody has looked for one. vague: there may be more.
	keys  [2]map[string]bool
	vague [2]bool
}

// New listens for the tasks of a node.
func New(cfg Config) (*Node, error) {
	cfg.Patience = cmp.Or(cfg.Patience, 2*time.Second)
	if cfg.Owner == nil {
		cfg.Owner = ownerOf
	}
	n := &Node{
		cfg: cfg, local: map[int32]int{}, where: map[int32]int{}, ranks: map[int32]*rankState{},
		conns: map[*conn]struct{}{}, counts: map[string]int{}, asks: map[int32]*ask{}, info: map[dialect][]byte{},
		done: make(chan struct{}), large: make(chan struct{}, maxLarge),
		waits: backlog{most: maxWaiting},
	}
	for at, node := range cfg.Nodes {
		if len(node.Ranks) == 0 {
			return nil, fmt.Errorf("PMIx: node %s has no task", node.Name)
		}
		for i, r := range node.Ranks {
			n.where[r] = at
			if at == cfg.Here {
				n.local[r] = i
			}
		}
	}
	var err error
	if n.listener, err = net.Listen("tcp4", "127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("PMIx: %w", err)
	}
	go n.accept() // ends with Close
	return n, nil
}

// Env is what a task must find in its environment.
func (n *Node) Env(rank int32) []string {
	uri := n.cfg.Namespace + ".server." + strconv.Itoa(n.cfg.Here) + ".0;tcp4://" + n.listener.Addr().String()
	return []string{
		"PMIX_NAMESPACE=" + n.cfg.Namespace, "PMIX_RANK=" + strconv.Itoa(int(rank)),
		"PMIX_SERVER_URI41=" + uri, "PMIX_SERVER_URI4=" + uri, "PMIX_SERVER_URI3=" + uri, "PMIX_SERVER_URI21=" + uri,
		"PMIX_SECURITY_MODE=native", "PMIX_GDS_MODULE=hash", "PMIX_BFROP_BUFFER_TYPE=PMIX_BFROP_BUFFER_NON_DESC",
		"PMIX_HOSTNAME=" + n.cfg.Nodes[n.cfg.Here].Name, "PMIX_VERSION=" + version,
	}
}

// version is the release whose protocol is spoken.
const version = "4.2.2"

// Close ends all service.
func (n *Node) Close() {
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return
	}
	n.closed = true
	close(n.done)
	total.Add(-n.held)
	conns := make([]*conn, 0, len(n.conns))
	for c := range n.conns {
		conns = append(conns, c)
	}
	for _, g := range n.gets {
		g.stop()
	}
	n.gets = nil
	n.mu.Unlock()
	_ = n.listener.Close()
	for _, c := range conns {
		c.close()
	}
}

// accept takes connections, and at most a few for each task.
func (n *Node) accept() {
	most := connsPerRank*len(n.local) + 16
	for {
		raw, err := n.listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			select {
			case <-n.done:
				return
			case <-time.After(10 * time.Millisecond): // no descriptors are left for the moment
			}
			continue
		}
		c := newConn(n, raw)
		n.mu.Lock()
		if n.closed || len(n.conns) >= most {
			n.mu.Unlock()
			_ = raw.Close()
			continue
		}
		n.conns[c] = struct{}{}
		n.mu.Unlock()
		go c.serve() // ends when the task closes its end, or with Close
	}
}

// hold counts bytes that are kept until the step ends; negative ones are freed. The lock is held.
func (n *Node) hold(size int) error {
	add := int64(size)
	switch {
	case n.closed:
		return errors.New("the step has ended")
	case add <= 0:
	case n.held+add > maxBytes:
		return fmt.Errorf("the keys and values of a step have %d bytes at most", maxBytes)
	case total.Load()+add > allBytes:
		return fmt.Errorf("the keys and values of all steps of a node have %d bytes at most", allBytes)
	}
	n.held += add
	total.Add(add)
	return nil
}

// state is what is known of a rank of the step. The lock is held.
func (n *Node) state(rank int32) *rankState {
	s := n.ranks[rank]
	if s == nil {
		s = &rankState{}
		n.ranks[rank] = s
	}
	return s
}

// keep stores what a task committed: it commits everything each time. The lock is held.
func (n *Node) keep(rank int32, d dialect, near, far []byte) error {
	s := n.state(rank)
	if err := n.hold(len(near) + len(far) - len(s.near) - len(s.far)); err != nil {
		return err
	}
	s.committed, s.dialect = true, d
	s.near, s.far, s.keys = slices.Clone(near), slices.Clone(far), [2]map[string]bool{}
	return nil
}

// gone is called when a connection of a task has ended.
func (n *Node) gone(c *conn) {
	n.mu.Lock()
	delete(n.conns, c)
	n.gets = slices.DeleteFunc(n.gets, func(g *get) bool {
		if g.c == c {
			g.stop()
		}
		return g.c == c
	})
	var failed []*fence
	if c.named {
		s := n.state(c.rank)
		if s.conns--; s.conns == 0 && !s.finalized && !n.closed {
			failed = n.abandoned(c.rank)
		}
	}
	n.mu.Unlock()
	for _, f := range failed {
		n.failFence(f, fmt.Sprintf("task %d is gone", c.rank))
	}
}
