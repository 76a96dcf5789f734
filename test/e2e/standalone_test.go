//go:build e2e

package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/test/cluster"
)

// TestEmulatedNodes: each node has its own name and knows the others; commands work inside jobs.
func TestEmulatedNodes(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{Nodes: 3, CPUs: 2, Memory: "1G", Gres: "gpu:a100:8"})
	list, err := c.Client(0).Nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, n := range list.Nodes {
		names = append(names, string(n.Name))
		if n.Hardware.CPUs != 2 || n.Hardware.Memory != core.GiB || len(n.Hardware.Gres) != 1 ||
			n.Hardware.Gres[0].Count != 8 || !n.Host.Emulated {
			t.Errorf("node %s has %+v", n.Name, n.Hardware)
		}
	}
	if want := []string{"n1", "n2", "n3"}; !slices.Equal(names, want) {
		t.Errorf("nodes %v, want %v", names, want)
	}
	before, err := os.ReadFile("/etc/hosts")
	if err != nil {
		t.Fatal(err)
	}
	for i, node := range names {
		out := filepath.Join(c.Work, "host-"+node)
		id := c.Root().Sbatch("-w", node, "-o", out, "--wrap",
			"hostname; uname -n; getent hosts n3 | tr -s ' '; squeue -h -o %i -j $SLURM_JOB_ID")
		if j := c.WaitEnd(id); j.State != core.Completed {
			t.Fatalf("job on %s ended %v: %s", node, j.State, j.Message)
		}
		want := node + "\n" + node + "\n127.0.1.3 n3\n" + id + "\n"
		if got := read(t, out); got != want {
			t.Errorf("node %d: the job saw %q, want %q", i+1, got, want)
		}
	}
	if after, err := os.ReadFile("/etc/hosts"); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the machine's own hosts file has changed: %v", err)
	}
}

// TestStandaloneInAShell does what people's scripts do.
func TestStandaloneInAShell(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{})
	run := func(script string) (string, string, int) {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
		cmd.Dir = c.Base
		cmd.Env = []string{
			"PATH=" + filepath.Dir(c.Program("biremed")) + ":" + c.Links + ":/usr/bin:/bin",
			"HOME=" + c.Base, "D=" + c.Dir,
		}
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		err := cmd.Run()
		if err != nil && cmd.ProcessState == nil {
			t.Fatal(err)
		}
		return out.String(), errs.String(), cmd.ProcessState.ExitCode()
	}
	out, errs, code := run(
		`set -e; eval "$(biremed standalone --dir $D --detach --nodes 1)"; test -S "${BIREME_SERVER#unix:}"; test -f ` +
			`"$BIREME_CA"; sbatch --parsable --wrap true`)
	if code != 0 || out != "1\n" {
		t.Fatalf("first start: exit %d, %q, %s", code, out, errs)
	}
	out, errs, code = run(`biremed standalone --dir $D --detach; echo $?`)
	if out != "false\n1\n" || !strings.Contains(errs, "already running in") {
		t.Errorf("second start of a running cluster: exit %d, %q, %q", code, out, errs)
	}
	out, errs, _ = run(`eval "$(biremed standalone --dir $D/x --detach --nodes many)" && echo yes || echo no`)
	if out != "no\n" || !strings.Contains(errs, "many") {
		t.Errorf("a bad flag: %q, %q", out, errs)
	}
	out, errs, _ = run(`eval "$(biremed standalone --dir $D/y --detach --set timers.nonsense=1)" && echo yes || echo no`)
	if out != "no\n" || !strings.Contains(errs, "nonsense") {
		t.Errorf("a bad setting: %q, %q", out, errs)
	}
	if out, errs, code = run(`biremed stop --dir $D && biremed stop --dir $D`); code != 0 || out != "" {
		t.Errorf("stop, twice: exit %d, %q, %q", code, out, errs)
	}
	if left := c.Left(); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	// It starts again with the nodes and jobs it had.
	out, errs, code = run(
		`set -e; eval "$(biremed standalone --dir $D --detach)"; bireme nodes | grep -c ^n1; sacct -X -n -P -o ` +
			`JobID; biremed stop --dir $D`)
	if code != 0 || out != "1\n1\n" {
		t.Errorf("start again: exit %d, %q, %q", code, out, errs)
	}
}

// TestStopIsANodeFailure: jobs of a stopped cluster end, or run again if they may; none is left running.
func TestStopIsANodeFailure(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{Nodes: 2, CPUs: 4})
	mark := filepath.Join(c.Work, "ran")
	again := c.Root().Sbatch("--requeue", "-o", "/dev/null", "--wrap", "echo $SLURM_RESTART_COUNT >>"+mark+
		"; setsid sleep 1000 & sleep 1000")
	once := c.Root().Sbatch("--no-requeue", "-o", "/dev/null", "--wrap", "echo once >>"+mark+"; sleep 1000")
	done := c.Root().Sbatch("-o", "/dev/null", "--wrap", "exit 3")
	c.WaitState(again, core.Running)
	c.WaitFile(mark, "once")
	c.WaitEnd(done)
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	if left := c.Left(); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	if err := c.Up(); err != nil {
		t.Fatal(err)
	}
	if j := c.WaitEnd(once); j.State != core.NodeFail {
		t.Errorf("the job that may not run again ended %v", j.State)
	}
	if j := c.WaitState(again, core.Running); j.Attempt != 2 {
		t.Errorf("the job that may run again is in attempt %d", j.Attempt)
	}
	if j := c.WaitEnd(done); j.State != core.Failed || j.Exit.Code != 3 {
		t.Errorf("what had ended before is now %v %v", j.State, j.Exit)
	}
	if _, err := c.Client(0).Cancel(t.Context(), &client.Cancel{IDs: []string{again}}); err != nil {
		t.Fatal(err)
	}
	c.WaitEnd(again)
}

// TestStandaloneKilled: jobs do not notice that agents or the whole standalone process are killed.
func TestStandaloneKilled(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{Nodes: 2, CPUs: 2})
	out := filepath.Join(c.Work, "through")
	gate := filepath.Join(c.Work, "gate")
	if err := syscall.Mkfifo(gate, 0o666); err != nil {
		t.Fatal(err)
	}
	id := c.Root().Sbatch("-w", "n2", "-o", out, "--wrap", "hostname; read line <"+gate+"; echo $line")
	c.WaitFile(out, "n2")
	keeper := c.Keeper("n2")
	c.Kill("agent of n2", func() int { return c.Agent("n2") })
	c.WaitNode("n2", "connected again", func(n *client.Node) bool { return n.Connected && c.Agent("n2") != 0 })
	c.KillServer()
	if err := c.Up(); err != nil {
		t.Fatal(err)
	}
	for _, n := range c.Nodes() {
		if agents := agentsOf(t, filepath.Join(c.Dir, "nodes", n)); agents != 1 {
			t.Errorf("%s has %d agents", n, agents)
		}
	}
	if now := c.Keeper("n2"); now != keeper {
		t.Errorf("the keeper was process %d and is %d", keeper, now)
	}
	if err := os.WriteFile(gate, []byte("all the way\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if j := c.WaitEnd(id); j.State != core.Completed || j.Attempt != 1 {
		t.Errorf("ended %v in attempt %d: %s", j.State, j.Attempt, j.Message)
	}
	if got := read(t, out); got != "n2\nall the way\n" {
		t.Errorf("output %q", got)
	}
	// Killed, and not started again: stop still ends the agents and keepers it left.
	c.KillServer()
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	if left := c.Left(); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// agentsOf counts the agent processes of a node's directory.
func agentsOf(t *testing.T, dir string) int {
	t.Helper()
	list, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, name := range list {
		b, _ := os.ReadFile(name) // it may have ended
		argv := strings.Split(string(b), "\x00")
		if len(argv) > 1 && argv[1] == "agent" && slices.Contains(argv, dir) {
			n++
		}
	}
	return n
}
