package state

import (
	"strings"
	"testing"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
	"bireme.dev/bireme/internal/core/storage"
	"bireme.dev/bireme/internal/engine/state/volumes"
)

// volumeWorld is two nodes, a project with two members, and classes of volumes.
func volumeWorld(t *testing.T) *world {
	w := newWorld(t, Config{Volumes: []storage.Class{
		{Name: "fast", Driver: storage.Shared, Path: "/shared", Quota: 10 * core.GiB},
		{Name: "disk", Driver: storage.Image, Path: "/images", MaxSize: core.GiB, Max: 2},
		{Name: "theirs", Driver: storage.Shared, Path: "/theirs", Projects: []core.ProjectName{"other"}},
	}})
	for _, u := range []core.UserName{"alice", "bob", "eve"} {
		w.must(&PutUser{By: root, User: &core.User{Name: u}})
	}
	w.must(&PutProject{By: root, Project: &core.Project{Name: "lab", Members: []core.Member{
		{User: "alice", Role: core.RoleUser}, {User: "bob", Role: core.RoleUser},
	}}})
	for _, name := range []core.NodeName{"n1", "n2"} {
		n := coretest.Node(name).Build()
		w.must(&Register{Node: n.Name, Hardware: n.Hardware, Host: n.Host, Roles: n.Roles})
	}
	return w
}

func as(user core.UserName) core.Identity { return core.Identity{User: user, UID: 1000} }

// makeVolume makes a volume and has its node say that it is there.
func makeVolume(w *world, name, class string, more func(*core.Volume)) *core.Volume {
	w.t.Helper()
	v := &core.Volume{Project: "lab", Name: name, Class: class, Size: core.GiB}
	if more != nil {
		more(v)
	}
	made := w.must(&PutVolume{By: as("alice"), Volume: v}).(*core.Volume)
	w.must(&VolumeNews{Node: made.Node, Key: made.Key(), Created: made.Created})
	if v, _ := w.st.rec.Volume(made.Key()); v.State != core.VolumeActive {
		w.t.Fatalf("volume %s is %s", name, v.State)
	}
	return made
}

func mounting(mounts ...core.VolumeMount) *core.Spec {
	return coretest.Job().Set(func(s *core.Spec) {
		s.Project, s.TimeLimit = "lab", 3600
		s.Extra = &core.Extra{Volumes: mounts}
	}).Spec()
}

func (w *world) submitMounting(mounts ...core.VolumeMount) (core.JobID, error) {
	reply, err := w.do(&Submit{By: as("alice"), Spec: mounting(mounts...)})
	if err != nil {
		return 0, err
	}
	return reply.(*Submitted).ID, nil
}

// TestVolumeHasOneJob: a volume that allows one writer is never with two jobs, also while its job is being cleaned away
// and across a restart of the server; the next one waits, says for what, and starts when the node is clean.
func TestVolumeHasOneJob(t *testing.T) {
	t.Parallel()
	w := volumeWorld(t)
	v := makeVolume(w, "img", "disk", nil)
	if !v.Single || !v.Bound || v.Node != "n1" {
		t.Fatalf("an image: %+v", v)
	}
	mount := core.VolumeMount{Name: "img", Target: "/data"}
	first, err := w.submitMounting(mount)
	if err != nil {
		t.Fatal(err)
	}
	second, err := w.submitMounting(mount)
	if err != nil {
		t.Fatal(err)
	}
	if got := w.pass(); len(got) != 1 || got[0].ID != first {
		t.Fatalf("started %+v", got)
	}
	j, _ := w.st.rec.Job(first)
	if j.Alloc.Nodes[0].Node != "n1" {
		t.Fatalf("the job is on %s, its volume on n1", j.Alloc.Nodes[0].Node)
	}
	other, _ := w.st.rec.Job(second)
	if why := w.plan.Reason(other); !strings.Contains(why.Text, "volume lab/img") {
		t.Errorf("it waits for %+v", why)
	}
	// A start that a planner of before proposes is refused.
	forged := &Start{Job: second, Alloc: through(t, j.Alloc)}
	if _, err := w.do(forged); core.CodeOf(err) != core.Conflict {
		t.Errorf("a second start: %v", err)
	}
	w.must(&Exited{Node: "n1", Job: first, Attempt: 1, Step: "batch"})
	w.st = New(w.cfg, w.image())
	w.p = w.planner(w.st.All())
	w.st.Advance(w.now)
	if got := w.pass(); len(got) != 0 {
		t.Fatalf("started while the node is not clean: %+v", got)
	}
	if _, err := w.do(&DropVolume{By: as("alice"), Key: v.Key()}); core.ReasonOf(err) != "volume_in_use" {
		t.Errorf("deletion of a volume in use: %v", err)
	}
	w.must(&NodeDone{Node: "n1", Job: first, Attempt: 1})
	if got := w.pass(); len(got) != 1 || got[0].ID != second {
		t.Fatalf("started %+v when the node was clean", got)
	}
}

// TestVolumeRights: who may have, take over and delete whose volumes, and how much of them.
func TestVolumeRights(t *testing.T) {
	t.Parallel()
	w := volumeWorld(t)
	makeVolume(w, "data", "fast", nil)
	put := func(by core.Identity, v core.Volume) Input {
		if v.Project == "" {
			v.Project = "lab"
		}
		return &PutVolume{By: by, Volume: &v}
	}
	key := core.VolumeKey{Project: "lab", Name: "data"}
	const gib = core.GiB
	for name, tc := range map[string]struct {
		in   Input
		want core.Code
		says string
	}{
		"stranger makes":   {put(as("eve"), core.Volume{Name: "mine", Class: "fast", Size: gib}), core.Denied, "project lab"},
		"stranger deletes": {&DropVolume{By: as("eve"), Key: key}, core.Denied, "project lab"},
		"colleague deletes": {
			&DropVolume{By: as("bob"), Key: key}, core.Denied, "is alice's",
		},
		"taken":    {put(as("bob"), core.Volume{Name: "data", Class: "fast", Size: gib}), core.Conflict, "already exists"},
		"bad name": {put(as("bob"), core.Volume{Name: "../x", Class: "fast", Size: gib}), core.Invalid, "lower-case"},
		"no class": {put(as("bob"), core.Volume{Name: "xx", Class: "fats", Size: gib}), core.Invalid, "fast"},
		"other project's class": {
			put(as("bob"), core.Volume{Name: "xx", Class: "theirs", Size: gib}), core.Invalid, "no class",
		},
		"no size":      {put(as("bob"), core.Volume{Name: "xx", Class: "fast"}), core.Invalid, "needs a size"},
		"too large":    {put(as("bob"), core.Volume{Name: "xx", Class: "disk", Size: 2 * gib}), core.Exhausted, "more than"},
		"over quota":   {put(as("bob"), core.Volume{Name: "xx", Class: "fast", Size: 10 * gib}), core.Exhausted, "quota"},
		"takes over":   {put(as("bob"), core.Volume{Name: "xx", Class: "fast", Path: "other/data"}), core.Denied, "only"},
		"leads out":    {put(root, core.Volume{Name: "xx", Class: "fast", Path: "../etc"}), core.Invalid, "without . and .."},
		"no such node": {put(root, core.Volume{Name: "xx", Class: "disk", Size: gib, Node: "n9"}), core.Invalid, "n9"},
		"forgets":      {&DropVolume{By: as("alice"), Key: key, Forget: true}, core.Denied, "administrators"},
		"project goes": {&DropProject{By: root, Name: "lab", Members: true}, core.Conflict, "volume data"},
	} {
		if _, err := w.do(tc.in); core.CodeOf(err) != tc.want || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v, want %s with %q", name, err, tc.want, tc.says)
		}
	}
	for says, m := range map[string]core.VolumeMount{
		"there is no volume": {Name: "absent", Target: "/data"},
		"must not be /":      {Name: "data", Target: "/proc/1"},
		"absolute path":      {Name: "data", Target: "data"},
	} {
		if _, err := w.submitMounting(m); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want %q", m, err, says)
		}
	}
	if _, err := w.submitMounting(core.VolumeMount{Name: "absent", Others: []string{"data"}, Target: "/d"}); err != nil {
		t.Errorf("one of several: %v", err)
	}
}

// TestVolumePerNode: each node of a job has a volume of its own, and is the node that the volume is on.
func TestVolumePerNode(t *testing.T) {
	t.Parallel()
	w := volumeWorld(t)
	for i, node := range []core.NodeName{"n1", "n2"} {
		makeVolume(w, "part-"+string(rune('0'+i)), "disk", func(v *core.Volume) { v.Node = node })
	}
	spec := mounting(core.VolumeMount{Name: "part-${{ dstack.node_rank }}", Target: "/data"})
	spec.Shape.NodesMin, spec.Shape.NodesMax = 2, 2
	w.must(&Submit{By: as("alice"), Spec: spec})
	got := w.pass()
	if len(got) != 1 {
		t.Fatalf("started %+v: %+v", got, w.plan)
	}
	j, _ := w.st.rec.Job(got[0].ID)
	if n := len(j.Alloc.Licenses()); n != 2 || j.Alloc.Nodes[0].Node != "n1" || j.Alloc.Nodes[1].Node != "n2" {
		t.Errorf("%d volumes on %+v", n, j.Alloc.Nodes)
	}
	groups := &Submit{
		By: as("alice"), Spec: mounting(core.VolumeMount{Name: "part-0", Target: "/data"}),
		Components: []*core.Spec{mounting(core.VolumeMount{Name: "part-0", Target: "/data"})},
	}
	if _, err := w.do(groups); err == nil || !strings.Contains(err.Error(), "groups") {
		t.Errorf("one volume in two components: %v", err)
	}
	whole := mounting(core.VolumeMount{Name: "part-0", Target: "/data"})
	whole.Shape.NodesMin, whole.Shape.NodesMax = 2, 2
	if _, err := w.do(&Submit{By: as("alice"), Spec: whole}); err == nil || !strings.Contains(err.Error(), "node_rank") {
		t.Errorf("one volume on two nodes: %v", err)
	}
}

// TestVolumeLife: a volume that fails says why; one that nobody uses goes by itself; news of another one are not taken.
func TestVolumeLife(t *testing.T) {
	t.Parallel()
	w := volumeWorld(t)
	made := w.must(&PutVolume{By: as("alice"), Volume: &core.Volume{
		Project: "lab", Name: "bad", Class: "fast", Size: core.GiB,
	}}).(*core.Volume)
	w.must(&VolumeNews{Node: "n9", Key: made.Key(), Created: made.Created})
	w.must(&VolumeNews{Node: made.Node, Key: made.Key(), Created: made.Created - 1})
	if v, _ := w.st.rec.Volume(made.Key()); v.State != core.VolumeSubmitted {
		t.Errorf("news of others were taken: %s", v.State)
	}
	w.must(&VolumeNews{Node: made.Node, Key: made.Key(), Created: made.Created, Fault: "disk full"})
	if _, err := w.submitMounting(core.VolumeMount{Name: "bad", Target: "/d"}); err == nil ||
		!strings.Contains(err.Error(), "disk full") {
		t.Errorf("a failed volume is mounted: %v", err)
	}
	v := makeVolume(w, "brief", "fast", func(v *core.Volume) { v.Cleanup = 60 })
	id, err := w.submitMounting(core.VolumeMount{Name: "brief", Target: "/d"})
	if err != nil {
		t.Fatal(err)
	}
	w.advance(w.now.Add(2 * time.Minute))
	if v, _ := w.st.rec.Volume(v.Key()); v.State != core.VolumeActive {
		t.Fatalf("a volume that a job waits for is %s", v.State)
	}
	w.pass()
	w.must(&Exited{Node: "n1", Job: id, Attempt: 1, Step: "batch", JobDone: true})
	if next := w.st.NextWake(); next != w.now.Add(time.Minute) {
		t.Errorf("it is looked at again at %v, not a minute after %v", next, w.now)
	}
	w.advance(w.now.Add(time.Minute))
	if v, _ := w.st.rec.Volume(v.Key()); v.State != core.VolumeDeleting {
		t.Fatalf("a volume that nobody used for a minute is %s", v.State)
	}
	w.must(&VolumeNews{Node: v.Node, Key: v.Key(), Created: v.Created, Gone: true, Fault: "busy"})
	if v, ok := w.st.rec.Volume(v.Key()); !ok || v.Message != "busy" {
		t.Errorf("a volume that was not removed: %+v", v)
	}
	w.must(&VolumeNews{Node: v.Node, Key: v.Key(), Created: v.Created, Gone: true})
	if _, ok := w.st.rec.Volume(v.Key()); ok {
		t.Error("a volume that was removed is still there")
	}
}

// TestVolumeStored: a stored record that cannot be used does no harm.
func TestVolumeStored(t *testing.T) {
	t.Parallel()
	table := volumes.NewTable([]*core.Volume{
		{Project: "p", Name: "fine", State: core.VolumeActive},
		{Project: "p", Name: "state", State: "odd"},
		{Project: "p", Name: "size", State: core.VolumeActive, Size: -1},
		{Project: "p", Name: "path", State: core.VolumeActive, Path: "../../etc"},
	})
	for _, v := range table.Volumes() {
		if bad := v.State == core.VolumeFailed && v.Message != ""; bad != (v.Name != "fine") {
			t.Errorf("%s is %s: %s", v.Name, v.State, v.Message)
		}
	}
}
