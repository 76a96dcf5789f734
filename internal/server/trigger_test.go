package server_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/servertest"
	"bireme.dev/bireme/internal/wire"
)

// triggerProgram is a program that writes whom it runs as and its arguments, and returns what it wrote.
func triggerProgram(t *testing.T) (path string, wrote func() string) {
	t.Helper()
	dir := t.TempDir()
	out, path := filepath.Join(dir, "out"), filepath.Join(dir, "program")
	text := "#!/bin/sh\necho \"$(id -u) $*\" >> " + out + "\n"
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(out, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{dir, filepath.Dir(dir)} { // another user runs it
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(out, 0o666); err != nil {
		t.Fatal(err)
	}
	return path, func() string {
		data, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
}

// awaitOutside waits for what no event of the server tells.
func awaitOutside(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(servertest.Timeout); !f(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited for ", what)
		}
	}
}

func triggers(s *servertest.Server) []client.Trigger {
	var list client.TriggerList
	s.Must("GET", "/api/v1/triggers", nil, &list)
	return list.Triggers
}

// TestTriggers: programs run once their event has happened; those that fired are gone unless they are permanent.
func TestTriggers(t *testing.T) {
	t.Parallel()
	s := servertest.New(t)
	s.Start()
	a := s.Join("n1", core.Compute, true)
	a.Connect()
	s.Join("n2", core.Compute, true).Connect()
	program, wrote := triggerProgram(t)
	me := strconv.Itoa(os.Geteuid())
	set := func(change func(*client.Trigger)) {
		tr := &client.Trigger{Resource: client.TriggerNode, Program: program}
		change(tr)
		s.Must("POST", "/api/v1/triggers", tr, nil)
	}
	set(func(tr *client.Trigger) { tr.Events, tr.Program = []string{"drained"}, program+" drained" })
	set(func(tr *client.Trigger) {
		tr.Events, tr.Nodes, tr.Program, tr.Perm = []string{"down", "up"}, "n2", program+" perm", true
	})
	s.Must("PATCH", "/api/v1/nodes/n1", map[string]any{"state": "drain", "reason": "x"}, nil)
	awaitOutside(t, "the program of a drained node", func() bool { return wrote() == me+" drained n1\n" })
	awaitOutside(t, "a trigger that has fired is gone", func() bool { return len(triggers(s)) == 1 })
	s.Must("PATCH", "/api/v1/nodes/n2", map[string]any{"state": "down", "reason": "x"}, nil)
	awaitOutside(t, "the program of a node that is down", func() bool { return strings.Count(wrote(), "perm n2") == 1 })
	s.Must("PATCH", "/api/v1/nodes/n2", map[string]any{"state": "resume"}, nil)
	awaitOutside(t, "a permanent one fires again", func() bool { return strings.Count(wrote(), "perm n2") == 2 })
	s.Must("PATCH", "/api/v1/nodes/n1", map[string]any{"state": "resume"}, nil)

	id := s.Submit(nil)
	s.AwaitState(id, core.Running)
	set(func(tr *client.Trigger) {
		tr.Events, tr.Resource, tr.Job, tr.Program = []string{"fini"}, client.TriggerJob, id, program+" fini"
	})
	s.Stop()
	s.Start() // they outlive a server
	if n := len(triggers(s)); n != 2 {
		t.Fatalf("%d triggers after a restart, not 2", n)
	}
	a.Connect()
	a.End(a.AwaitLaunch(id, 1, wire.BatchStep), nil)
	awaitOutside(t, "the program of a job that ended", func() bool { return strings.Contains(wrote(), " fini 1\n") })
	awaitOutside(t, "it is gone", func() bool { return len(triggers(s)) == 1 })
}

// TestTriggerRights: a program runs as nobody but the user who set it.
func TestTriggerRights(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root runs programs as others")
	}
	s := servertest.New(t)
	s.Cfg.Limits.TriggersPerUser = 2
	s.Start()
	s.Join("n1", core.Compute, true).Connect()
	program, wrote := triggerProgram(t)
	uid := uint32(65534)
	token := s.Token(core.User{Name: "nobody", UID: &uid, UnixName: "nobody"})
	admin := s.Token(core.User{Name: "boss", Role: core.RoleAdmin})
	rooted := s.Token(core.User{Name: "root", Role: core.RoleAdmin})
	tr := client.Trigger{Resource: client.TriggerNode, Events: []string{"down"}, Program: program, UID: 0, User: "root"}
	for _, x := range []struct{ name, token string }{
		{"a user where administrators alone may", token}, {"one without a uid", admin}, {"root by a token", rooted},
	} {
		if status, _ := s.Call("POST", "/api/v1/triggers", x.token, tr, nil); status != http.StatusForbidden {
			t.Errorf("%s: status %d", x.name, status)
		}
	}
	s.Stop()
	s.Cfg.Server.UserTriggers = true
	s.Start()
	for i := range 3 {
		tr.Offset = int32(i)
		status, err := s.Call("POST", "/api/v1/triggers", token, tr, nil)
		if ok := status == http.StatusOK; ok != (i < 2) {
			t.Errorf("trigger %d: status %d, %v", i, status, err)
		}
	}
	for _, bad := range []client.Trigger{
		{Resource: "node", Events: []string{"down"}, Program: "bin/true"},
		{Resource: "node", Events: []string{"down"}, Program: "/bin/true\n"},
		{Resource: "node", Events: []string{"fini"}, Program: "/bin/true"},
		{Resource: "node", Program: "/bin/true"},
		{Resource: "mars", Events: []string{"down"}, Program: "/bin/true"},
		{Resource: "node", Events: []string{"down"}, Program: "/" + strings.Repeat("x", 5000)},
		{Resource: "node", Events: []string{"down"}, Program: "/bin/true", Nodes: "n[1-999999999]"},
		{Resource: "node", Events: []string{"down"}, Program: "/bin/true", Offset: 1 << 20},
		{Resource: "node", Events: []string{"down"}, Program: "/bin/true", Job: 1},
	} {
		if status, _ := s.Call("POST", "/api/v1/triggers", "", bad, nil); status != http.StatusBadRequest {
			t.Errorf("%+v: status %d", bad, status)
		}
	}
	s.Cfg.PrivateData = []string{"jobs"}
	s.Stop()
	s.Start()
	var hidden client.Submitted
	s.Must("POST", "/api/v1/jobs", client.Submit{Spec: core.Spec{Name: "x", Hold: true}, Script: "#!/bin/sh\n"}, &hidden)
	ofJob := client.Trigger{Resource: client.TriggerJob, Events: []string{"fini"}, Program: program, Job: hidden.ID}
	if status, err := s.Call("POST", "/api/v1/triggers", token, ofJob, nil); status != http.StatusNotFound {
		t.Errorf("a job that is hidden: status %d, %v", status, err)
	}
	s.Must("PATCH", "/api/v1/nodes/n1", map[string]any{"state": "down", "reason": "x"}, nil)
	awaitOutside(t, "both programs, as their user", func() bool { return wrote() == "65534 n1\n65534 n1\n" })
}
