package sbatch

import (
	"strings"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/slurm/slurmtest"
)

// TestHet sends components that are separated on the command line, in the script, or in both: what is said for the
// first holds for all, sizes are each one's own.
func TestHet(t *testing.T) {
	t.Parallel()
	scripts := map[string]string{
		"sleep.sh": "#!/bin/bash\nsleep 600\n",
		"het.sh": "#!/bin/bash\n#SBATCH -t 5 --mem-per-cpu=10 -n1\n#SBATCH hetjob\n#SBATCH -n2 " +
			"--gres=gpu:1\n#SBATCH HetJob\n#SBATCH -N2 -t 7\nsrun x\n",
	}
	for name, tc := range map[string]struct {
		args []string
		want []core.Spec // names, tasks, CPUs, nodes, limits
	}{
		"line": {
			[]string{"-J", "het", "-n1", "-c4", "-t", "10", ":", "-n2", "--gres=gpu:1", "sleep.sh"},
			[]core.Spec{
				{Name: "het", TimeLimit: 600, Shape: core.Shape{Tasks: 1, CPUsPerTask: 4}},
				{Name: "het", TimeLimit: 600, Shape: core.Shape{Tasks: 2, CPUsPerTask: 1}},
			},
		},
		"script": {
			[]string{"het.sh"},
			[]core.Spec{
				{Name: "het.sh", TimeLimit: 300, Shape: core.Shape{Tasks: 1, CPUsPerTask: 1}},
				{Name: "het.sh", TimeLimit: 300, Shape: core.Shape{Tasks: 2, CPUsPerTask: 1}},
				{Name: "het.sh", TimeLimit: 420, Shape: core.Shape{Tasks: 2, CPUsPerTask: 1, NodesMin: 2}},
			},
		},
		"both": {
			[]string{"-J", "x", ":", "-n3", "het.sh"},
			[]core.Spec{
				{Name: "x", TimeLimit: 300, Shape: core.Shape{Tasks: 1, CPUsPerTask: 1}},
				{Name: "x", TimeLimit: 300, Shape: core.Shape{Tasks: 3, CPUsPerTask: 1}},
				{Name: "x", TimeLimit: 420, Shape: core.Shape{Tasks: 2, CPUsPerTask: 1, NodesMin: 2}},
			},
		},
		"wrapped": {
			[]string{"-n1", ":", "-n2", "--wrap", "sleep 1"},
			[]core.Spec{
				{Name: "wrap", Shape: core.Shape{Tasks: 1, CPUsPerTask: 1}},
				{Name: "wrap", Shape: core.Shape{Tasks: 2, CPUsPerTask: 1}},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &slurmtest.Cluster{}
			got := c.Start(t).Run(t, "sbatch", Run, tc.args, func(w *cmd.World) { files(t, w, scripts) })
			if got.Out != "Submitted batch job 1\n" || got.Err != "" || len(c.Submits) != 1 {
				t.Fatalf("%q %q, %d submissions", got.Out, got.Err, len(c.Submits))
			}
			sent := append([]core.Spec{c.Submits[0].Spec}, c.Submits[0].Components...)
			if len(sent) != len(tc.want) {
				t.Fatalf("%d components, want %d", len(sent), len(tc.want))
			}
			for i, w := range tc.want {
				s := sent[i]
				if s.Name != w.Name || s.TimeLimit != w.TimeLimit || s.Shape.Tasks != w.Shape.Tasks ||
					s.Shape.CPUsPerTask != w.Shape.CPUsPerTask || s.Shape.NodesMin != w.Shape.NodesMin {
					t.Errorf("component %d is %s %d %+v, want %s %d %+v", i, s.Name, s.TimeLimit, s.Shape, w.Name,
						w.TimeLimit, w.Shape)
				}
			}
			if name == "line" && (len(sent[0].Shape.Gres) != 0 || len(sent[1].Shape.Gres) != 1) {
				t.Errorf("generic resources %v and %v", sent[0].Shape.Gres, sent[1].Shape.Gres)
			}
		})
	}
}

// TestHetRefused leaves it to the hint to say which component is meant.
func TestHetRefused(t *testing.T) {
	t.Parallel()
	c := &slurmtest.Cluster{Refuse: core.Errorf(core.Invalid, `component 1: there is no partition "x"`).Because(
		"invalid_partition")}
	got := c.Start(t).Run(t, "sbatch", Run, []string{"-n1", ":", "-p", "x", "--wrap", "sleep 1"})
	if got.Err != "sbatch: error: Batch job submission failed: Invalid partition name specified\n" ||
		got.Hint != "sbatch: hint: component 1: there is no partition \"x\"\n" || got.Code != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestArrayHint(t *testing.T) {
	t.Parallel()
	got := (&slurmtest.Cluster{}).Start(t).Run(t, "sbatch", Run, []string{"-a", "1-5000000", "--wrap", "true"})
	if want := `sbatch: hint: invalid job array "1-5000000": task index above 4000000`; !strings.HasPrefix(
		got.Hint, want) {
		t.Errorf("got %q, want %s", got.Hint, want)
	}
}
