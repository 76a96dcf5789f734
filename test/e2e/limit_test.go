//go:build e2e

package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/test/cluster"
)

// TestLimit is about what holds a job in.
func TestLimit(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{})
	t.Run("time", func(t *testing.T) { timeLimit(t, c.For(t)) })
	t.Run("warning", func(t *testing.T) { warning(t, c.For(t)) })
	t.Run("memory", func(t *testing.T) { memory(t, c.For(t)) })
	t.Run("cpus", func(t *testing.T) { cpus(t, c.For(t)) })
	t.Run("cancel", func(t *testing.T) { cancel(t, c.For(t)) })
	c.WaitClean()
}

// submit hands in a script by the API, where limits are counted in seconds: Slurm's commands round them up to minutes.
func submit(t *testing.T, c *cluster.Cluster, script string, change func(*core.Spec)) string {
	t.Helper()
	s := &client.Submit{
		Script: "#!/bin/bash\n" + script + "\n", Env: []string{"PATH=/usr/bin:/bin"},
		Spec: core.Spec{
			Name: "test", IO: core.IO{WorkDir: c.Work, Stdout: "/dev/null"},
			Shape: core.Shape{NodesMin: 1, NodesMax: 1, MemPerNode: 64 * core.MiB},
		},
	}
	change(&s.Spec)
	done, err := c.Client(10*time.Second).Submit(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(done.ID)
}

func timeLimit(t *testing.T, c *cluster.Cluster) {
	file := filepath.Join(c.Work, "limit.out")
	id := submit(t, c, `trap 'echo got TERM' TERM; echo begun; while :; do sleep 0.05; done`, func(s *core.Spec) {
		s.TimeLimit, s.IO.Stdout = 1, file
	})
	j := c.WaitEnd(id)
	if j.State != core.Timeout || j.Reason != core.ReasonTimeLimit {
		t.Errorf("ended %v (%s)", j.State, j.Reason)
	}
	// A second for the limit, half a one of grace; the rest is this machine's.
	if took := j.End.Sub(j.Start); took < 1400*time.Millisecond || took > 10*time.Second {
		t.Errorf("it ran for %v", took)
	}
	wants(t, "the output", read(t, file), "begun", "got TERM", "DUE TO TIME LIMIT")
	wants(t, "sacct", c.Root().Run("sacct", "-n", "-P", "-j", id, "-o", "State"), "TIMEOUT")
}

func warning(t *testing.T, c *cluster.Cluster) {
	file := filepath.Join(c.Work, "warn.out")
	id := submit(t, c, `trap 'echo warned; exit 0' USR1; echo begun; while :; do sleep 0.05; done`, func(s *core.Spec) {
		s.TimeLimit, s.IO.Stdout = 60, file
		s.Extra = &core.Extra{Signal: &core.WarnSignal{Signal: 10, Before: 59, Batch: true}}
	})
	if j := c.WaitEnd(id); j.State != core.Completed {
		t.Errorf("ended %v: %s", j.State, j.Message)
	}
	wants(t, "the output", read(t, file), "warned")
}

func memory(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	eat := "head -c 300m /dev/zero | tail >/dev/null"
	id := p.Sbatch("--mem=64M", "-o", "/dev/null", "--wrap", eat)
	if j := c.WaitEnd(id); j.State != core.OutOfMemory {
		t.Errorf("a job that takes 300 MiB of 64 ended %v %d:%d: %s", j.State, j.Exit.Code, j.Exit.Signal, j.Message)
	}
	wants(t, "sacct", p.Run("sacct", "-X", "-n", "-P", "-j", id, "-o", "State"), "OUT_OF_MEMORY")
	id = p.Sbatch("--mem=500M", "-o", "/dev/null", "--wrap", eat)
	j := c.WaitEnd(id)
	if j.State != core.Completed {
		t.Errorf("a job that takes 300 MiB of 500 ended %v: %s", j.State, j.Message)
	}
	if j.Usage.MaxRSS < 250*core.MiB || j.Usage.MaxRSS > 510*core.MiB {
		t.Errorf("its peak is told as %d MiB", j.Usage.MaxRSS/core.MiB)
	}
}

func cpus(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	out := filepath.Join(c.Work, "cpus-%j.out")
	id := p.Sbatch("-c", "1", "--mem=16M", "-o", out, "--wrap", "nproc; i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done")
	j := c.WaitEnd(id)
	if got := strings.TrimSpace(read(t, strings.ReplaceAll(out, "%j", id))); got != "1" {
		t.Errorf("a job with one CPU sees %s", got)
	}
	if j.Usage.User+j.Usage.Sys < 20*time.Millisecond {
		t.Errorf("its CPU time is told as %v user, %v system", j.Usage.User, j.Usage.Sys)
	}
}

func cancel(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	file := filepath.Join(c.Work, "cancel.out")
	id := p.Sbatch("-o", file, "--mem=16M", "--wrap",
		`trap 'echo got TERM' TERM; echo begun; while :; do sleep 0.05; done`)
	c.WaitFile(file, "begun")
	refused(t, c.As(bob).Try("scancel", id), 210, "Kill job error on job id "+id+": Access/permission denied")
	p.Run("scancel", id)
	if j := c.WaitEnd(id); j.State != core.Cancelled {
		t.Errorf("ended %v", j.State)
	}
	wants(t, "the output", read(t, file), "CANCELLED AT")
	wants(t, "sacct", p.Run("sacct", "-X", "-n", "-P", "-j", id, "-o", "State"), "CANCELLED by")
	// What waits goes at once, and never runs.
	held := p.Sbatch("-H", "--mem=16M", "-o", "/dev/null", "--wrap", "true")
	p.Run("scancel", held)
	if j := c.WaitEnd(held); j.State != core.Cancelled || j.Attempt != 0 {
		t.Errorf("a held job that was cancelled is %v in attempt %d", j.State, j.Attempt)
	}
}
