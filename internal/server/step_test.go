package server_test

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/servertest"
	"bireme.dev/bireme/internal/wire"
)

// stepCluster returns an interactive allocation over three nodes.
func stepCluster(t *testing.T) (*servertest.Server, map[core.NodeName]*servertest.Agent, core.JobID) {
	t.Helper()
	s := servertest.Start(t)
	agents := map[core.NodeName]*servertest.Agent{}
	for _, name := range []core.NodeName{"n1", "n2", "n3"} {
		agents[name] = s.Join(name, core.Compute, false)
		agents[name].Connect()
	}
	id := s.Submit(func(in *client.Submit) {
		in.Spec.Kind, in.Script = core.Interactive, ""
		in.Spec.Shape = core.Shape{NodesMin: 3, NodesMax: 3, Tasks: 6, TasksPerNode: 2, CPUsPerTask: 1}
	})
	s.AwaitState(id, core.Running)
	return s, agents, id
}

func TestStepStreamsJoinNodesWithSrun(t *testing.T) {
	t.Parallel()
	s, agents, id := stepCluster(t)
	var made client.StepMade
	s.Must("POST", "/api/v1/jobs/"+idText(id)+"/steps", client.NewStep{Name: "cat", Argv: []string{"cat"}, Tasks: 5},
		&made)
	if len(made.Ranks) != 3 || len(made.Ranks[0]) != 2 || len(made.Ranks[2]) != 1 || made.Ranks[2][0] != 4 {
		t.Fatalf("ranks %v", made.Ranks)
	}
	raw, err := s.Client().Stream(t.Context(), made.Key)
	if err != nil {
		t.Fatal(err)
	}
	srun := wire.NewConn(raw)
	defer srun.Close()
	var ends []*wire.Conn
	for i, name := range made.Step.Nodes {
		n := agents[name]
		n.AwaitLaunch(id, 1, "0")
		l, err := wire.DecodeLaunch(n.AwaitFrame(wire.TypeLaunch))
		if err != nil || l.Stdio.Mode != wire.StdioStream || len(l.Program.Tasks) != len(made.Ranks[i]) {
			t.Fatalf("launch %+v %v", l, err)
		}
		if env := strings.Join(l.Program.Tasks[0].Env, " "); !strings.Contains(
			env, "SLURM_PROCID="+itoa(int(made.Ranks[i][0]))) {
			t.Errorf("task environment %q", env)
		}
		var open wire.OpenStream
		if err := n.AwaitFrame(wire.TypeOpenStream).Decode(&open); err != nil || open.Token != made.Key {
			t.Fatalf("%+v %v", open, err)
		}
		c, _, err := n.Dial(wire.PathStream+open.Token, "bireme-stream")
		if err != nil {
			t.Fatal(err)
		}
		end := wire.NewConn(c)
		defer end.Close()
		ends = append(ends, end)
	}
	if err := srun.Send(wire.TypeInput, wire.IOHeader{Rank: -1}, []byte("hello")); err != nil {
		t.Fatal(err)
	}
	for i, end := range ends {
		f, err := end.Next()
		if err != nil || f.Type != wire.TypeInput || string(f.Payload) != "hello" {
			t.Fatalf("node %d got %+v %v", i, f, err)
		}
		for _, r := range made.Ranks[i] {
			if err := end.Send(wire.TypeIO, wire.IOHeader{Rank: r, FD: 1}, []byte("hello")); err != nil {
				t.Fatal(err)
			}
		}
		if err := end.Send(wire.TypeStepExit, wire.TaskExit{Rank: -1, Node: made.Step.Nodes[i]}); err != nil {
			t.Fatal(err)
		}
	}
	outputs, exits := 0, 0
	for exits < 3 {
		f, err := srun.Next()
		if err != nil {
			t.Fatal(err)
		}
		switch f.Type {
		case wire.TypeIO:
			outputs++
		case wire.TypeStepExit:
			exits++
		}
	}
	if outputs != 5 {
		t.Errorf("%d outputs", outputs)
	}
	srun.Close()
	for i, name := range made.Step.Nodes {
		agents[name].End(wire.Key{Job: core.JobID(id), Attempt: 1, Step: "0"}, func(x *wire.Exited) { x.ExitCode = i })
	}
	s.Await("the step to end", func() bool {
		var steps client.StepList
		s.Must("GET", "/api/v1/jobs/"+idText(id)+"/steps", nil, &steps)
		return len(steps.Steps) == 1 && steps.Steps[0].State == core.Failed && steps.Steps[0].Exit.Code == 2
	})
	s.Must("POST", "/api/v1/jobs/"+idText(id)+"/release", client.Release{Exit: core.Exit{Code: 2}}, nil)
	for _, n := range agents {
		n.AwaitFrame(wire.TypeFinish)
	}
	s.Await("the allocation to be free", func() bool { j := s.Job(id); return j.State == core.Failed && !j.Live() })
}

// The streams of steps that a node has open end with its key: it neither hears nor tells anything more.
func TestStepStreamsEndWithTheNodesKey(t *testing.T) {
	t.Parallel()
	s, agents, id := stepCluster(t)
	var made client.StepMade
	s.Must("POST", "/api/v1/jobs/"+idText(id)+"/steps", client.NewStep{Argv: []string{"cat"}, Tasks: 1, NodeList: "n2"},
		&made)
	raw, err := s.Client().Stream(t.Context(), made.Key)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	n := agents["n2"]
	n.AwaitLaunch(id, 1, "0")
	c, _, err := n.Dial(wire.PathStream+made.Key, "bireme-stream")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var list client.TokenList
	s.Must("GET", "/api/v1/tokens", nil, &list)
	for _, token := range list.Tokens {
		if token.Node == "n2" {
			s.Must("DELETE", "/api/v1/tokens/"+token.ID, nil, nil)
		}
	}
	n.AwaitCut()
	if err := c.SetReadDeadline(time.Now().Add(servertest.Timeout)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the stream of a node whose key was revoked is open")
	}
}

func TestStepIsEndedWhenSrunLeaves(t *testing.T) {
	t.Parallel()
	s, agents, id := stepCluster(t)
	var made client.StepMade
	s.Must("POST", "/api/v1/jobs/"+idText(id)+"/steps",
		client.NewStep{Argv: []string{"sleep"}, Tasks: 1, NodeList: "n2"}, &made)
	raw, err := s.Client().Stream(t.Context(), made.Key)
	if err != nil {
		t.Fatal(err)
	}
	agents["n2"].AwaitLaunch(id, 1, "0")
	if _, err := s.Client().Stream(t.Context(), made.Key); core.CodeOf(err) != core.Conflict {
		t.Errorf("a second srun: %v", err)
	}
	raw.Close()
	var kill wire.Kill
	if err := agents["n2"].AwaitFrame(wire.TypeKill).Decode(&kill); err != nil || kill.Step != "0" {
		t.Errorf("%+v %v", kill, err)
	}
	c, resp, err := agents["n2"].Dial(wire.PathStream+made.Key, "bireme-stream")
	if err == nil || resp.StatusCode != 410 {
		t.Errorf("a node's end of a step nobody waits for: %v", err)
	}
	if c != nil {
		c.Close()
	}
}

func TestAllocationEndsWithTheSrunThatMadeIt(t *testing.T) {
	t.Parallel()
	s, agents, id := stepCluster(t)
	var made client.StepMade
	s.Must("POST", "/api/v1/jobs/"+idText(id)+"/steps",
		client.NewStep{Argv: []string{"sleep"}, Tasks: 1, NodeList: "n2", OwnsJob: true}, &made)
	raw, err := s.Client().Stream(t.Context(), made.Key)
	if err != nil {
		t.Fatal(err)
	}
	k := agents["n2"].AwaitLaunch(id, 1, "0")
	raw.Close()
	s.AwaitState(id, core.Cancelled)
	agents["n2"].AwaitKill(k)
}

func TestSrunHearsOfALostNode(t *testing.T) {
	t.Parallel()
	s, agents, id := stepCluster(t)
	var made client.StepMade
	s.Must("POST", "/api/v1/jobs/"+idText(id)+"/steps", client.NewStep{Argv: []string{"x"}, Tasks: 1, NodeList: "n3"},
		&made)
	raw, err := s.Client().Stream(t.Context(), made.Key)
	if err != nil {
		t.Fatal(err)
	}
	srun := wire.NewConn(raw)
	defer srun.Close()
	agents["n3"].AwaitLaunch(id, 1, "0")
	agents["n3"].End(wire.Key{Job: core.JobID(id), Attempt: 1, Step: "0"}, func(x *wire.Exited) {
		x.Cause, x.Message = wire.CauseKeeperLost, "the keeper died"
	})
	f, err := srun.Next()
	if err != nil || f.Type != wire.TypeStepExit {
		t.Fatalf("%+v %v", f, err)
	}
	var x wire.TaskExit
	if err := f.Decode(&x); err != nil || x.Node != "n3" || x.Message != "the keeper died" {
		t.Errorf("%+v %v", x, err)
	}
}

func TestStepLayout(t *testing.T) {
	t.Parallel()
	s, _, id := stepCluster(t)
	cases := map[string]struct {
		ask  client.NewStep
		want string
		fail string
	}{
		"all nodes by default": {client.NewStep{}, "n1:1 n2:1 n3:1", ""},
		"tasks dealt":          {client.NewStep{Tasks: 4}, "n1:2 n2:1 n3:1", ""},
		"fewer than nodes":     {client.NewStep{Tasks: 2}, "n1:1 n2:1", ""},
		"on two nodes":         {client.NewStep{Tasks: 4, Nodes: 2}, "n1:2 n2:2", ""},
		"per node":             {client.NewStep{TasksPerNode: 2}, "n1:2 n2:2 n3:2", ""},
		"a named node":         {client.NewStep{Tasks: 2, NodeList: "n3"}, "n3:2", ""},
		"wide tasks":           {client.NewStep{Tasks: 3, CPUsPerTask: 2}, "n1:1 n2:1 n3:1", ""},
		"too many tasks":       {client.NewStep{Tasks: 7}, "", "too_many_cpus"},
		"far too many tasks":   {client.NewStep{TasksPerNode: 1 << 30}, "", "too_many_cpus"},
		"more than any node":   {client.NewStep{Tasks: 1 << 30, Overcommit: true}, "", "too_many_cpus"},
		"a node named twice":   {client.NewStep{Tasks: 2, NodeList: "n3,n[2-3]"}, "n2:1 n3:1", ""},
		"in endless planes":    {client.NewStep{Tasks: 4, Nodes: 2, Distribution: "plane=4294967296"}, "n1:2 n2:2", ""},
		"less than none":       {client.NewStep{Tasks: -1}, "", "invalid_shape"},
		"too many nodes":       {client.NewStep{Nodes: 4}, "", "too_many_nodes"},
		"a foreign node":       {client.NewStep{NodeList: "n9"}, "", "invalid_node"},
	}
	for name, c := range cases {
		c.ask.Argv, c.ask.Overlap = []string{"true"}, true
		var made client.StepMade
		_, err := s.Call("POST", "/api/v1/jobs/"+idText(id)+"/steps", "", c.ask, &made)
		if c.fail != "" {
			if err == nil || err.Reason != c.fail {
				t.Errorf("%s: %v, want %s", name, err, c.fail)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []string
		for i, n := range made.Step.Nodes {
			got = append(got, string(n)+":"+itoa(int(made.Step.Tasks[i])))
		}
		if g := strings.Join(got, " "); g != c.want {
			t.Errorf("%s: %s, want %s", name, g, c.want)
		}
	}
}

// A changed limit of a step reaches its node, beside the job's.
func TestStepLimitIsChanged(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	n := s.Join("n1", core.Compute, false)
	n.Connect()
	id := s.Submit(func(in *client.Submit) { in.Spec.TimeLimit = 3600 })
	n.AwaitLaunch(id, 1, wire.BatchStep)
	s.Must("POST", "/api/v1/jobs/"+idText(id)+"/steps", client.NewStep{Argv: []string{"x"}, Tasks: 1, Overlap: true}, nil)
	n.AwaitLaunch(id, 1, "0")
	s.Must("PATCH", "/api/v1/jobs/"+idText(id)+"/steps/0", client.UpdateStep{TimeLimit: 120}, nil)
	var set wire.SetLimit
	if err := n.AwaitFrame(wire.TypeSetLimit).Decode(&set); err != nil || set.Limit != time.Hour ||
		set.Steps["0"] != 2*time.Minute {
		t.Errorf("limit %+v, %v", set, err)
	}
}
