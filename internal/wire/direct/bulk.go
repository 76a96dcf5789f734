package direct

import (
	"bufio"
	"crypto/tls"
	"net"
	"sync"
)

// A record of TLS is 16 KiB at most and costs a system call on either side. Below TLS the records of one Write are
// gathered here and leave together, and all that has come is read at once.
const (
	gatherMost = 160 << 10
	readAhead  = 128 << 10
)

// Conn is a TLS connection whose Write makes few system calls however much it is given.
type Conn struct {
	*tls.Conn
	raw *gather
}

// Client is the end that sends much.
func Client(raw net.Conn, cfg *tls.Config) *Conn {
	g := &gather{Conn: raw}
	return &Conn{Conn: tls.Client(g, cfg), raw: g}
}

// Server is the end that gets it.
func Server(raw net.Conn, cfg *tls.Config) *tls.Conn {
	return tls.Server(&ahead{Conn: raw, r: bufio.NewReaderSize(raw, readAhead)}, cfg)
}

// Write sends b. One goroutine writes at a time.
func (c *Conn) Write(b []byte) (int, error) {
	c.raw.hold()
	n, err := c.Conn.Write(b)
	if e := c.raw.flush(); err == nil {
		err = e
	}
	return n, err
}

// gather keeps what is written between hold and flush; otherwise (handshakes, alerts) it is as if it were not there.
type gather struct {
	net.Conn
	mu   sync.Mutex
	held bool
	buf  []byte
}

func (g *gather) hold() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held = true
}

func (g *gather) Write(b []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.held {
		return g.Conn.Write(b)
	}
	if len(g.buf)+len(b) > gatherMost {
		if err := g.out(); err != nil {
			return 0, err
		}
	}
	g.buf = append(g.buf, b...)
	return len(b), nil
}

func (g *gather) flush() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held = false
	return g.out()
}

func (g *gather) out() error {
	if len(g.buf) == 0 {
		return nil
	}
	_, err := g.Conn.Write(g.buf)
	g.buf = g.buf[:0]
	return err
}

type ahead struct {
	net.Conn
	r *bufio.Reader
}

func (a *ahead) Read(b []byte) (int, error) { return a.r.Read(b) }
