package socket

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// startSocket serves a socket in front of a server.
func startSocket(t *testing.T, server http.Handler) (*Socket, string) {
	t.Helper()
	up := httptest.NewServer(server)
	t.Cleanup(up.Close)
	dir, err := os.MkdirTemp("", "bireme")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(dir, "s")
	s := New(at, func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", up.Listener.Addr().String())
	}, slog.New(slog.DiscardHandler))
	l, err := s.Listen()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return s, at
}

// dialAs connects as another user: on a thread of its own that takes the uid and ends. Without root all callers are
// this process's user.
func dialAs(t *testing.T, at string, uid int) (net.Conn, error) {
	t.Helper()
	if os.Geteuid() != 0 {
		return net.Dial("unix", at)
	}
	type result struct {
		c   net.Conn
		err error
	}
	got := make(chan result)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid)); errno != 0 {
			got <- result{nil, errno}
			return
		}
		c, err := net.Dial("unix", at)
		got <- result{c, err}
	}()
	r := <-got
	return r.c, r.err
}

// ask makes a call and returns the status line.
func ask(c net.Conn) (string, error) {
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return "", err
	}
	// A refused connection may be closed before the call is written; the refusal is there to be read all the same.
	_, _ = io.WriteString(c, "GET /api/v1/ping HTTP/1.1\r\nHost: node\r\n\r\n")
	return bufio.NewReader(c).ReadString('\n')
}

// A user who holds as many connections as they can keeps nobody else from the server, and has room again when they
// close some.
func TestConnectionsOfOneUser(t *testing.T) {
	t.Parallel()
	s, at := startSocket(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Header.Get(PeerHeader))
	}))
	const most, attacker, other = 50, 23001, 23002
	s.SetLimit(most)
	var held []net.Conn
	defer func() {
		for _, c := range held {
			c.Close()
		}
	}()
	for range most {
		c, err := dialAs(t, at, attacker)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, c)
	}
	c, err := dialAs(t, at, attacker)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	b, _ := io.ReadAll(c) // the answer comes unasked; the connection ends behind it
	if !strings.HasPrefix(string(b), "HTTP/1.1 429 ") || !strings.Contains(string(b), "limits.connections") {
		t.Errorf("connection %d of a user was answered with %q", most+1, b)
	}
	if os.Geteuid() == 0 {
		c, err := dialAs(t, at, other)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if status, err := ask(c); err != nil || status != "HTTP/1.1 200 OK\r\n" {
			t.Errorf("another user got %q, %v", status, err)
		}
	}
	held[0].Close()
	held = held[1:]
	for deadline := time.Now().Add(time.Minute); ; { // the agent sees the end of the connection in its own time
		c, err := dialAs(t, at, attacker)
		if err != nil {
			t.Fatal(err)
		}
		status, err := ask(c)
		c.Close()
		if status == "HTTP/1.1 200 OK\r\n" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("no room after a connection was closed: %q, %v", status, err)
		}
	}
}

// Streams that took their connection over are counted until they end.
func TestStreamsCount(t *testing.T) {
	t.Parallel()
	s, at := startSocket(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		io.WriteString(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		rw.Flush()
		io.Copy(io.Discard, rw)
	}))
	s.SetLimit(1)
	c, err := dialAs(t, at, 23003)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "GET /api/v1/jobs/1/attach HTTP/1.1\r\nHost: node\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
	if status, err := bufio.NewReader(c).ReadString('\n'); err != nil || !strings.HasPrefix(status, "HTTP/1.1 101 ") {
		t.Fatalf("the stream was answered with %q, %v", status, err)
	}
	second, err := dialAs(t, at, 23003)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if b, _ := io.ReadAll(second); !strings.HasPrefix(string(b), "HTTP/1.1 429 ") {
		t.Errorf("beside the stream a connection was answered with %q", b)
	}
}

// Many users together leave room for those who have few connections.
func TestAllConnections(t *testing.T) {
	t.Parallel()
	var s conns
	s.init()
	s.most = 800
	var refused error
	for uid := uint32(1); refused == nil; uid++ {
		for range 150 {
			if refused = s.add(uid); refused != nil {
				break
			}
		}
	}
	if s.total != 700 {
		t.Errorf("users of many connections hold %d of %d", s.total, s.most)
	}
	if err := s.add(1000); err != nil {
		t.Errorf("a user without any: %v", err)
	}
	for range s.most {
		_ = s.add(1001)
	}
	if have := s.uids[1001]; have != smallShare {
		t.Errorf("a user gets %d of the rest", have)
	}
	if s.total > s.most {
		t.Errorf("%d of %d", s.total, s.most)
	}
	if err := errors.Join(s.add(1), s.add(2)); err == nil {
		t.Error("an attacker still gets more")
	}
}
