package state

import (
	"strings"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
)

// whole asks as a YAML task does: whole blocks.
func whole(cpus int32, mem core.Bytes, gpus int64, nodes int32) *core.Spec {
	return coretest.Job().Set(func(s *core.Spec) {
		s.Shape = core.Shape{
			NodesMin: nodes, NodesMax: nodes, Tasks: nodes, TasksPerNode: 1, CPUsPerTask: cpus,
			MemPerNode: mem, Blocks: true,
		}
		if gpus > 0 {
			s.Shape.Gres = []core.Gres{{Name: "gpu", Count: gpus}}
		}
	}).Spec()
}

// splitWorld has a fleet of two hosts, each of 8 CPUs, 64 GiB and 4 GPUs.
func splitWorld(t *testing.T, blocks int32) *world {
	w := newWorld(t, Config{})
	w.must(&PutUser{By: root, User: &core.User{Name: "alice"}})
	f := fleetOf("lab", "a", "b")
	for i := range f.Hosts {
		f.Hosts[i].Blocks = blocks
	}
	w.must(&PutFleet{By: root, Fleet: f})
	for _, name := range []core.NodeName{"lab-0", "lab-1"} {
		w.must(&Register{
			Node: name, Roles: core.Compute, Fleet: "lab", Host: core.Host{Root: true, BootID: "b"},
			Hardware: core.Hardware{
				CPUs: 8, Memory: 64 * core.GiB, Gres: []core.Gres{{Name: "gpu", Type: "h200", Count: 4}},
			},
		})
	}
	return w
}

// start submits and says what the job got, or "waits".
func (w *world) startAs(spec *core.Spec) string {
	w.t.Helper()
	id := w.must(&Submit{By: root, Spec: spec}).(*Submitted).ID
	w.pass()
	j, _ := w.st.rec.Job(id)
	if j.Alloc == nil {
		return "waits"
	}
	var out []string
	for _, na := range j.Alloc.Nodes {
		text := string(na.Node) + " " + asJSON(w.t, na.Cores) + " " + asJSON(w.t, na.Mem/core.GiB)
		for _, g := range na.Gres {
			text += " " + asJSON(w.t, g.Units)
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

// TestBlocks: jobs that take whole blocks get as few as will do, with all that is in them; a job over several hosts
// gets them whole; jobs of the other front end share what is left, and neither ever has what the other has.
func TestBlocks(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		blocks int32
		specs  []*core.Spec
		want   []string
	}{
		"one block is the host": {
			1,
			[]*core.Spec{whole(1, 0, 0, 1), whole(1, 0, 0, 1), whole(1, 0, 0, 1)},
			[]string{"lab-0 [0,1,2,3,4,5,6,7] 64 [0,1,2,3]", "lab-1 [0,1,2,3,4,5,6,7] 64 [0,1,2,3]", "waits"},
		},
		"by CPUs, memory and GPUs": {
			4,
			[]*core.Spec{
				whole(1, 0, 0, 1), whole(3, 0, 0, 1), whole(1, 40*core.GiB, 0, 1), whole(1, 0, 1, 1),
				whole(1, 0, 1, 1),
			},
			[]string{
				"lab-0 [0,1] 16 [0]", "lab-0 [2,3,4,5] 32 [1,2]", "lab-1 [0,1,2,3,4,5] 48 [0,1,2]", "lab-0 [6,7] 16 [3]",
				"lab-1 [6,7] 16 [3]",
			},
		},
		"auto": {core.BlocksAuto, []*core.Spec{whole(1, 0, 0, 1)}, []string{"lab-0 [0,1] 16 [0]"}},
		"several hosts are whole": {
			4,
			[]*core.Spec{whole(1, 0, 0, 2), whole(1, 0, 0, 1)},
			[]string{"lab-0 [0,1,2,3,4,5,6,7] 64 [0,1,2,3]; lab-1 [0,1,2,3,4,5,6,7] 64 [0,1,2,3]", "waits"},
		},
		"shared with the other front end": {
			4,
			[]*core.Spec{
				coretest.Job().CPUs(1).Spec(), whole(7, 0, 0, 1), coretest.Job().CPUs(7).Spec(), whole(1, 0, 0, 1),
				whole(1, 0, 0, 2),
			},
			[]string{"lab-0 [0] 0", "lab-1 [0,1,2,3,4,5,6,7] 64 [0,1,2,3]", "lab-0 [1,2,3,4,5,6,7] 0", "waits", "waits"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := splitWorld(t, tc.blocks)
			for i, spec := range tc.specs {
				if got := w.startAs(spec); got != tc.want[i] {
					t.Errorf("job %d got %q, want %q", i, got, tc.want[i])
				}
			}
			w.check()
		})
	}
}

// TestBlocksThatDoNotDivide: a host that joins and cannot be split takes no job and says why; a fleet that would be
// split so is refused, and put right it is used.
func TestBlocksThatDoNotDivide(t *testing.T) {
	t.Parallel()
	w := splitWorld(t, 3)
	n, _ := w.st.rec.Node("lab-0")
	if n.Usable() || n.Reason != "blocks: 8 CPUs and 4 GPUs cannot be divided into 3 equal blocks" {
		t.Fatalf("node %+v", n)
	}
	if got := w.startAs(whole(1, 0, 0, 1)); got != "waits" {
		t.Fatalf("it got %s", got)
	}
	f := fleetOf("lab", "a", "b")
	f.Hosts[0].Blocks, f.Hosts[1].Blocks = 8, 4
	if _, err := w.do(&PutFleet{By: root, Fleet: f}); core.CodeOf(err) != core.Conflict ||
		!strings.Contains(err.Error(), "host a (node lab-0): 8 CPUs and 4 GPUs cannot be divided into 8") {
		t.Fatalf("got %v", err)
	}
	f = fleetOf("lab", "a", "b")
	f.Hosts[0].Blocks, f.Hosts[1].Blocks = 2, 4
	w.must(&PutFleet{By: root, Fleet: f})
	if n, _ = w.st.rec.Node("lab-0"); !n.Usable() || n.Blocks != 2 || n.Reason != "" {
		t.Fatalf("node %+v", n)
	}
	if started := w.pass(); len(started) != 1 {
		t.Fatalf("started %v", started)
	}
	w.check()
}
