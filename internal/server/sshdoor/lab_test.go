package sshdoor

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/crypto/ssh"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/initd"
	"bireme.dev/bireme/internal/server/api/steps"
	"bireme.dev/bireme/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lab is a door in front of an API whose steps are the real SSH server of containers, in this process.
type lab struct {
	t    *testing.T
	door *Door
	addr string
	http *http.Server
	l    *pipeListener

	mu      sync.Mutex
	job     core.Job
	keys    []Key
	output  func(w io.Writer, r *http.Request) // of the job
	steps   []*client.NewStep
	callers []core.UserName // of API calls that made steps
	audit   []*core.AuditEntry
	limits  Limits
	refuse  error // of new steps
	// keysFail is the failure of a look at the keys; nil: there is none.
	keysFail func() error
}

type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}
func (l *pipeListener) Close() error   { l.once.Do(func() { close(l.done) }); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

type userConn struct {
	net.Conn
	user core.UserName
}

type userOf struct{}

func newSigner(t *testing.T) ssh.Signer {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newLab(t *testing.T) *lab {
	t.Helper()
	b := &lab{t: t, limits: Limits{Connections: 100, PerUser: 50}, l: &pipeListener{
		conns: make(chan net.Conn), done: make(chan struct{}),
	}}
	b.job = core.Job{
		ID: 42, Attempt: 1, State: core.Running, Spec: &core.Spec{User: "ann"},
		Alloc: &core.Alloc{Nodes: []core.NodeAlloc{{Node: "n1"}, {Node: "n2"}}},
	}
	b.output = func(w io.Writer, _ *http.Request) { _, _ = io.WriteString(w, "first line\n") }
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/v1/jobs/42/steps", b.newStep)
	mux.HandleFunc("GET /api/v1/streams/{key}", b.stream)
	mux.HandleFunc("GET /api/v1/jobs/42/logs", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		b.mu.Lock()
		f := b.output
		b.mu.Unlock()
		f(w, r)
	})
	b.http = &http.Server{Handler: mux, ConnContext: func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, userOf{}, c.(*userConn).user)
	}}
	go func() { _ = b.http.Serve(b.l) }()
	b.door = New(Config{
		HostKey: newSigner(t), Log: slog.New(slog.DiscardHandler),
		Job: func(_ context.Context, id core.JobID) (*core.Job, error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			if id != b.job.ID {
				return nil, core.Errorf(core.NotFound, "there is no job %d", id)
			}
			j := b.job
			return &j, nil
		},
		Keys: func(context.Context, *core.Job) ([]Key, error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			if b.keysFail != nil {
				return nil, b.keysFail()
			}
			return append([]Key(nil), b.keys...), nil
		},
		Connect: func(user core.UserName, _ net.Addr) (net.Conn, error) {
			near, far, err := Pipe()
			if err != nil {
				return nil, err
			}
			select {
			case b.l.conns <- &userConn{far, user}:
				return near, nil
			case <-b.l.done:
				_, _ = near.Close(), far.Close()
				return nil, net.ErrClosed
			}
		},
		Audit:  func(e *core.AuditEntry) { b.mu.Lock(); b.audit = append(b.audit, e); b.mu.Unlock() },
		Limits: func() Limits { b.mu.Lock(); defer b.mu.Unlock(); return b.limits },
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b.addr = l.Addr().String()
	served := make(chan error, 1)
	go func() { served <- b.door.Serve(l) }()
	t.Cleanup(func() {
		b.door.Close()
		if err := <-served; err != nil {
			t.Errorf("the door: %v", err)
		}
		_ = b.http.Close()
	})
	return b
}

// change changes the world under the lab's lock.
func (b *lab) change(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

// letIn gives a user a key that opens the job.
func (b *lab) letIn(user core.UserName) ssh.Signer {
	s := newSigner(b.t)
	b.change(func() { b.keys = append(b.keys, Key{user, s.PublicKey()}) })
	return s
}

func (b *lab) newStep(w http.ResponseWriter, r *http.Request) {
	ask := new(client.NewStep)
	if err := json.NewDecoder(r.Body).Decode(ask); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	b.mu.Lock()
	b.steps = append(b.steps, ask)
	b.callers = append(b.callers, r.Context().Value(userOf{}).(core.UserName))
	refuse := b.refuse
	b.mu.Unlock()
	if refuse != nil {
		w.WriteHeader(http.StatusConflict)
		var e *core.Error
		errors.As(refuse, &e)
		_ = json.NewEncoder(w).Encode(client.ErrorBody{Error: *e})
		return
	}
	_ = json.NewEncoder(w).Encode(client.StepMade{Step: core.Step{Job: 42}, Key: "key"})
}

// stream is the node's end of a step: the SSH server that containers have.
func (b *lab) stream(w http.ResponseWriter, r *http.Request) {
	raw, err := steps.Upgrade(w, r, "bireme-stream")
	if err != nil {
		return
	}
	c := wire.NewConn(raw)
	in, input, err := os.Pipe()
	if err != nil {
		b.t.Error(err)
		return
	}
	output, out, err := os.Pipe()
	if err != nil {
		b.t.Error(err)
		return
	}
	var all sync.WaitGroup
	all.Go(func() { _ = initd.SSH(in, out) })
	all.Go(func() {
		defer output.Close()
		buf := make([]byte, 64<<10)
		for {
			n, err := output.Read(buf)
			if n > 0 && c.Send(wire.TypeIO, wire.IOHeader{FD: 1}, buf[:n]) != nil || err != nil {
				break
			}
		}
		_ = c.Send(wire.TypeStepExit, wire.TaskExit{Rank: -1, Node: "n1"})
	})
	for {
		f, err := c.Next()
		if err != nil {
			break
		}
		var h wire.IOHeader
		if f.Type == wire.TypeInput && f.Decode(&h) == nil {
			_, _ = input.Write(f.Payload)
			_ = c.Send(wire.TypeInputAt, wire.InputAt{Node: "n1", Seq: h.Seq})
		}
	}
	_ = input.Close()
	_ = c.Close()
	all.Wait()
}

// connect connects as an SSH client.
func (b *lab) connect(user string, keys ...ssh.Signer) (*ssh.Client, error) {
	return ssh.Dial("tcp", b.addr, &ssh.ClientConfig{
		User: user, HostKeyCallback: ssh.FixedHostKey(b.door.HostKey.PublicKey()),
		Auth: []ssh.AuthMethod{ssh.PublicKeys(keys...)},
	})
}

func (b *lab) mustConnect(user string, keys ...ssh.Signer) *ssh.Client {
	b.t.Helper()
	c, err := b.connect(user, keys...)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = c.Close() })
	return c
}

// jump connects as dstack clients do: SSH to port 10022 inside an SSH connection.
func (b *lab) jump(user string, keys ...ssh.Signer) *ssh.Client {
	b.t.Helper()
	raw, err := b.mustConnect(user, keys...).Dial("tcp", "localhost:10022")
	if err != nil {
		b.t.Fatal(err)
	}
	conn, channels, requests, err := ssh.NewClientConn(raw, "job", &ssh.ClientConfig{
		User: "root", HostKeyCallback: ssh.FixedHostKey(b.door.HostKey.PublicKey()),
		Auth: []ssh.AuthMethod{ssh.PublicKeys(keys...)},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	c := ssh.NewClient(conn, channels, requests)
	b.t.Cleanup(func() { _ = c.Close() })
	return c
}

func output(t *testing.T, c *ssh.Client, command string) string {
	t.Helper()
	s, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	out, err := s.CombinedOutput(command)
	if err != nil {
		t.Fatalf("%s: %v: %s", command, err, out)
	}
	return strings.TrimSpace(string(out))
}

func itoa(n int) string { return strconv.Itoa(n) }
