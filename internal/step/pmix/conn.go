package pmix

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// conn is one connection of a task.
type conn struct {
	n     *Node
	raw   net.Conn
	rank  int32
	named bool // it has said who it is; set once, under the node's lock
	dialect

	mu     sync.Mutex
	queue  [][]byte
	queued int
	open   int // calls that are not answered
	ended  bool
	wake   chan struct{} // of the writer
}

func newConn(n *Node, raw net.Conn) *conn { return &conn{n: n, raw: raw, wake: make(chan struct{}, 1)} }

func (c *conn) close() {
	c.mu.Lock()
	left := c.queue
	c.ended, c.queue, c.queued = true, nil, 0 // a fence may remember the connection for long
	c.mu.Unlock()
	for _, part := range left {
		c.n.waits.done(part)
	}
	_ = c.raw.Close()
	c.kick()
}

func (c *conn) kick() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// serve is the life of a connection.
func (c *conn) serve() {
	defer c.n.gone(c)
	defer c.close()
	if err := c.greet(); err != nil {
		return // nobody was promised an answer: the library says that it cannot connect
	}
	go c.write() // ends with close
	for {
		tag, body, err := c.read()
		if err != nil {
			return
		}
		if err := c.call(tag, body); err != nil {
			return
		}
	}
}

// headerSize is the length of a message's header: index, tag, length, padding, each four bytes.
const headerSize = 16

// Replies to a handshake, and to calls.
const (
	statusOK           = 0
	statusError        = -1
	statusBadParam     = -27
	statusNotFound     = -46
	statusNotSupported = -47
	statusLost         = -61
)

// maxGreeting bounds what a client says before it is known.
const maxGreeting = 64 << 10

// greet takes the handshake: who the task is and how it packs. The kernel tells whose the connection is.
func (c *conn) greet() error {
	owner, err := c.n.cfg.Owner(c.raw)
	if err != nil {
		return err
	}
	if owner != c.n.cfg.UID {
		return fmt.Errorf("a process of user %d wants to connect to a step of user %d", owner, c.n.cfg.UID)
	}
	_ = c.raw.SetDeadline(time.Now().Add(maxHandshake))
	defer func() { _ = c.raw.SetDeadline(time.Time{}) }()
	var head [headerSize]byte
	if _, err := io.ReadFull(c.raw, head[:]); err != nil {
		return err
	}
	size := binary.NativeEndian.Uint32(head[8:]) // unlike those of later messages
	if size > maxGreeting {
		return errors.New("a handshake that is too long")
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(c.raw, body); err != nil {
		return err
	}
	if err := c.greeting(body); err != nil {
		return err
	}
	var answer [8]byte // status, and its index among our clients
	binary.BigEndian.PutUint32(answer[4:], uint32(c.n.local[c.rank]))
	_, err = c.raw.Write(answer[:])
	return err
}

// clientFlag is a process that was started by its server. Tools and launchers are not served.
const clientFlag = 0

// greeting reads a handshake: strings end with NUL, numbers are in network order.
func (c *conn) greeting(body []byte) error {
	text := func() string {
		s, rest, ok := bytes.Cut(body, []byte{0})
		if !ok {
			body = nil
			return ""
		}
		body = rest
		return string(s)
	}
	number := func() uint32 {
		if len(body) < 4 {
			body = nil
			return 0
		}
		v := binary.BigEndian.Uint32(body)
		body = body[4:]
		return v
	}
	text() // how it proves who it is, which is worth nothing
	if n := number(); uint64(n) <= uint64(len(body)) {
		body = body[n:]
	}
	if len(body) == 0 || body[0] != clientFlag {
		return errors.New("this is no client")
	}
	body = body[1:]
	nspace, rank := text(), int32(number())
	text() // its release
	var err error
	if c.dialect, err = dialectOf(text()); err != nil {
		return err
	}
	const described = 2 // each value with its type before it
	if len(body) == 0 || body[0] == described {
		return errors.New("it describes what it packs")
	}
	n := c.n
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, here := n.local[rank]; nspace != n.cfg.Namespace || !here {
		return fmt.Errorf("%s has no task %d here", nspace, rank)
	}
	s := n.state(rank)
	if s.conns >= connsPerRank {
		return errors.New("too many connections")
	}
	s.conns++
	s.finalized = false
	c.rank, c.named = rank, true
	return nil
}

// read takes the next message.
func (c *conn) read() (tag uint32, body []byte, err error) {
	var head [headerSize]byte
	if _, err := io.ReadFull(c.raw, head[:]); err != nil {
		return 0, nil, err
	}
	size := binary.BigEndian.Uint32(head[8:])
	if size > maxMessage {
		return 0, nil, errors.New("a message that is too long")
	}
	if size > smallMessage {
		select {
		case c.n.large <- struct{}{}:
			defer func() { <-c.n.large }()
		case <-c.n.done:
			return 0, nil, net.ErrClosed
		}
	}
	// It grows with what comes: a length alone costs nothing.
	var b bytes.Buffer
	if _, err := io.CopyN(&b, c.raw, int64(size)); err != nil {
		return 0, nil, err
	}
	return binary.BigEndian.Uint32(head[4:]), b.Bytes(), nil
}

// reply answers a call. The parts of its body may be shared with other connections.
func (c *conn) reply(tag uint32, body ...[]byte) {
	size := 0
	for _, b := range body {
		size += len(b)
	}
	head := make([]byte, headerSize)
	binary.BigEndian.PutUint32(head[4:], tag)
	binary.BigEndian.PutUint32(head[8:], uint32(size))
	c.mu.Lock()
	c.open--
	parts, first := append([][]byte{head}, body...), len(c.queue) == 0
	full := c.queued+size > maxQueue && !first
	if !full && !c.ended {
		if full = !c.n.waits.add(parts, first); !full {
			c.queue = append(c.queue, parts...)
			c.queued += len(head) + size
		}
	}
	c.mu.Unlock()
	if full { // it asks and does not listen
		c.close()
		return
	}
	c.kick()
}

// status answers a call with a status alone.
func (c *conn) status(tag uint32, code int32) {
	w := &writer{dialect: c.dialect}
	w.one().int32(code)
	c.reply(tag, w.b)
}

// write sends what is queued.
func (c *conn) write() {
	for range c.wake {
		for {
			c.mu.Lock()
			if c.ended {
				c.mu.Unlock()
				return
			}
			if len(c.queue) == 0 {
				c.mu.Unlock()
				break
			}
			msg := c.queue[0]
			c.queue[0], c.queue = nil, c.queue[1:]
			c.queued -= len(msg)
			c.mu.Unlock()
			_, err := c.raw.Write(msg)
			c.n.waits.done(msg)
			if err != nil {
				return
			}
		}
	}
}
