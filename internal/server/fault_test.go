package server_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/servertest"
	"bireme.dev/bireme/internal/store"
	"bireme.dev/bireme/internal/store/open"
	"bireme.dev/bireme/internal/wire"
)

// brittle is a store whose disk can be full.
type brittle struct {
	store.Store
	full atomic.Bool
}

var errFull = errors.New("no space left on device")

func (b *brittle) Commit(ctx context.Context, epoch int64, c *core.Changes) error {
	if b.full.Load() {
		return errFull
	}
	return b.Store.Commit(ctx, epoch, c)
}

func (b *brittle) Probe(ctx context.Context, epoch int64) error {
	if b.full.Load() {
		return errFull
	}
	return b.Store.Probe(ctx, epoch)
}

// While nothing can be written the server reads, refuses writes with 503, and keeps the ends agents bring until it can.
func TestReadOnlyStore(t *testing.T) {
	t.Parallel()
	s := servertest.New(t)
	inner, err := open.Store(t.Context(), "sqlite:"+filepath.Join(s.Dir, "test.db"))
	if err != nil {
		t.Fatal(err)
	}
	disk := &brittle{Store: inner}
	t.Cleanup(func() { s.Stop(); _ = inner.Close() })
	s.Store = disk
	s.Start()
	n := s.Join("n1", core.Compute, false)
	n.Connect()
	id := s.Submit(nil)
	k := n.AwaitLaunch(id, 1, wire.BatchStep)

	disk.full.Store(true)
	for range 2 { // the first meets the failing commit, the second a server that knows
		status, err := s.Call("POST", "/api/v1/jobs", "", submitBody(), nil)
		if status != 503 || err.Code != core.Unavailable {
			t.Fatalf("submit: %d %v", status, err)
		}
	}
	if j := s.Job(id); j.State != core.Running {
		t.Errorf("reading: %+v", j.Job)
	}
	n.End(k, nil)
	var c client.Cluster
	s.Must("GET", "/api/v1/cluster", nil, &c)
	if !strings.Contains(c.ReadOnly, "no space left") {
		t.Errorf("read-only says %q", c.ReadOnly)
	}
	if n.Unacked() != 1 {
		t.Error("an end was acknowledged that is not durable")
	}
	disk.full.Store(false)
	n.AwaitAck(k)
	if j := s.Job(id); j.State != core.Completed {
		t.Errorf("afterwards: %+v", j.Job)
	}
	if got := n.Launches(k); got != 1 {
		t.Errorf("launched %d times", got)
	}
}

func TestStopSaysGoodbyeAndRestartKeepsAll(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	n := s.Join("n1", core.Compute, false)
	n.Connect()
	running := s.Submit(nil)
	n.AwaitLaunch(running, 1, wire.BatchStep)
	held := s.Submit(func(in *client.Submit) { in.Spec.Hold = true })
	before, err := os.ReadFile(s.CA())
	if err != nil {
		t.Fatal(err)
	}
	s.Stop()
	n.AwaitFrame(wire.TypeBye)
	n.AwaitCut()
	if _, err := os.Stat(s.Info.Socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left behind: %v", err)
	}
	s.Start()
	if after, err := os.ReadFile(s.CA()); err != nil || string(after) != string(before) {
		t.Errorf("the authority changed with a restart (%v)", err)
	}
	if j := s.Job(running); j.State != core.Running {
		t.Errorf("%+v", j.Job)
	}
	if j := s.Job(held); j.State != core.Pending || !j.Flags.Has(core.HeldUser) {
		t.Errorf("%+v", j.Job)
	}
	n.Connect() // its certificate is still good
	if next := s.Submit(func(in *client.Submit) { in.Spec.Hold = true }); next <= held {
		t.Errorf("id %d after %d", next, held)
	}
}

func TestTwoServersCannotShareASocket(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	second := servertest.New(t)
	second.Cfg.Server.Socket = s.Info.Socket
	if err := second.Try(); core.CodeOf(err) != core.Conflict {
		t.Errorf("%v", err)
	}
}

func TestTLSDoorTakesTokens(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	token := s.Token(core.User{Name: "boss", Role: core.RoleAdmin})
	c, err := client.New(client.Settings{Servers: []string{"https://" + s.Info.Agents}, CA: s.CA(), Token: token})
	if err != nil {
		t.Fatal(err)
	}
	if me, err := c.Whoami(t.Context()); err != nil || me.User != "boss" || !me.Admin {
		t.Errorf("%+v %v", me, err)
	}
	// it must fail
	conn, err := tls.Dial("tcp", s.Info.Agents, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12})
	if err == nil {
		conn.Close()
		t.Error("TLS 1.2 was accepted")
	}
}

func TestMetricsAndDocument(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	s.Submit(func(in *client.Submit) { in.Spec.Array, in.Spec.Hold = "1-10", true })
	if status, _ := s.Call("GET", "/api/v1/jobs/99", "", nil, nil); status != http.StatusNotFound {
		t.Fatal(status)
	}
	var text []byte
	s.Must("GET", "/metrics", nil, &text)
	for _, want := range []string{
		"bireme_jobs_submitted_total 1", `bireme_jobs{state="PENDING"} 10`, "bireme_leading 1",
		`bireme_http_requests_total{code="not_found",method="GET",route="/api/v1/jobs/{id}"} 1`, "bireme_commits_total",
		`bireme_queue{partition="main",reason="JobHeldUser"} 10`, `bireme_allocated_cpus{partition="main"} 0`,
		`bireme_inbox{lane="calls"} 0`,
		"bireme_scheduler_passes_total", "bireme_scheduler_seconds_total", "bireme_commit_seconds_total",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("metrics lack %q", want)
		}
	}
	var doc map[string]any
	if status, err := s.Call("GET", "/api/v1/openapi.json", "none", nil, &doc); status != 200 ||
		doc["openapi"] != "3.1.0" {
		t.Errorf("%d %v %v", status, err, doc["openapi"])
	}
}
