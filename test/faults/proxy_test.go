//go:build e2e

package faults

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"bireme.dev/bireme/test/cluster"
)

// wireCut stands between agents and server and can fall silent as a broken network does: nothing passes, nobody is
// told.
type wireCut struct {
	listener net.Listener
	to       string
	cut      atomic.Bool
	mu       sync.Mutex
	conns    []net.Conn
	work     sync.WaitGroup
}

// throughWireCut starts a cluster whose agents reach the server by way of a wireCut only. The agents keep the address
// they know; the server moves to another one.
func throughWireCut(t *testing.T, opt cluster.Options) (*bench, *wireCut) {
	t.Helper()
	b := newBench(t, opt)
	port, err := os.ReadFile(filepath.Join(b.Dir, "agent.port"))
	if err != nil {
		t.Fatal(err)
	}
	known := "127.0.0.1:" + strings.TrimSpace(string(port))
	if err := b.Stop(); err != nil {
		t.Fatal(err)
	}
	w := &wireCut{to: freePort(t)}
	b.Set("server.agent_listen="+w.to, "server.advertise="+known)
	up := make(chan error, 1)
	go func() { up <- b.Up() }()
	b.Eventually("the server listens on its new address", func() (bool, string) {
		c, err := net.Dial("tcp", w.to)
		if err != nil {
			return false, err.Error()
		}
		c.Close()
		return true, ""
	})
	if w.listener, err = net.Listen("tcp", known); err != nil {
		t.Fatal(err)
	}
	w.work.Go(w.accept)
	t.Cleanup(func() {
		w.listener.Close()
		w.drop()
		w.work.Wait()
	})
	if err := <-up; err != nil {
		t.Fatal(err)
	}
	return b, w
}

// ports keeps tests that run at the same time from finding the same one.
var ports atomic.Int32

// freePort finds an address nobody listens on, below the ports that outgoing connections take.
func freePort(t *testing.T) string {
	t.Helper()
	for port := 12000 + os.Getpid()%10000 + int(ports.Add(1))*50; port < 32000; port++ {
		l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
		if err == nil {
			defer l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no free port")
	return ""
}

func (w *wireCut) accept() {
	for {
		in, err := w.listener.Accept()
		if err != nil {
			return
		}
		w.keep(in)
		if w.cut.Load() {
			continue // it hangs, as in a network that swallows everything
		}
		out, err := net.Dial("tcp", w.to)
		if err != nil {
			in.Close()
			continue
		}
		w.keep(out)
		w.work.Go(func() { w.copy(out, in) })
		w.work.Go(func() { w.copy(in, out) })
	}
}

func (w *wireCut) keep(c net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns = append(w.conns, c)
}

// copy passes bytes on until one end closes, and swallows them while the wire is cut.
func (w *wireCut) copy(to, from net.Conn) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if w.cut.Load() {
			if err == nil {
				continue
			}
			return // the other end must not learn of it
		}
		if _, werr := to.Write(buf[:n]); err != nil || werr != nil {
			to.Close()
			from.Close()
			return
		}
	}
}

// sever cuts the wire; mend joins it, and what hung breaks.
func (w *wireCut) sever() { w.cut.Store(true) }

func (w *wireCut) mend() {
	w.cut.Store(false)
	w.drop()
}

func (w *wireCut) drop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		c.Close()
	}
	w.conns = nil
}
