package servertest

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/server"
	"bireme.dev/bireme/internal/server/hub"
	"bireme.dev/bireme/internal/store"
)

// Timeout is how long a test waits for anything before it fails.
const Timeout = 20 * time.Second

// Server is a running server. Stop and Start may be called to restart it in the same directory.
type Server struct {
	t    testing.TB
	Dir  string
	Cfg  *config.Config
	Info server.Info
	// MayPanic keeps a panic of a handler from failing the test: it is for tests of what becomes of one.
	MayPanic bool
	// Store, if set before Start, is used instead of the configured one and stays open over restarts.
	Store store.Store
	// Reload, if set before Start, is what the server reads its settings with again; Hangup has it do so.
	Reload func() (*config.Config, error)
	Hangup chan os.Signal

	stop context.CancelFunc
	done chan error
	http *http.Client
}

// Start runs a server with settings laid over quick timers, and stops it with the test.
func Start(t testing.TB, set ...string) *Server {
	t.Helper()
	s := New(t, set...)
	s.Start()
	return s
}

// New makes a server that is not started yet.
func New(t testing.TB, set ...string) *Server {
	t.Helper()
	dir, err := os.MkdirTemp("", "bireme") // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	set = append([]string{
		"dir=" + dir, "server.listen=127.0.0.1:0", "server.agent_listen=127.0.0.1:0",
		"timers.heartbeat=50ms", "timers.silent_after=10s", "timers.grace=2s",
	}, set...)
	cfg, err := config.Parse("", nil, set...)
	if err != nil {
		t.Fatalf("%+v", err)
	}
	// A node that never connects: jobs are admitted against what is there, and wait until a test's own nodes come.
	cfg.Nodes = []config.Node{{Names: "idle", CPUs: 4, Memory: config.Size(8 * core.GiB)}}
	s := &Server{t: t, Dir: dir, Cfg: cfg}
	t.Cleanup(s.Stop)
	return s
}

// Start runs the server again after Stop.
func (s *Server) Start() {
	s.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	s.stop, s.done = stop, make(chan error, 1)
	ready := make(chan server.Info, 1)
	log := slog.New(slog.NewTextHandler(&testWriter{s.t}, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if os.Getenv("SERVERTEST_LOG") == "" {
		log = slog.New(slog.DiscardHandler)
	}
	log = slog.New(&panicCheck{log.Handler(), s})
	done := s.done
	go func() {
		done <- server.Run(ctx, server.Options{
			Config: s.Cfg, Version: "test", Log: log, Store: s.Store, Ready: func(i server.Info) {
				ready <- i
			}, Reload: s.Reload, Hangup: s.Hangup,
		})
	}()
	select {
	case s.Info = <-ready:
	case err := <-done:
		stop()
		s.t.Fatalf("server: %v", err)
	case <-time.After(Timeout):
		stop()
		s.t.Fatal("the server is not ready")
	}
	s.http = &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", s.Info.Socket)
		},
		MaxIdleConnsPerHost: 64,
	}}
}

// Stop ends the server in order; a second call does nothing.
func (s *Server) Stop() {
	if s.stop == nil {
		return
	}
	s.http.CloseIdleConnections()
	s.stop()
	s.stop = nil
	select {
	case err := <-s.done:
		if err != nil {
			s.t.Errorf("server ended: %v", err)
		}
	case <-time.After(Timeout):
		s.t.Error("the server does not stop")
	}
}

// panicCheck fails the test when the server logs that one of its handlers panicked.
type panicCheck struct {
	slog.Handler
	s *Server
}

func (h *panicCheck) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelError || h.Handler.Enabled(ctx, l)
}

func (h *panicCheck) Handle(ctx context.Context, r slog.Record) error {
	if (r.Message == hub.PanicMessage || r.Message == engine.PanicMessage) && !h.s.MayPanic {
		var b strings.Builder
		r.Attrs(func(a slog.Attr) bool {
			b.WriteString("\n" + a.Key + ": " + a.Value.String())
			return true
		})
		h.s.t.Errorf("the server: %s%s", r.Message, b.String())
	}
	if !h.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

func (h *panicCheck) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &panicCheck{h.Handler.WithAttrs(attrs), h.s}
}

func (h *panicCheck) WithGroup(name string) slog.Handler {
	return &panicCheck{h.Handler.WithGroup(name), h.s}
}

type testWriter struct{ t testing.TB }

func (w *testWriter) Write(b []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(b)))
	return len(b), nil
}

// Client returns a client on the unix socket.
func (s *Server) Client() *client.Client {
	s.t.Helper()
	c, err := client.New(client.Settings{Servers: []string{"unix:" + s.Info.Socket}, Timeout: time.Second})
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// Far returns an HTTP client that calls over TCP, one connection a call, and trusts the cluster's CA.
func (s *Server) Far() *http.Client {
	s.t.Helper()
	text, err := os.ReadFile(s.CA())
	if err != nil {
		s.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool}}}
}

// Call makes one HTTP call on the unix socket, or with a token over TCP, and reads the answer into out.
func (s *Server) Call(method, path, token string, body, out any) (status int, err *core.Error) {
	s.t.Helper()
	var r io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		r = strings.NewReader(b)
	default:
		data, merr := json.Marshal(b)
		if merr != nil {
			s.t.Fatal(merr)
		}
		r = bytes.NewReader(data)
	}
	base, h := "http://bireme", s.http
	if token != "" {
		base, h = s.Info.API, s.Far()
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), Timeout)
	defer cancel()
	req, rerr := http.NewRequestWithContext(ctx, method, base+path, r)
	if rerr != nil {
		s.t.Fatal(rerr)
	}
	if token != "" && token != "none" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, rerr := h.Do(req)
	if rerr != nil {
		s.t.Fatal(rerr)
	}
	defer resp.Body.Close()
	data, rerr := io.ReadAll(resp.Body)
	if rerr != nil {
		s.t.Fatal(rerr)
	}
	if resp.StatusCode >= 300 {
		var e client.ErrorBody
		if json.Unmarshal(data, &e) != nil || e.Error.Code == "" {
			s.t.Fatalf("%s %s: %d without an error body: %s", method, path, resp.StatusCode, data)
		}
		return resp.StatusCode, &e.Error
	}
	switch o := out.(type) {
	case nil:
	case *[]byte:
		*o = data
	default:
		if jerr := json.Unmarshal(data, out); jerr != nil {
			s.t.Fatalf("%s %s: %v: %s", method, path, jerr, data)
		}
	}
	return resp.StatusCode, nil
}

// Must is Call that may not fail.
func (s *Server) Must(method, path string, body, out any) {
	s.t.Helper()
	if status, err := s.Call(method, path, "", body, out); err != nil {
		s.t.Fatalf("%s %s: %d %s: %v", method, path, status, err.Code, err)
	}
}

// Submit submits a batch job as this process's user.
func (s *Server) Submit(change func(*client.Submit)) core.JobID {
	s.t.Helper()
	in := &client.Submit{
		Spec:   core.Spec{Name: "test", IO: core.IO{WorkDir: "/", Stdout: "/dev/null"}},
		Script: "#!/bin/sh\ntrue\n", Env: []string{"PATH=/usr/bin:/bin", "TERM=dumb"},
	}
	if change != nil {
		change(in)
	}
	var out client.Submitted
	s.Must("POST", client.PathSubmit, in, &out)
	return out.ID
}

// Job reads a job, live or ended.
func (s *Server) Job(id core.JobID) *client.Job {
	s.t.Helper()
	var list client.JobList
	s.Must("GET", client.PathSubmit+"/"+itoa(int64(id)), nil, &list)
	for i := range list.Jobs {
		if list.Jobs[i].ID == id {
			return &list.Jobs[i]
		}
	}
	s.t.Fatalf("job %d is not in its own listing", id)
	return nil
}

// Await waits until f holds, looking again after every event.
func (s *Server) Await(what string, f func() bool) {
	s.t.Helper()
	if err := s.await(f); err != nil {
		s.t.Fatalf("waiting for %s: %v", what, err)
	}
}

func (s *Server) await(f func() bool) error {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), Timeout)
	defer cancel()
	var seq client.Cluster
	s.Must("GET", "/api/v1/cluster", nil, &seq)
	if f() {
		return nil
	}
	errDone := io.EOF
	err := s.Client().Watch(ctx, seq.Seq, func(*core.Event) error {
		if f() {
			return errDone
		}
		return nil
	})
	if errors.Is(err, errDone) {
		return nil
	}
	return err
}

// AwaitState waits until a job has a state.
func (s *Server) AwaitState(id core.JobID, st core.JobState) *client.Job {
	s.t.Helper()
	var last *client.Job
	err := s.await(func() bool {
		last = s.Job(id)
		return last.State == st
	})
	if err != nil {
		var nodes client.NodeList
		s.Must("GET", "/api/v1/nodes", nil, &nodes)
		var states []string
		for _, n := range nodes.Nodes {
			states = append(states, string(n.Name)+" "+n.State)
		}
		s.t.Fatalf("waiting for job %d to be %s: %v; it is %s (%s; %s), nodes %v", id, st, err, last.State,
			last.Waiting, last.Why, states)
	}
	return last
}

// Token makes a user and a token for it.
func (s *Server) Token(u core.User) string {
	s.t.Helper()
	if status, err := s.Call("POST", "/api/v1/users", "", u, nil); err != nil && status != http.StatusConflict {
		s.t.Fatal(err)
	}
	var made client.NewTokenMade
	s.Must("POST", "/api/v1/tokens", client.NewToken{Kind: "user", User: u.Name}, &made)
	return made.Secret
}

// CA is the cluster's CA file.
func (s *Server) CA() string { return filepath.Join(s.Dir, "ca.pem") }

// Try runs a server that is expected to fail and gives its error.
func (s *Server) Try() error {
	ctx, cancel := context.WithTimeout(s.t.Context(), Timeout)
	defer cancel()
	return server.Run(ctx, server.Options{Config: s.Cfg, Version: "test", Store: s.Store})
}
