package state

import (
	"slices"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
)

// serviceWorld is a world with one node and a service on it.
type serviceWorld struct {
	*world
	t     *testing.T
	alice core.Identity
	name  core.ProjectName
}

func newServiceWorld(t *testing.T, groups ...core.ServiceGroup) *serviceWorld {
	w := &serviceWorld{world: newWorld(t, Config{}), t: t, alice: core.Identity{User: "alice", UID: 1000}}
	node := coretest.Node("n1").CPUs(16).Build()
	w.must(&Register{Node: node.Name, Hardware: node.Hardware, Host: node.Host, Roles: node.Roles})
	w.must(&EnsureUser{UID: 1000, UnixName: "alice"})
	svc := &core.Service{Groups: groups, Versions: []core.ServiceVersion{{Port: 80}}, Drain: 60}
	w.must(&Submit{
		By: w.alice, Spec: w.spec(), Script: serviceScript, Run: &core.Run{Name: "web", ID: "id-web", Service: svc},
	})
	w.name = w.st.Snapshot().Runs()[0].Project
	w.tend(nil)
	w.pass()
	return w
}

var serviceScript = []byte("#!/bin/sh\n")

func (w *serviceWorld) spec() *core.Spec {
	return coretest.Job().Set(func(s *core.Spec) { s.User, s.UID, s.Script = "alice", 1000, core.Hash{1} }).Spec()
}

func (w *serviceWorld) run() *core.Run {
	r, _ := w.st.Snapshot().Run(w.name, "web")
	return r
}

// tend reports that replicas are ready, and that all that drain have no requests left.
func (w *serviceWorld) tend(ready []int32, scale ...ScaleGroup) {
	w.t.Helper()
	in := &TendService{
		Project: w.name, Name: "web", ID: "id-web", Scale: scale,
		Blobs: []core.Blob{{Hash: core.Hash{1}, Data: serviceScript}},
	}
	if in.Project == "" {
		in.Project = w.st.Snapshot().Runs()[0].Project
	}
	for _, n := range ready {
		in.Ready = append(in.Ready, ReplicaNews{Num: n, Attempt: 1, Ready: true})
	}
	for _, r := range w.st.Snapshot().Runs()[0].Service.Replicas {
		if r.Draining != 0 {
			in.Drained = append(in.Drained, r.Num)
		}
	}
	w.must(in)
	w.pass()
}

// exit ends the process of a replica.
func (w *serviceWorld) exit(num, code int32) {
	w.t.Helper()
	for _, r := range w.run().Service.Replicas {
		if r.Num == num {
			w.must(&Exited{Node: "n1", Job: r.Job, Attempt: 1, Step: "batch", Exit: core.Exit{Code: code}, JobDone: true})
			return
		}
	}
	w.t.Fatalf("there is no replica %d", num)
}

// want checks which replicas there are: number, version, whether ready, whether on their way out.
func (w *serviceWorld) want(list ...[4]int32) {
	w.t.Helper()
	var have [][4]int32
	flag := func(b bool) int32 {
		if b {
			return 1
		}
		return 0
	}
	for _, r := range w.run().Service.Replicas {
		j, _ := w.st.Snapshot().Job(r.Job)
		have = append(have, [4]int32{r.Num, r.Version, flag(r.IsReady(j)), flag(r.Draining != 0 || r.Stopped)})
	}
	if len(have) != len(list) {
		w.t.Fatalf("replicas %v, not %v (%s)", have, list, w.run().Service.Message)
	}
	for i := range list {
		if have[i] != list[i] {
			w.t.Fatalf("replicas %v, not %v (%s)", have, list, w.run().Service.Message)
		}
	}
}

// TestServiceUpdate: replicas are jobs of one run; an update replaces them one by one and never leaves fewer ready than
// are wanted.
func TestServiceUpdate(t *testing.T) {
	t.Parallel()
	w := newServiceWorld(t, core.ServiceGroup{Min: 2, Max: 2})
	w.want([4]int32{0, 0, 0, 0}, [4]int32{1, 0, 0, 0})
	w.tend([]int32{0, 1})
	w.want([4]int32{0, 0, 1, 0}, [4]int32{1, 0, 1, 0})
	if n := len(w.run().Jobs); n != 2 {
		t.Fatalf("%d jobs", n)
	}
	next := described(w.run().Service)
	w.must(&EditRun{By: w.alice, Project: w.name, Name: "web", Service: next, Spec: w.spec()})
	w.tend(nil)
	w.want([4]int32{0, 0, 1, 0}, [4]int32{1, 0, 1, 0}, [4]int32{2, 1, 0, 0}) // one more, and none goes before it is ready
	w.tend([]int32{2})
	w.want([4]int32{0, 0, 1, 0}, [4]int32{1, 0, 0, 1}, [4]int32{2, 1, 1, 0})
	w.tend(nil) // it has no requests left: its job ends
	w.exit(1, 0)
	w.tend(nil)
	w.want([4]int32{0, 0, 1, 0}, [4]int32{2, 1, 1, 0}, [4]int32{3, 1, 0, 0})
	w.tend([]int32{3})
	w.tend(nil)
	w.exit(0, 0)
	w.tend(nil)
	w.want([4]int32{2, 1, 1, 0}, [4]int32{3, 1, 1, 0})
	if v := w.run().Service.Versions; len(v) != 1 || v[0].Num != 1 {
		t.Fatalf("versions %+v", v)
	}
}

// TestServiceRollBack: a new version whose replica fails before it was ready is taken back, and the old one goes on.
func TestServiceRollBack(t *testing.T) {
	t.Parallel()
	w := newServiceWorld(t, core.ServiceGroup{Min: 1, Max: 1})
	w.tend([]int32{0})
	w.must(&EditRun{By: w.alice, Project: w.name, Name: "web", Service: described(w.run().Service), Spec: w.spec()})
	w.tend(nil)
	w.want([4]int32{0, 0, 1, 0}, [4]int32{1, 1, 0, 0})
	w.exit(1, 7)
	w.tend(nil)
	w.want([4]int32{0, 0, 1, 0})
	if r := w.run(); r.Service.Message == "" || r.Service.Current().Num != 0 {
		t.Fatalf("%+v", r.Service)
	}
}

// TestServiceFailures: a replica that fails is replaced while another one serves; the failure of the last one ends the
// run, and that job decides how it ended.
func TestServiceFailures(t *testing.T) {
	t.Parallel()
	w := newServiceWorld(t, core.ServiceGroup{Min: 2, Max: 2})
	w.tend([]int32{0, 1})
	w.exit(0, 9)
	w.tend(nil)
	w.want([4]int32{1, 0, 1, 0}) // after a pause
	w.advance(w.st.Snapshot().Now().Add(core.Seconds(16).Duration()))
	w.tend(nil)
	w.want([4]int32{1, 0, 1, 0}, [4]int32{2, 0, 0, 0})
	w.exit(1, 9)
	if r := w.run(); r.Service.Stop == nil || r.FailedTask == 0 {
		t.Fatalf("%+v", r)
	}
	w.tend(nil)
	w.exit(2, 0)
	if r := w.run(); r != nil {
		t.Fatalf("it goes on: %+v", r)
	}
}

// TestServiceScaling: the load changes how many replicas there are within the range, also to none and back.
func TestServiceScaling(t *testing.T) {
	t.Parallel()
	w := newServiceWorld(t, core.ServiceGroup{Min: 0, Max: 2})
	w.tend([]int32{0})
	w.tend(nil, ScaleGroup{Want: 5, Why: "load"})
	w.want([4]int32{0, 0, 1, 0}, [4]int32{1, 0, 0, 0})
	w.tend([]int32{1}, ScaleGroup{Want: 0})
	w.tend(nil)
	w.exit(0, 0)
	w.exit(1, 0)
	w.want()
	if r := w.run(); len(r.Jobs) == 0 {
		t.Fatal("a run names at least its last job")
	}
	w.tend(nil, ScaleGroup{Want: 1})
	w.want([4]int32{2, 0, 0, 0})
	bob := core.Identity{User: "bob", UID: 1001}
	if _, err := w.do(&StopService{By: bob, Project: w.name, Name: "web"}); core.CodeOf(err) != core.Denied {
		t.Fatalf("another's service: %v", err)
	}
	w.must(&StopService{By: w.alice, Project: w.name, Name: "web"})
	w.exit(2, 0)
	if r := w.run(); r != nil {
		t.Fatalf("it goes on: %+v", r)
	}
}

// described is a service as a client describes it.
func described(s *core.Service) *core.Service {
	return &core.Service{Groups: s.Groups, Versions: []core.ServiceVersion{*s.Current()}, Drain: s.Drain}
}

// A manager of the project may stop a member's service, and not say what it runs: it runs as the member.
func TestServiceIsChangedByItsUser(t *testing.T) {
	t.Parallel()
	w := newServiceWorld(t, core.ServiceGroup{Min: 1, Max: 1})
	w.must(&EnsureUser{UID: 1001, UnixName: "mary"})
	project, _ := w.st.Snapshot().Project(w.name)
	changed := *project
	changed.Members = append(slices.Clone(project.Members), core.Member{User: "mary", Role: core.RoleManager})
	w.must(&PutProject{By: root, Project: &changed})
	mary := core.Identity{User: "mary", UID: 1001}
	edit := &EditRun{By: mary, Project: w.name, Name: "web", Service: described(w.run().Service), Spec: w.spec()}
	if _, err := w.do(edit); core.CodeOf(err) != core.Denied {
		t.Fatalf("a manager's edit of another's service: %v", err)
	}
	if n := len(w.run().Service.Versions); n != 1 {
		t.Errorf("%d versions after it was refused", n)
	}
	// Only the priority, of a spec that says nothing more.
	w.must(&EditRun{By: w.alice, Project: w.name, Name: "web", Service: described(w.run().Service), Priority: 7})
	if got := w.run().Service.Current().Specs[0].More().RunPriority; got != 7 {
		t.Errorf("the priority is %d", got)
	}
}
