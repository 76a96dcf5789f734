package initd

import (
	"bufio"
	"errors"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"
)

// connect is a client of a server that serves until the client is gone.
func connect(t *testing.T) (*ssh.Client, <-chan error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	near, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- SSH(far, far) }()
	conn, channels, requests, err := ssh.NewClientConn(near, "container",
		&ssh.ClientConfig{User: "root", HostKeyCallback: ssh.InsecureIgnoreHostKey()})
	if err != nil {
		t.Fatal(err)
	}
	c := ssh.NewClient(conn, channels, requests)
	t.Cleanup(func() { c.Close() })
	return c, ended
}

// lasting is a process in the background that learns of no end; it begins by telling its number.
const lasting = `trap '' HUP; sleep 1000 & echo $!; `

func openSession(t *testing.T, c *ssh.Client) (*ssh.Session, *bufio.Reader) {
	t.Helper()
	s, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	return s, bufio.NewReader(out)
}

// endLasting reads the number of the process in the background, for it to be ended with the test, and its shell too.
func endLasting(t *testing.T, out *bufio.Reader) {
	t.Helper()
	line, err := out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	group, err := unix.Getpgid(pid)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Kill(-group, unix.SIGKILL) })
}

// TestTerminalEnds: what is left in the background has the terminal, not the client.
func TestTerminalEnds(t *testing.T) {
	t.Parallel()
	c, _ := connect(t)
	s, out := openSession(t, c)
	if err := s.RequestPty("xterm", 24, 80, ssh.TerminalModes{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(lasting + "exit 3"); err != nil {
		t.Fatal(err)
	}
	endLasting(t, out)
	var exit *ssh.ExitError
	if err := s.Wait(); !errors.As(err, &exit) || exit.ExitStatus() != 3 {
		t.Errorf("it ended with %v", err)
	}
}

// TestNothingBeginsForAClientGone: a program that was asked for just before the client went does not outlive it.
func TestNothingBeginsForAClientGone(t *testing.T) {
	t.Parallel()
	s := &session{gone: make(chan struct{})}
	s.hangUp()
	if err := s.begin(exec.Command("true")); !errors.Is(err, errGone) {
		t.Errorf("it began, with %v", err)
	}
	// hangUp says that the client is gone before it looks for the program: begin does one or the other.
	s = &session{gone: make(chan struct{})}
	s.mu.Lock() // hangUp stands before the program
	hung := make(chan struct{})
	go func() { defer close(hung); s.hangUp() }()
	<-s.gone
	s.mu.Unlock()
	<-hung
}

// TestClientGone: a server ends with its client, whatever was begun continues or not.
func TestClientGone(t *testing.T) {
	t.Parallel()
	for _, tc := range []string{lasting + "sleep 1000", lasting + "exit 0"} {
		c, ended := connect(t)
		s, out := openSession(t, c)
		if err := s.Start(tc); err != nil {
			t.Fatal(err)
		}
		endLasting(t, out)
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err != nil {
			t.Errorf("%s: %v", tc, err)
		}
	}
}
