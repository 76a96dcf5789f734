package sbcast

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strconv"
	"sync"
	"syscall"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/wire"
	"bireme.dev/bireme/internal/wire/direct"
)

// patience bounds how long one end waits for another.
const patience = 30 * time.Second

// hello is what the receiving end on a node tells the command: who it is, and where it could be reached by others.
type hello struct {
	Rank  int      `json:"rank"`
	Addrs []string `json:"addrs"`
	Print string   `json:"print"`
}

// place is what it is answered: whom it sends the file on to.
type place struct {
	Below bool    `json:"below,omitempty"` // the file comes from another node, not from the command
	Down  []hello `json:"down,omitempty"`
}

// pipe makes a connection of frames one of bytes.
type pipe struct {
	c    *wire.Conn
	rest []byte
}

func (p *pipe) Read(b []byte) (int, error) {
	for len(p.rest) == 0 {
		f, err := p.c.Next()
		if err != nil {
			return 0, err
		}
		p.rest = f.Payload
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

func (p *pipe) Write(b []byte) (int, error) {
	for at := 0; at < len(b); at += maxFrame {
		if err := p.c.Send(wire.TypeIO, wire.IOHeader{}, b[at:min(at+maxFrame, len(b))]); err != nil {
			return at, err
		}
	}
	return len(b), nil
}

func (p *pipe) Close() error { return p.c.Close() }

const maxFrame = 256 << 10

// tree is the sending end.
type tree struct {
	s      *sender
	l      net.Listener
	tls    *tls.Config
	addrs  []string
	print  string
	secret string

	mu    sync.Mutex
	want  int
	nodes map[int]hello
	conns map[int]*pipe
	ready chan struct{} // closed when all have come
}

func openTree(s *sender) (*tree, error) {
	l, cfg, addrs, print, err := listen()
	if err != nil {
		return nil, err
	}
	var secret [16]byte
	_, _ = rand.Read(secret[:]) // never fails
	t := &tree{
		s: s, l: l, tls: cfg, addrs: addrs, print: print, secret: hex.EncodeToString(secret[:]), want: -1,
		nodes: map[int]hello{}, conns: map[int]*pipe{}, ready: make(chan struct{}),
	}
	go t.accept() // ends with close
	return t, nil
}

func listen() (net.Listener, *tls.Config, []string, string, error) {
	cfg, print, err := direct.New()
	if err != nil {
		return nil, nil, nil, "", err
	}
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		return nil, nil, nil, "", err
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	var addrs []string
	for _, host := range direct.HostAddrs() {
		addrs = append(addrs, net.JoinHostPort(host, port))
	}
	return l, cfg, addrs, print, nil
}

func (t *tree) close() {
	_ = t.l.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.conns {
		_ = c.Close()
	}
}

func (t *tree) expect(nodes int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.want = nodes
}

func (t *tree) accept() {
	for {
		raw, err := t.l.Accept()
		if err != nil {
			return
		}
		go func() { // ends with the connection, which close cuts
			c := tls.Server(raw, t.tls)
			_ = c.SetDeadline(time.Now().Add(patience))
			p := &pipe{c: wire.NewConn(c)}
			h, err := greeted(p, t.secret)
			if err != nil {
				_ = c.Close()
				return
			}
			_ = c.SetDeadline(time.Time{})
			t.serve(h, p)
		}()
	}
}

// greeted reads which node connected, if it sent the secret.
func greeted(p *pipe, secret string) (h hello, err error) {
	f, err := p.c.Next()
	var d wire.DirectHello
	if err == nil {
		err = f.Decode(&d)
	}
	if err == nil && subtle.ConstantTimeCompare([]byte(d.Secret), []byte(secret)) != 1 {
		err = errors.New("a stranger")
	}
	if err != nil {
		return h, err
	}
	text, err := getPiece(p)
	if err == nil {
		err = json.Unmarshal(text, &h)
	}
	return h, err
}

// serve waits for all to come, tells one its place, and sends the file to those at the top.
func (t *tree) serve(h hello, c *pipe) {
	t.mu.Lock()
	_, twice := t.nodes[h.Rank]
	good := !twice && h.Rank >= 0 && (t.want < 0 || h.Rank < t.want)
	if good {
		t.nodes[h.Rank], t.conns[h.Rank] = h, c
		if len(t.nodes) == t.want {
			close(t.ready)
		}
	}
	t.mu.Unlock()
	if !good { // who knows the secret may still be mad
		_ = c.Close()
		return
	}
	select {
	case <-t.ready:
	case <-time.After(patience):
		_ = c.Close()
		return
	}
	p := place{Below: h.Rank >= t.s.fanout}
	for _, k := range below(h.Rank, t.s.fanout, t.want) {
		p.Down = append(p.Down, t.nodes[k])
	}
	text, err := json.Marshal(p)
	if err == nil {
		err = putPiece(c, text)
	}
	if err == nil && !p.Below {
		err = t.s.write(c)
	}
	if err != nil {
		_ = c.Close() // the other end says what it misses
	}
}

// below are the nodes that node k of n sends on to: the first F have the file from the command, and each of all has F
// below it.
func below(k, fanout, n int) []int {
	var list []int
	for i := range fanout {
		if c := (k+1)*fanout + i; c < n {
			list = append(list, c)
		}
	}
	return list
}

// receiveMain is the command at the receiving end.
func receiveMain(ctx context.Context, w *cmd.World, text string) int {
	var o order
	err := json.Unmarshal([]byte(text), &o)
	if err == nil {
		if len(o.Addrs) == 0 {
			err = take(w.In, &o, func([]byte) {})
		} else {
			err = receive(ctx, &o, w.Getenv("SLURM_PROCID"), core.NodeName(w.Getenv("SLURMD_NODENAME")))
		}
	}
	if errors.Is(err, errUnreached) {
		return exitUnreached
	}
	var errno syscall.Errno
	switch w.Name = "sbcast"; {
	case errors.As(err, &errno):
		w.Errorf("REQUEST_FILE_BCAST(%s): %s", w.Getenv("SLURMD_NODENAME"), reason(err))
		return int(errno)
	case err != nil:
		w.Errorf("%s: %v", w.Getenv("SLURMD_NODENAME"), err)
		return 1
	}
	return 0
}

var errUnreached = errors.New("the command cannot be reached")

func dial(ctx context.Context, to hello, o *order, node core.NodeName) (*pipe, error) {
	c, err := direct.Dial(ctx, &wire.Direct{Addrs: to.Addrs, Print: to.Print, Secret: o.Secret}, node)
	if err != nil {
		return nil, err
	}
	return &pipe{c: wire.NewConn(c)}, nil
}

// receive takes the file from the command or from the node above, and sends it on.
func receive(ctx context.Context, o *order, procid string, node core.NodeName) error {
	rank, err := strconv.Atoi(procid)
	if err != nil {
		return err
	}
	l, cfg, addrs, print, err := listen()
	if err != nil {
		return err
	}
	defer l.Close()
	up, err := dial(ctx, hello{Addrs: o.Addrs, Print: o.Print}, o, node)
	if err != nil {
		return errUnreached
	}
	defer up.Close()
	text, err := json.Marshal(hello{Rank: rank, Addrs: addrs, Print: print})
	if err == nil {
		err = putPiece(up, text)
	}
	if err != nil {
		return err
	}
	above := make(chan *pipe, 1)
	go func() { // ends with l
		for {
			raw, err := l.Accept()
			if err != nil {
				return
			}
			c := tls.Server(raw, cfg)
			_ = c.SetDeadline(time.Now().Add(patience))
			p := &pipe{c: wire.NewConn(c)}
			if _, err := greeted(p, o.Secret); err != nil {
				_ = c.Close()
				continue
			}
			_ = c.SetDeadline(time.Time{})
			above <- p
			return
		}
	}()
	text, err = getPiece(up)
	if err != nil {
		return err
	}
	var p place
	if err := json.Unmarshal(text, &p); err != nil {
		return err
	}
	var down []*pipe
	for _, child := range p.Down {
		c, err := dial(ctx, child, o, node)
		if err == nil {
			err = putPiece(c, []byte("{}"))
		}
		if err != nil {
			continue // it says itself what it misses
		}
		defer c.Close()
		down = append(down, c)
	}
	var from io.Reader = up
	if p.Below {
		select {
		case c := <-above:
			defer c.Close()
			from = c
		case <-time.After(patience):
			return errors.New("the node that should send the file does not come")
		}
	}
	return take(from, o, func(piece []byte) {
		for i, c := range down {
			if c != nil && putPiece(c, piece) != nil {
				_ = c.Close()
				down[i] = nil
			}
		}
	})
}
