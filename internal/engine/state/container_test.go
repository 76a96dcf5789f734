package state

import (
	"strings"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
	"bireme.dev/bireme/internal/engine/state/jobs"
)

// boxed makes a world of two nodes and starts a job with a container on each.
func boxed(t *testing.T, cfg Config, by core.Identity, c core.Container) (*world, *core.Job, error) {
	t.Helper()
	w := newWorld(t, cfg)
	for _, name := range []core.NodeName{"n1", "n2"} {
		node := coretest.Node(name).Build()
		w.must(&Register{Node: node.Name, Hardware: node.Hardware, Host: node.Host, Roles: node.Roles})
	}
	w.must(&EnsureUser{UID: 1000, UnixName: "alice"})
	spec := coretest.Job().Nodes(2).Set(func(s *core.Spec) { s.Runtime, s.Extra = "", &core.Extra{Container: &c} }).Spec()
	reply, err := w.do(&Submit{By: by, Spec: spec})
	if err != nil {
		return w, nil, err
	}
	w.pass()
	j, _ := w.st.Snapshot().Job(reply.(*Submitted).ID)
	return w, j, nil
}

// TestHolderEndsItsJob: a job whose container on one node is gone is over, as that says, and not by its numbered steps.
func TestHolderEndsItsJob(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		end  Exited
		want core.JobState
		says string
	}{
		"killed": {
			Exited{Exit: core.Exit{Signal: 9}, Message: "the container was killed"},
			core.Failed,
			"the container on n2: the container was killed",
		},
		"without word": {Exited{}, core.Failed, "the container on n2"},
		"not made": {
			Exited{Cause: CauseLaunch, Message: "no such image"},
			core.Failed,
			"the container on n2: no such image",
		},
		"memory": {
			Exited{Cause: jobs.CauseOOM, Exit: core.Exit{Signal: 9}, Message: "out of memory"},
			core.OutOfMemory,
			"the container on n2: out of memory",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, j, err := boxed(t, Config{}, root, core.Container{Image: "box:1"})
			if err != nil || j.State != core.Running {
				t.Fatalf("%v %v", j, err)
			}
			in := tc.end
			in.Node, in.Job, in.Attempt, in.Step = j.Alloc.Nodes[1].Node, j.ID, j.Attempt, "extern"
			w.must(&in)
			j, _ = w.st.Snapshot().Job(j.ID)
			if j.State != tc.want || j.Message != strings.Replace(tc.says, "n2", string(in.Node), 1) {
				t.Errorf("it is %s: %q", j.State, j.Message)
			}
			w.must(&Exited{
				Node: j.Alloc.Nodes[0].Node, Job: j.ID, Attempt: j.Attempt, Step: "batch", JobDone: true,
				Cause: CauseCancelled,
			})
			if again, _ := w.st.Snapshot().Job(j.ID); again.State != tc.want {
				t.Errorf("after its script ended it is %s", again.State)
			}
		})
	}
}

// TestContainerRules: what of its node anybody's container may have is the site's to say.
func TestContainerRules(t *testing.T) {
	t.Parallel()
	alice := core.Identity{User: "alice", UID: 1000}
	site := Config{Containers: core.ContainerRules{Volumes: []string{"/pool/"}}}
	mount := func(source string) core.Container {
		return core.Container{Image: "box:1", Mounts: []core.Mount{{Source: source, Target: "/x"}}}
	}
	mine := mount("/etc")
	mine.Submitter = true
	own := core.Partition{Name: "main", Nodes: "n[1-2]", Default: true, AllowProjects: []core.ProjectName{"default"}}
	for name, tc := range map[string]struct {
		cfg     Config
		by      core.Identity
		c       core.Container
		err     string // part of it
		bounded bool
	}{
		"a path of everybody's": {site, alice, mount("/pool/a"), "", true},
		"that path itself":      {site, alice, mount("/pool"), "", true},
		"another":               {site, alice, mount("/poolside"), "others may mount what is below /pool/", false},
		"none are everybody's": {
			Config{},
			alice, mount("/pool"), "the setting step.volumes names paths for everybody",
			false,
		},
		"an administrator's":     {Config{}, root, mount("/etc"), "", false},
		"its submitter's inside": {Config{}, alice, mine, "", false},
		"privileged": {
			site, alice,
			core.Container{Image: "box:1", Privileged: true},
			"may be privileged",
			false,
		},
		"privileged, for all": {
			Config{Containers: core.ContainerRules{Privileged: true}},
			alice,
			core.Container{Image: "box:1", Privileged: true},
			"", true,
		},
		"privileged, in partitions of its own": {
			Config{Partitions: []core.Partition{own}},
			alice,
			core.Container{Image: "box:1", Privileged: true},
			"", false,
		},
		"privileged, in one that shares nodes": {
			Config{Partitions: []core.Partition{own, {Name: "all", Nodes: "n[2-3]"}}},
			alice,
			core.Container{Image: "box:1", Privileged: true},
			"may be privileged", false,
		},
		"who says so is not heard":  {Config{}, root, core.Container{Image: "box:1", Bounded: true}, "", false},
		"who denies it is not, too": {site, alice, core.Container{Image: "box:1"}, "", true},
	} {
		_, j, err := boxed(t, tc.cfg, tc.by, tc.c)
		switch {
		case tc.err != "" && (core.CodeOf(err) != core.Denied || !strings.Contains(err.Error(), tc.err)):
			t.Errorf("%s: %v", name, err)
		case tc.err == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case tc.err == "" && j.Spec.Extra.Container.Bounded != tc.bounded:
			t.Errorf("%s: bounded is %v", name, j.Spec.Extra.Container.Bounded)
		}
	}
}

// TestTrustedProject: an administrator gives a project's containers all rights, a manager does not.
func TestTrustedProject(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{})
	w.must(&Register{Node: "n1", Hardware: core.Hardware{CPUs: 4, Memory: core.GiB}, Host: core.Host{Root: true}})
	w.must(&EnsureUser{UID: 1000, UnixName: "alice"})
	alice := core.Identity{User: "alice", UID: 1000}
	lab := &core.Project{Name: "lab", Members: []core.Member{{User: "alice", Role: core.RoleManager}}}
	w.must(&PutProject{By: root, Project: lab})
	try := func() error {
		spec := coretest.Job().Name("x").User("alice").Set(func(s *core.Spec) {
			s.UID, s.Project, s.Runtime = 1000, "lab", ""
			s.Extra = &core.Extra{Container: &core.Container{Image: "box:1", Privileged: true}}
		}).Spec()
		_, err := w.do(&Submit{By: alice, Spec: spec})
		return err
	}
	trusted := *lab
	trusted.Trusted = true
	w.must(&PutProject{By: alice, Project: &trusted})
	if err := try(); core.CodeOf(err) != core.Denied || !strings.Contains(err.Error(), "trusted") {
		t.Fatalf("a manager made the project trusted: %v", err)
	}
	w.must(&PutProject{By: root, Project: &trusted})
	if err := try(); err != nil {
		t.Fatal(err)
	}
}
