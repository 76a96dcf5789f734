package server_test

import (
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/servertest"
	"bireme.dev/bireme/internal/wire"
)

// TestReload: the config file is read again, checked whole, and taken over or refused; jobs continue.
func TestReload(t *testing.T) {
	t.Parallel()
	s := servertest.New(t)
	var text atomic.Pointer[string]
	say := func(yaml string) { text.Store(&yaml) }
	say("partitions: [{name: main, nodes: ALL, default: yes}]\n")
	s.Reload = func() (*config.Config, error) {
		c, err := config.Parse("config.yml", []byte(*text.Load()), "dir="+s.Dir, "server.listen=127.0.0.1:0",
			"server.agent_listen=127.0.0.1:0",
			"timers.heartbeat=50ms", "timers.silent_after=10s", "timers.grace=2s")
		if err == nil && len(c.Nodes) == 0 {
			c.Nodes = s.Cfg.Nodes
		}
		return c, err
	}
	s.Hangup = make(chan os.Signal, 1)
	s.Start()
	ann, _, _, _ := people(s)
	id := s.Submit(func(b *client.Submit) { b.Spec.Hold = true })
	names := func() string {
		var c client.Cluster
		s.Must("GET", "/api/v1/cluster", nil, &c)
		var out []string
		for _, p := range c.Partitions {
			out = append(out, string(p.Name))
		}
		return strings.Join(out, ",")
	}
	if status, err := s.Call("POST", "/api/v1/reconfigure", ann, client.Reconfigure{}, nil); status != 403 ||
		err.Reason != "access_denied" {
		t.Errorf("ann has the settings read again: %d %v", status, err)
	}
	say("cluster: other\npartitions: [{name: main, nodes: ALL, default: yes}, {name: fast, nodes: ALL, max_time: " +
		"1h}]\njobs: {max_script: 1K}\nlicenses: [matlab:3]\n" +
		"nodes: [{names: 'idle,extra', cpus: 4, memory: 8G, weight: 3, features: [ib]}]\n")
	var dry, done client.Reconfigured
	s.Must("POST", "/api/v1/reconfigure", client.Reconfigure{DryRun: true}, &dry)
	if dry.Applied || len(dry.Changes) != 4 || names() != "main" {
		t.Errorf("a dry run: %+v; partitions %s", dry, names())
	}
	s.Must("POST", "/api/v1/reconfigure", client.Reconfigure{}, &done)
	if !done.Applied || len(done.Changes) != 4 || names() != "main,fast" {
		t.Errorf("%+v; partitions %s", done, names())
	}
	if len(done.Settings) != 1 || done.Settings[0] != (core.FieldChange{Name: "jobs.max_script", Was: "4M", Is: "1K"}) {
		t.Errorf("settings: %+v", done.Settings)
	}
	if len(done.Restart) != 1 || done.Restart[0].Name != "cluster" {
		t.Errorf("restart: %+v", done.Restart)
	}
	var c client.Cluster
	s.Must("GET", "/api/v1/cluster", nil, &c)
	if c.Name != "bireme" {
		t.Errorf("the cluster is called %s without a restart", c.Name)
	}
	var n client.Node
	s.Must("GET", "/api/v1/nodes/idle", nil, &n)
	if n.Weight != 3 || len(n.Features) != 1 || len(n.Partitions) != 2 {
		t.Errorf("node: %+v", n)
	}
	big := submitBody()
	big.Script += strings.Repeat("x", 2000)
	if status, err := s.Call("POST", "/api/v1/jobs", ann, big, nil); status != 413 {
		t.Errorf("a script over the new limit: %d %v", status, err)
	}
	made := s.Submit(func(b *client.Submit) { b.Spec.Hold, b.Spec.Partition = true, core.ListPartitions("fast") })

	// What is wrong in itself, and what leaves no place for what is there: nothing changes.
	say("partitons: []\njobs: {max_requeues: many}\n")
	status, err := s.Call("POST", "/api/v1/reconfigure", "", client.Reconfigure{}, nil)
	if status != 400 || len(err.Faults) != 2 || !strings.Contains(err.Faults[0].Message, "did you mean partitions?") {
		t.Errorf("a bad file: %d %+v", status, err)
	}
	say("partitions: [{name: main, nodes: ALL, default: yes}]\n")
	status, err = s.Call("POST", "/api/v1/reconfigure", "", client.Reconfigure{}, nil)
	if status != 409 || err.Reason != "invalid_configuration" || !strings.Contains(err.Message, "fast cannot be removed") {
		t.Errorf("a partition in use: %d %+v", status, err)
	}
	if names() != "main,fast" {
		t.Errorf("partitions %s", names())
	}

	// By a signal too, and what continues continues.
	s.Must("POST", "/api/v1/jobs/cancel", client.Cancel{IDs: []string{idText(made)}}, nil)
	s.Hangup <- syscall.SIGHUP
	s.Await("the settings to be read again", func() bool { return names() == "main" })
	if j := s.Job(id); j.State != core.Pending {
		t.Errorf("the job is %s", j.State)
	}
	if status, err := s.Call("GET", "/api/v1/nodes/extra", "", nil, nil); status != 404 {
		t.Errorf("a node that never came is still there: %d %v", status, err)
	}
}

// TestReloadHealth: what nodes look at and how their health is judged changes without a restart, and they are told.
func TestReloadHealth(t *testing.T) {
	t.Parallel()
	s := servertest.New(t)
	var text atomic.Pointer[string]
	say := func(yaml string) { text.Store(&yaml) }
	s.Reload = func() (*config.Config, error) {
		return config.Parse("config.yml", []byte(*text.Load()), "dir="+s.Dir, "server.listen=127.0.0.1:0",
			"server.agent_listen=127.0.0.1:0",
			"timers.heartbeat=50ms", "timers.silent_after=10s", "timers.grace=2s")
	}
	s.Start()
	a := s.Join("n1", core.Compute, false)
	a.Connect()
	fenced := s.Submit(func(b *client.Submit) { b.Spec.Extra = &core.Extra{Fence: 300} })
	a.AwaitLaunch(fenced, 1, wire.BatchStep)

	say("health: {program: /bin/check, interval: 1h, disk: drain, every: 3s}\ngpu: {sample: 7s}\n" +
		"reboot: {program: /bin/reboot}\npower: {resume_timeout: 5m}\n")
	var done client.Reconfigured
	s.Must("POST", "/api/v1/reconfigure", client.Reconfigure{}, &done)
	if len(done.Restart) != 0 {
		t.Errorf("waits for a restart: %+v", done.Restart)
	}
	f := a.AwaitFrame(wire.TypeWelcome)
	var w wire.Welcome
	if err := f.Decode(&w); err != nil {
		t.Fatal(err)
	}
	set := &w.Settings
	if set.Health.Program != "/bin/check" || set.Health.Disk != "drain" || set.Health.Every != 3*time.Second ||
		set.Sample != 7*time.Second || set.RebootProgram != "/bin/reboot" {
		t.Errorf("the node is told %+v", set)
	}
	if len(w.Fences) != 1 || w.Fences[0].Job != fenced {
		t.Errorf("its job's own fence: %+v", w.Fences)
	}
	a.AwaitFrame(wire.TypeCheck) // a new program is run at once
	var n client.Node
	s.Must("PATCH", "/api/v1/nodes/n1", client.UpdateNode{State: "reboot"}, nil)
	s.Must("GET", "/api/v1/nodes/n1", nil, &n)
	if !n.Flags.Has(core.NodeReboot) {
		t.Errorf("it is not asked to restart: %v", n.Flags)
	}
	say("health: {interval: 1h}\n")
	s.Must("POST", "/api/v1/reconfigure", client.Reconfigure{}, &done)
	if status, err := s.Call("PATCH", "/api/v1/nodes/n1", "", client.UpdateNode{State: "reboot"}, nil); status != 409 ||
		err.Reason != "no_reboot_program" {
		t.Errorf("a restart without a program: %d %v", status, err)
	}
}
