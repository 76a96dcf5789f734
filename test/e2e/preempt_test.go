//go:build e2e

package e2e

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/test/cluster"
)

// preempting is a cluster of one node with two CPUs on which jobs of QOS high push those of QOS low aside.
func preempting(t *testing.T, set ...string) *cluster.Cluster {
	t.Helper()
	c := cluster.Start(t, cluster.Options{Nodes: 1, CPUs: 2, Set: append(set, "preemption.type=qos")})
	policy := write(t, filepath.Join(c.Work, "policy.yml"),
		"qos:\n  low: {priority: 1}\n  high: {priority: 100, preempt: [low]}\n")
	c.Root().Run("bireme", "policy", "apply", policy)
	return c
}

// A job of low QOS gets TERM, goes back to the queue and runs again when the one it left for has ended.
func TestPreemptRequeue(t *testing.T) {
	t.Parallel()
	c := preempting(t, "preemption.mode=requeue", "preemption.grace=5s")
	p := c.As(alice)
	file := filepath.Join(c.Work, "low.out")
	script :=
		`trap 'echo got TERM; exit 1' TERM; echo run; if [ "$SLURM_RESTART_COUNT" = 1 ]; then exit 0; fi; while :; ` +
			`do sleep 0.05; done`
	low := p.Sbatch("--qos=low", "--requeue", "--open-mode=append", "-c2", "--mem=16M", "-o", file, "--wrap", script)
	c.WaitFile(file, "run\n")
	high := p.Sbatch("--qos=high", "-c2", "--mem=16M", "-o", "/dev/null", "--wrap", "true")
	if j := c.WaitEnd(high); j.State != core.Completed {
		t.Fatalf("the urgent job ended %v: %s", j.State, j.Message)
	}
	j := c.WaitEnd(low)
	if j.State != core.Completed || j.Attempt != 2 || j.Pushed == nil || j.Pushed.Times != 1 {
		t.Errorf("the job that had to go ended %v in attempt %d, %+v", j.State, j.Attempt, j.Pushed)
	}
	out := read(t, file)
	wants(t, "its output", out, "got TERM", "DUE TO PREEMPTION")
	if strings.Count(out, "run\n") != 2 {
		t.Errorf("it ran not twice:\n%s", out)
	}
	wants(t, "the events", c.Root().Run("bireme", "events"), "job.preempted")
	c.WaitClean()
}

// One that may not go back ends as PREEMPTED.
func TestPreemptCancel(t *testing.T) {
	t.Parallel()
	c := preempting(t, "preemption.mode=requeue")
	p := c.As(alice)
	file := filepath.Join(c.Work, "low.out")
	low := p.Sbatch("--qos=low", "--no-requeue", "-c2", "--mem=16M", "-o", file, "--wrap",
		"echo run; while :; do sleep 0.05; done")
	c.WaitFile(file, "run\n")
	high := p.Sbatch("--qos=high", "-c2", "--mem=16M", "-o", "/dev/null", "--wrap", "true")
	if j := c.WaitEnd(low); j.State != core.Preempted {
		t.Errorf("it ended %v: %s", j.State, j.Message)
	}
	wants(t, "sacct", c.Root().Run("sacct", "-n", "-X", "-P", "-j", low, "-o", "State"), "PREEMPTED")
	if j := c.WaitEnd(high); j.State != core.Completed {
		t.Errorf("the urgent job ended %v: %s", j.State, j.Message)
	}
	c.WaitClean()
}

// A suspended job stands still while the one that uses its CPUs runs, and continues by itself.
func TestPreemptSuspend(t *testing.T) {
	t.Parallel()
	c := preempting(t, "preemption.mode=suspend")
	p := c.As(alice)
	file, other := filepath.Join(c.Work, "low.out"), filepath.Join(c.Work, "high.out")
	low := p.Sbatch("--qos=low", "-c2", "--mem=16M", "-o", file, "--wrap", "echo run; until [ -e "+other+
		".done ]; do echo tick; sleep 0.02; done; echo end")
	c.WaitFile(file, "run\ntick\n")
	// What is written between two looks at the other's output is nothing.
	high := p.Sbatch("--qos=high", "-c2", "--mem=16M", "-o", other, "--wrap",
		"until a=$(stat -c %s "+file+"); sleep 0.3; [ \"$a\" = \"$(stat -c %s "+file+
			")\" ]; do :; done; echo it stands still")
	if j := c.WaitEnd(high); j.State != core.Completed {
		t.Fatalf("the urgent job ended %v: %s", j.State, j.Message)
	}
	wants(t, "the urgent job's output", read(t, other), "it stands still")
	c.WaitState(low, core.Running)
	write(t, other+".done", "")
	j := c.WaitEnd(low)
	if j.State != core.Completed || j.Attempt != 1 || j.PausedFor < 300*time.Millisecond {
		t.Errorf("the suspended job ended %v in attempt %d after a pause of %v: %s", j.State, j.Attempt, j.PausedFor,
			j.Message)
	}
	wants(t, "its output", read(t, file), "end")
	c.WaitClean()
}
