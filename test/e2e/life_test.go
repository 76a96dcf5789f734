//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/test/cluster"
)

// A directory is one cluster: a second start is refused, and leaves the first alone.
func TestSecondStart(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{})
	r := c.Root().Try("biremed", c.Args()...)
	if r.Code == 0 || r.Out != "false\n" || !strings.Contains(r.Err, "already") || !strings.Contains(r.Err, c.Dir) {
		t.Errorf("the second start: %v", r)
	}
	id := c.Root().Sbatch("-o", "/dev/null", "--wrap", "true")
	if j := c.WaitEnd(id); j.State != core.Completed {
		t.Errorf("after a second start the first cluster's job ended %v", j.State)
	}
}

// A start that fails says why on stderr, "false" on stdout, and leaves nothing.
func TestFailedStart(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{})
	root := c.Root()
	plain := write(t, filepath.Join(c.Work, "file"), "")
	for name, tc := range map[string]struct {
		args []string
		says string
	}{
		"folder is a file": {[]string{"--dir", plain}, "file"},
		"unknown setting":  {[]string{"--dir", c.Dir, "--set", "timers.nonsense=1s"}, "timers.nonsense"},
		"bad value":        {[]string{"--dir", c.Dir, "--set", "timers.heartbeat=soon"}, "heartbeat"},
		"no such store": {
			[]string{"--dir", c.Dir, "--store", "postgres:///none?host=/nowhere", "--timeout", "5s"},
			"nowhere",
		},
		"bad count":     {[]string{"--dir", c.Dir, "--nodes", "-3"}, "-3"},
		"path too long": {[]string{"--dir", filepath.Join(c.Work, strings.Repeat("x", 120))}, "107"},
	} {
		r := root.Try("biremed", append([]string{"standalone", "--detach"}, tc.args...)...)
		if r.Code == 0 || r.Out != "false\n" || !strings.Contains(r.Err, tc.says) {
			t.Errorf("%s: %v", name, r)
		}
	}
}

// The same directory starts again with what it held.
func TestStopAndStart(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{})
	p := c.As(alice)
	done := p.Sbatch("-o", "/dev/null", "--mem=16M", "--wrap", "exit 3")
	held := p.Sbatch("-H", "-o", "/dev/null", "--mem=16M", "--wrap", "true")
	file := filepath.Join(c.Work, "again.out")
	again := p.Sbatch("--requeue", "-o", file, "--open-mode=append", "--mem=16M", "--wrap", "echo run; sleep 60")
	lost := p.Sbatch("--no-requeue", "-o", filepath.Join(c.Work, "lost.out"), "--mem=16M", "--wrap", "echo run; sleep 60")
	array := p.Sbatch("-H", "-a", "1-1000", "-o", "/dev/null", "--wrap", "true")
	c.WaitEnd(done)
	c.WaitFile(file, "run\n")
	c.WaitFile(filepath.Join(c.Work, "lost.out"), "run\n")
	before := p.Run("sacct", "-P", "-j", done)
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	if left := c.Left(); len(left) > 0 {
		t.Errorf("left behind by stop: %v", left)
	}
	if err := c.Stop(); err != nil {
		t.Errorf("stopping what does not run: %v", err)
	}
	if err := c.Up(); err != nil {
		t.Fatal(err)
	}
	if after := p.Run("sacct", "-P", "-j", done); after != before {
		t.Errorf("accounting before:\n%safter:\n%s", before, after)
	}
	c.WaitFile(file, "run\nrun\n")
	if j := c.Job(again); j.State != core.Running || j.Attempt != 2 {
		t.Errorf("the job that may run again is %v in attempt %d", j.State, j.Attempt)
	}
	if j := c.WaitEnd(lost); j.State != core.NodeFail {
		t.Errorf("the job that may not ended %v: %s", j.State, j.Message)
	}
	if j := c.Job(held); j.State != core.Pending || !j.Flags.Held() {
		t.Errorf("the held job is %v", j.State)
	}
	if j := c.Job(array); j.Count() != 1000 {
		t.Errorf("the array stands for %d tasks", j.Count())
	}
	next, _ := strconv.Atoi(p.Sbatch("-o", "/dev/null", "--mem=16M", "--wrap", "true"))
	if last, _ := strconv.Atoi(array); next <= last {
		t.Errorf("job id %d was given after %d", next, last)
	}
	p.Run("scancel", again, held, array)
	c.WaitEnd(again)
}

// Emulated nodes have GPUs to give, and steps find their way inside a batch job.
func TestStepsOnEmulatedNodes(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{Nodes: 4, CPUs: 2, Memory: "1G", Gres: "gpu:a100:8"})
	p := c.As(alice)
	labelled := strings.Split(
		strings.TrimSpace(p.Run("srun", "-N4", "-l", "sh", "-c", "echo $SLURM_PROCID $SLURM_NODEID $(hostname)")), "\n")
	slices.Sort(labelled)
	if fmt.Sprint(labelled) != "[0: 0 0 n1 1: 1 1 n2 2: 2 2 n3 3: 3 3 n4]" {
		t.Errorf("srun -l: %v", labelled)
	}
	gpu := strings.TrimSpace(p.Run("srun", "--gres=gpu:3", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES"))
	if gpu != "0,1,2" {
		t.Errorf("a job with three GPUs sees %q", gpu)
	}
	c.Eventually("sinfo shows the nodes idle", func() (bool, string) {
		got := p.Run("sinfo", "-h", "-N", "-o", "%N %c %m %G %T")
		return strings.Count(got, " 2 1024 gpu:a100:8 idle\n") == 4, got
	})
	wants(t, "sinfo", p.Run("sinfo"), "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST", "n[1-4]")
	// By way of the node's own socket.
	file := filepath.Join(c.Work, "steps.out")
	id := p.Sbatch("-N2", "--ntasks-per-node=2", "-o", file, "--wrap",
		"srun -l hostname | sort; srun -n1 false; echo rc $?")
	if j := c.WaitEnd(id); j.State != core.Completed {
		t.Errorf("a batch job with steps ended %v: %s", j.State, j.Message)
	}
	wants(t, "its output", read(t, file), "0: n", "3: n", "rc 1")
	wants(t, "sacct", p.Run("sacct", "-n", "-P", "-j", id, "-o", "JobID,State,ExitCode"), id+".0|COMPLETED|0:0",
		id+".1|FAILED|1:0", id+".batch|COMPLETED|0:0")
	c.WaitClean()
}

// TestDemo runs what `make demo` runs.
func TestDemo(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{})
	script, err := filepath.Abs("../../scripts/demo.sh")
	if err != nil {
		t.Fatal(err)
	}
	bin, err := cluster.Bin()
	if err != nil {
		t.Fatal(err)
	}
	out := c.Root().With("BIREME_BIN="+bin, "PATH="+os.Getenv("PATH")).Run(script)
	wants(t, "the demonstration", out, "Hello from job 1", "Hello from run hello", "COMPLETED",
		"nothing is left: no process, no file")
}
