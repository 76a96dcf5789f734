package sshdoor

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

// A user with a key runs programs, with their exit status and both streams, in the job and nowhere else: by a step of
// the job in the user's name.
func TestProgramsRunInTheJob(t *testing.T) {
	t.Parallel()
	b := newLab(t)
	ann := b.letIn("ann")
	for name, c := range map[string]*ssh.Client{
		"direct": b.mustConnect("42", ann), "tunnel of the sshproxy form": b.mustConnect("42-a1_root", ann),
		"jump": b.jump("42-a1", ann),
	} {
		if got := output(t, c, "echo hello; echo there >&2"); got != "hello\nthere" && got != "there\nhello" {
			t.Errorf("%s: %q", name, got)
		}
		s, err := c.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		s.Stdin = strings.NewReader("typed")
		out, err := s.Output("cat; exit 7")
		var exit *ssh.ExitError
		if !errors.As(err, &exit) || exit.ExitStatus() != 7 || string(out) != "typed" {
			t.Errorf("%s: %q, %v", name, out, err)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.steps) != 3 {
		t.Errorf("%d connections made %d steps", 3, len(b.steps))
	}
	for i, s := range b.steps {
		if s.Name != core.StepSSH || s.NodeList != "n1" || s.Argv[0] != wire.InitInside || !s.Overlap ||
			b.callers[i] != "ann" {
			t.Errorf("step %+v of %s", s, b.callers[i])
		}
	}
}

// A program that ends at once is answered before its channel is closed.
func TestShortProgramsAreAnswered(t *testing.T) {
	t.Parallel()
	b := newLab(t)
	c := b.mustConnect("42", b.letIn("ann"))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 40 {
				s, err := c.NewSession()
				if err != nil {
					t.Error(err)
					return
				}
				if err := s.Run("true"); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// Each node of a job is a target of its own.
func TestNodesOfAJob(t *testing.T) {
	t.Parallel()
	b := newLab(t)
	ann := b.letIn("ann")
	output(t, b.mustConnect("42-a1-n1", ann), "true")
	b.mu.Lock()
	if got := b.steps[0].NodeList; got != "n2" {
		t.Errorf("the step is on %s", got)
	}
	b.mu.Unlock()
	for user, want := range map[string]string{
		"42-n2": "job 42 has 2 nodes; there is no number 2", "42-a2": "was started again since",
	} {
		s, err := b.mustConnect(user, ann).NewSession()
		if err != nil {
			t.Fatal(err)
		}
		out, err := s.CombinedOutput("true")
		var exit *ssh.ExitError
		if !errors.As(err, &exit) || exit.ExitStatus() != exitRefused || !strings.Contains(string(out), want) {
			t.Errorf("%s: %q, %v", user, out, err)
		}
	}
}

// Whoever has no key of somebody who may use the job is refused, in the same words whether there is such a job or not.
func TestStrangersAreRefused(t *testing.T) {
	t.Parallel()
	b := newLab(t)
	ann := b.letIn("ann")
	stranger := newSigner(t)
	for name, tc := range map[string]struct {
		user string
		keys []ssh.Signer
	}{
		"a stranger's key": {"42", []ssh.Signer{stranger}}, "no key": {"42", nil}, "no such job": {"41", []ssh.Signer{ann}},
		"not a job": {"root", []ssh.Signer{ann}}, "no name": {"", []ssh.Signer{ann}},
	} {
		c, err := b.connect(tc.user, tc.keys...)
		if err == nil {
			_ = c.Close()
			t.Errorf("%s: let in", name)
		}
	}
	cfg := &ssh.ClientConfig{User: "42", HostKeyCallback: ssh.InsecureIgnoreHostKey(), Auth: []ssh.AuthMethod{
		ssh.Password("secret"), ssh.KeyboardInteractive(func(string, string, []string, []bool) ([]string, error) {
			t.Error("a question was asked")
			return nil, nil
		}),
	}}
	if c, err := ssh.Dial("tcp", b.addr, cfg); err == nil {
		_ = c.Close()
		t.Error("a password opened the door")
	}
	second := b.mustConnect("42", stranger, ann) // the key that opens may come second
	output(t, second, "true")
	_ = second.Close()
	b.change(func() { b.keys = nil })
	if c, err := b.connect("42", ann); err == nil {
		_ = c.Close()
		t.Error("a key that was taken back opened the door")
	}
	b.door.Close() // an entry is made after its caller has heard
	b.mu.Lock()
	defer b.mu.Unlock()
	refused, in := 0, 0
	for _, e := range b.audit {
		switch {
		case e.Answer == core.AuditOK && e.User == "ann" && e.Object == "job 42" && e.Detail != "":
			in++
		case e.Answer == string(core.Denied) && e.User == "" && e.Reason == "bad_key" && e.Addr == "127.0.0.1":
			refused++
		default:
			t.Errorf("entry %+v", e)
		}
	}
	if in != 1 || refused != 4 { // who offered no key at all, or no name, tried nothing that could be told
		t.Errorf("the audit log has %d who came in and %d who were refused", in, refused)
	}
}

// One connection of a client that asked for many.
func TestLimitsOfConnections(t *testing.T) {
	t.Parallel()
	b := newLab(t)
	ann, bob := b.letIn("ann"), b.letIn("bob")
	b.change(func() { b.limits.PerUser = 2 })
	first, second := b.mustConnect("42", ann), b.mustConnect("42", ann)
	output(t, first, "true") // what is served has been counted
	output(t, second, "true")
	if c, err := b.connect("42", ann); err == nil {
		if _, err := c.NewSession(); err == nil {
			t.Error("a third connection was served")
		}
		_ = c.Close()
	}
	output(t, b.mustConnect("42", bob), "true")
	_ = first.Close()
	for { // it is free when the door has seen the end
		if c, err := b.connect("42", ann); err == nil {
			if s, err := c.NewSession(); err == nil {
				_ = s.Close()
				_ = c.Close()
				break
			}
			_ = c.Close()
		}
	}
	c := b.mustConnect("42", bob)
	var open []*ssh.Session
	for range maxChannels {
		s, err := c.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, s)
	}
	var refused *ssh.OpenChannelError
	if _, err := c.NewSession(); !errors.As(err, &refused) || refused.Reason != ssh.ResourceShortage {
		t.Errorf("channel %d: %v", maxChannels+1, err)
	}
	for _, s := range open {
		_ = s.Close()
	}
}

// echo is a program of the job that listens on a port.
func echo(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
				_ = c.(*net.TCPConn).CloseWrite()
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); all.Wait() })
	return l.Addr().(*net.TCPAddr).Port
}

// A forwarded port carries much data both ways, unharmed.
func TestForwardedPortCarriesMuch(t *testing.T) {
	t.Parallel()
	const size = 100 << 20
	b := newLab(t)
	c := b.jump("42", b.letIn("ann"))
	conn, err := c.Dial("tcp", net.JoinHostPort("localhost", itoa(echo(t))))
	if err != nil {
		t.Fatal(err)
	}
	sent, got := sha256.New(), sha256.New()
	var all sync.WaitGroup
	all.Go(func() {
		src := rand.NewChaCha8([32]byte{1})
		if n, err := io.Copy(io.MultiWriter(conn, sent), io.LimitReader(src, size)); n != size || err != nil {
			t.Errorf("sent %d: %v", n, err)
		}
		if err := conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
			t.Error(err)
		}
	})
	if n, err := io.Copy(got, conn); n != size || err != nil {
		t.Errorf("got %d: %v", n, err)
	}
	all.Wait()
	if !bytes.Equal(sent.Sum(nil), got.Sum(nil)) {
		t.Error("the bytes are not those that were sent")
	}
	_ = conn.Close()
	if _, err := c.Dial("tcp", "localhost:1"); err == nil {
		t.Error("a port on which nobody listens was opened")
	}
}

// A port inside the job leads to the client (-R).
func TestPortInsideLeadsToTheClient(t *testing.T) {
	t.Parallel()
	b := newLab(t)
	c := b.mustConnect("42", b.letIn("ann"))
	l, err := c.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		far, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = io.WriteString(far, "from the client")
		_ = far.Close()
	}()
	near, err := net.Dial("tcp", l.Addr().String()) // as a program of the job
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	if got, err := io.ReadAll(near); string(got) != "from the client" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// What the server says of a step that it does not make is what the user reads.
func TestWhyAJobCannotBeReached(t *testing.T) {
	t.Parallel()
	b := newLab(t)
	ann := b.letIn("ann")
	c := b.mustConnect("42", ann)
	for want, change := range map[string]func(){
		"node n1 is not connected": func() { b.refuse = core.Errorf(core.Conflict, "node n1 is not connected") },
		"job 42 has ended":         func() { b.job.State = core.Completed },
	} {
		b.change(func() { b.refuse, b.job.State = nil, core.Running; change() })
		s, err := c.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		out, _ := s.CombinedOutput("true")
		if !strings.Contains(string(out), want) {
			t.Errorf("%q, want %q", out, want)
		}
		var refused *ssh.OpenChannelError
		if _, err := c.Dial("tcp", "localhost:80"); !errors.As(err, &refused) || !strings.Contains(refused.Message, want) {
			t.Errorf("a port: %v, want %q", err, want)
		}
	}
	b.change(func() { b.refuse, b.job.State = nil, core.Running })
	output(t, c, "true") // the connection is as good as before
}
