package ssh

import (
	"io"
	"net"
	"sync"
	"sync/atomic"

	"bireme.dev/bireme/internal/core"
)

// Tunnel is a socket on a host whose connections end here: a listener for a server that the host cannot reach.
type Tunnel struct {
	remote net.Listener
	conns  chan net.Conn
	done   chan struct{}
	once   sync.Once
	active atomic.Int32
}

// Listen makes a socket on the host.
func (h *Host) Listen(path string) (*Tunnel, error) {
	l, err := h.client.ListenUnix(path)
	if err != nil {
		return nil, core.Errorf(core.Unavailable,
			"%s: its SSH server forwards no sockets (AllowStreamLocalForwarding): %v", h.at, err)
	}
	t := &Tunnel{remote: l, conns: make(chan net.Conn), done: make(chan struct{})}
	go t.accept()
	return t, nil
}

// accept ends with the connection to the host, or with the tunnel.
func (t *Tunnel) accept() {
	defer t.Close()
	for {
		far, err := t.remote.Accept()
		if err != nil {
			return
		}
		// A channel of SSH knows no deadlines and the server needs them: a pipe does.
		near, end := net.Pipe()
		select {
		case t.conns <- near:
			t.active.Add(1)
			go t.carry(far, end)
		case <-t.done:
			_ = far.Close()
			_ = near.Close()
			return
		}
	}
}

// carry copies both ways until one side ends; the tunnel's end closes far.
func (t *Tunnel) carry(far, end net.Conn) {
	defer t.active.Add(-1)
	back := make(chan struct{})
	go func() {
		defer close(back)
		_, _ = io.Copy(far, end) // a connection that breaks is the far end's to notice
		_ = far.Close()
	}()
	_, _ = io.Copy(end, far)
	_ = end.Close()
	<-back
}

// Active counts the connections it carries.
func (t *Tunnel) Active() int { return int(t.active.Load()) }

// Accept, Close and Addr make it a net.Listener.
func (t *Tunnel) Accept() (net.Conn, error) {
	select {
	case c := <-t.conns:
		return c, nil
	case <-t.done:
		return nil, net.ErrClosed
	}
}

// Close takes the socket away; what is carried continues until the connection to the host ends.
func (t *Tunnel) Close() error {
	t.once.Do(func() {
		close(t.done)
		_ = t.remote.Close() // the host may be gone
	})
	return nil
}

// Addr returns where the far end is.
func (t *Tunnel) Addr() net.Addr { return t.remote.Addr() }
