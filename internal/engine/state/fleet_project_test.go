package state

import (
	"strings"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
)

// jobOf asks for two CPUs as a Slurm job does, or as a YAML task.
func jobOf(project core.ProjectName, task bool) *core.Spec {
	if task {
		s := whole(2, core.GiB, 0, 1)
		s.Project = project
		return s
	}
	return coretest.Job().Set(func(s *core.Spec) { s.Project = project }).Spec()
}

// TestFleetOfProject: the fleet of a project runs the jobs of that project alone, whichever front end they come from
// and although a partition names its nodes. It holds after a restart, and for a fleet that changes its project.
func TestFleetOfProject(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{})
	w.must(&PutUser{By: root, User: &core.User{Name: "alice"}})
	for _, p := range []core.ProjectName{"red", "blue"} {
		w.must(&PutProject{By: root, Project: &core.Project{Name: p}})
	}
	f := fleetOf("lab", "a")
	f.Project = "red"
	w.must(&PutFleet{By: root, Fleet: f})
	join(w, "lab-0", "lab")
	for _, task := range []bool{false, true} {
		if _, err := w.do(&Submit{By: root, Spec: jobOf("blue", task), Strict: true}); err == nil ||
			!strings.Contains(err.Error(), "1 of them run jobs of another project only") {
			t.Fatalf("a job that no node would run: %v", err)
		}
	}
	n := coretest.Node("free").Build()
	w.must(&Register{Node: n.Name, Hardware: n.Hardware, Host: n.Host, Roles: n.Roles})
	for _, task := range []bool{false, true} {
		if got := w.startAs(jobOf("blue", task)); !strings.HasPrefix(got, "free ") {
			t.Fatalf("blue's job is at %q", got)
		}
	}
	if got := w.startAs(whole(3, core.GiB, 0, 1)); got != "waits" { // of the default project
		t.Fatalf("a job of no project is at %q", got)
	}
	red := whole(3, core.GiB, 0, 1)
	red.Project = "red"
	if got := w.startAs(red); !strings.HasPrefix(got, "lab-0 ") {
		t.Fatalf("red's job is at %q", got)
	}
	fill := jobOf("blue", false)
	fill.Shape.NodesMin, fill.Shape.NodesMax, fill.Shape.Tasks, fill.Shape.Exclusive = 1, 1, 1, true
	if got := w.startAs(fill); got != "waits" {
		t.Fatalf("blue's job is at %q", got)
	}
	w.restart()
	w.pass()
	w.check()

	next := fleetOf("lab", "a")
	next.Project = "blue"
	w.must(&PutFleet{By: root, Fleet: next, Force: true})
	if n, _ := w.st.rec.Node("lab-0"); n.Project != "blue" {
		t.Fatalf("the node is of project %q", n.Project)
	}
	w.check()
}

// TestFleetOfProjectStored: nodes that were stored before they had a project get that of their fleet.
func TestFleetOfProjectStored(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{})
	w.must(&PutProject{By: root, Project: &core.Project{Name: "red"}})
	f := fleetOf("lab", "a")
	f.Project = "red"
	w.must(&PutFleet{By: root, Fleet: f})
	join(w, "lab-0", "lab")
	img := w.image()
	for i := range img.Nodes {
		n := *img.Nodes[i]
		n.Project, img.Nodes[i] = "", &n
	}
	again := New(w.cfg, img)
	if n, _ := again.rec.Node("lab-0"); n.Project != "red" {
		t.Fatalf("the node is of project %q", n.Project)
	}
}

// TestStartOnFleetOfAnother: a plan that was made before a fleet became another project's is not carried out.
func TestStartOnFleetOfAnother(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{})
	w.must(&PutUser{By: root, User: &core.User{Name: "alice"}})
	for _, p := range []core.ProjectName{"red", "blue"} {
		w.must(&PutProject{By: root, Project: &core.Project{Name: p}})
	}
	w.must(&PutFleet{By: root, Fleet: fleetOf("lab", "a")})
	join(w, "lab-0", "lab")
	id := w.must(&Submit{By: root, Spec: jobOf("blue", false)}).(*Submitted).ID
	starts := w.p.Pass(w.now).Starts
	if len(starts) != 1 || starts[0].Job != id {
		t.Fatalf("starts %+v", starts)
	}
	in := StartOf(&starts[0])
	next := fleetOf("lab", "a")
	next.Project = "red"
	w.must(&PutFleet{By: root, Fleet: next})
	if _, err := w.do(in); core.CodeOf(err) != core.Conflict {
		t.Fatalf("the start is carried out: %v", err)
	}
}
