package pmi

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// Config describes a step to the tasks of one of its nodes.
type Config struct {
	Job   string  // its name, e.g. "12.0"
	Size  int     // tasks on all nodes
	Ranks []int32 // of this node's tasks, by their local number
	// Mapping is what PMI_process_mapping says of all nodes; see Mapping.
	Mapping string
	// Exchange gives what all nodes put up to the n-th fence, this node's included. It is called once a fence, never twice
	// at a time, and may wait for the other nodes.
	Exchange func(n int, mine map[string]string) (all map[string]string, err error)
	// Abort is called when a task wants the whole step to end.
	Abort func(rank int32, code int, message string)
}

// Node serves the tasks of one node.
type Node struct {
	cfg Config

	mu       sync.Mutex
	cond     *sync.Cond
	keys     map[string]string // what everybody may read
	fresh    map[string]string // put here since the last fence
	attrs    map[string]string // of this node, PMI-2
	names    map[string]string // published
	held     int64             // bytes of all of them
	closed   bool
	waiting  int   // tasks at the fence
	left     int   // tasks that have not gone
	fence    int   // fences passed
	err      error // of the exchange: nobody gets past it any more
	sockets  []net.Conn
	children []*os.File
}

// Limits of what a task may store, so that a wild one does not eat the node's memory.
const (
	maxKey   = 256
	maxValue = 4096
	maxKeys  = 1 << 20
	maxBytes = 64 << 20  // of all keys and values of a step on a node
	allBytes = 512 << 20 // of all steps of a node
	maxLine  = 1 << 16
)

// total is how many bytes all steps of this process hold.
var total atomic.Int64

// hold counts bytes that a step keeps until it ends, or says that they are too many. The lock is held.
func (n *Node) hold(size int) error {
	add := int64(size)
	if n.held+add > maxBytes {
		return fmt.Errorf("the keys and values of a step have %d bytes at most", maxBytes)
	}
	if total.Add(add) > allBytes {
		total.Add(-add)
		return fmt.Errorf("the keys and values of all steps of a node have %d bytes at most", allBytes)
	}
	n.held += add
	return nil
}

// New makes the sockets of all tasks and begins to serve them.
func New(cfg Config) (*Node, error) {
	n := &Node{
		cfg: cfg, keys: map[string]string{}, fresh: map[string]string{}, attrs: map[string]string{},
		names: map[string]string{}, left: len(cfg.Ranks),
	}
	n.cond = sync.NewCond(&n.mu)
	for local := range cfg.Ranks {
		fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		if err != nil {
			n.Close()
			return nil, fmt.Errorf("a socket for task %d: %w", local, err)
		}
		ours := os.NewFile(uintptr(fds[0]), "pmi")
		conn, err := net.FileConn(ours)
		_ = ours.Close() // FileConn has its own
		n.children = append(n.children, os.NewFile(uintptr(fds[1]), "pmi-task"))
		if err != nil {
			n.Close()
			return nil, fmt.Errorf("a socket for task %d: %w", local, err)
		}
		n.sockets = append(n.sockets, conn)
	}
	for local, conn := range n.sockets {
		go n.serve(local, conn) // ends when the task closes its socket, or with Close
	}
	return n, nil
}

// Socket is the end that a task inherits. The caller closes it once the task has it.
func (n *Node) Socket(local int) *os.File { return n.children[local] }

// Env is what a task must find in its environment, with the number its socket has there.
func (n *Node) Env(local, fd int) []string {
	return []string{
		"PMI_FD=" + strconv.Itoa(fd), "PMI_JOBID=" + n.cfg.Job, "PMI_RANK=" + strconv.Itoa(int(n.cfg.Ranks[local])),
		"PMI_SIZE=" + strconv.Itoa(n.cfg.Size),
	}
}

// Close ends all service.
func (n *Node) Close() {
	n.mu.Lock()
	n.fail(errors.New("the step has ended"))
	if !n.closed {
		n.closed = true
		total.Add(-n.held)
		n.held = maxBytes // nothing more is kept
	}
	n.mu.Unlock()
	for _, c := range n.sockets {
		_ = c.Close()
	}
	for _, f := range n.children {
		_ = f.Close()
	}
}

// fail lets nobody wait any longer. The lock is held.
func (n *Node) fail(err error) {
	if n.err == nil {
		n.err = err
	}
	n.cond.Broadcast()
}

func (n *Node) serve(local int, conn net.Conn) {
	defer conn.Close()
	c := &call{n: n, local: local, rank: n.cfg.Ranks[local], in: newLines(conn), out: conn}
	err := c.run()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.left--; !c.final && err != nil && !errors.Is(err, io.EOF) {
		n.fail(fmt.Errorf("task %d: %w", c.rank, err))
	}
	if n.waiting > 0 && n.waiting >= n.left { // the others wait for one that will not come
		n.fail(fmt.Errorf("task %d is gone", c.rank))
	}
}

// put keeps a key until the next fence.
func (n *Node) put(key, value string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case key == "" || len(key) > maxKey:
		return fmt.Errorf("a key has 1 to %d characters", maxKey)
	case len(value) > maxValue:
		return fmt.Errorf("a value has %d characters at most", maxValue)
	case len(n.fresh)+len(n.keys) >= maxKeys:
		return errors.New("there are too many keys")
	}
	size := len(key) + len(value)
	if old, again := n.fresh[key]; again {
		size -= len(key) + len(old)
	}
	if err := n.hold(size); err != nil {
		return err
	}
	n.fresh[key] = value
	return nil
}

// get finds a key: what this node put is readable here before the fence.
func (n *Node) get(key string) (string, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if key == mappingKey {
		return n.cfg.Mapping, true
	}
	if v, ok := n.fresh[key]; ok {
		return v, true
	}
	v, ok := n.keys[key]
	return v, ok
}

// pass waits until every task of the step has come this far and all have what was put.
func (n *Node) pass() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.waiting++; n.waiting < len(n.cfg.Ranks) {
		for at := n.fence; n.fence == at && n.err == nil; {
			n.cond.Wait()
		}
		return n.err
	}
	if n.err != nil {
		return n.err
	}
	mine, number := n.fresh, n.fence
	n.mu.Unlock() // the others of this node wait: nobody puts meanwhile
	all, err := n.cfg.Exchange(number, mine)
	n.mu.Lock()
	n.waiting = 0
	if err != nil {
		n.fail(err)
		return n.err
	}
	size := 0
	for k, v := range all {
		if _, mine := n.fresh[k]; !mine {
			size += len(k) + len(v)
		}
		if old, again := n.keys[k]; again {
			size -= len(k) + len(old)
		}
	}
	if err := n.hold(size); err != nil {
		n.fail(err)
		return n.err
	}
	maps.Copy(n.keys, all)
	n.fresh = map[string]string{}
	n.fence++
	n.cond.Broadcast()
	return nil
}

// attr waits for a node attribute to be put, if the caller wants to.
func (n *Node) attr(key string, wait bool) (string, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for {
		v, ok := n.attrs[key]
		if ok || !wait || n.err != nil {
			return v, ok
		}
		n.cond.Wait()
	}
}

func (n *Node) putAttr(key, value string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if key == "" || len(key) > maxKey || len(value) > maxValue || len(n.attrs) >= maxKeys {
		return errors.New("the attribute is too large")
	}
	if err := n.hold(len(key) + len(value)); err != nil {
		return err
	}
	n.attrs[key] = value
	n.cond.Broadcast()
	return nil
}

// mappingKey is where MPI libraries look for who shares a node with whom.
const mappingKey = "PMI_process_mapping"

// Mapping tells libraries which node each rank is on: blocks of (first node, nodes, tasks on each), in the order of
// ranks. counts are the tasks of each node. Where ranks are dealt out otherwise than node by node it is empty, and
// libraries ask.
func Mapping(counts []int32) string {
	var b strings.Builder
	b.WriteString("(vector")
	for i := 0; i < len(counts); {
		k := i
		for k < len(counts) && counts[k] == counts[i] {
			k++
		}
		fmt.Fprintf(&b, ",(%d,%d,%d)", i, k-i, counts[i])
		i = k
	}
	return b.String() + ")"
}
