//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/test/cluster"
)

// TestScancel sends signals to a script, to its step and to both, and ends jobs by what is said of them.
func TestScancel(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{Nodes: 2, CPUs: 4, Memory: "2G"})
	p := c.As(alice)
	said := filepath.Join(c.Work, "said")
	script := write(t, filepath.Join(c.Work, "traps.sh"), `#!/bin/bash
trap 'echo shell >>said' USR1
srun bash -c 'trap "echo step >>said" USR1; echo up >>said; while :; do read -t 0.05 <>pipe; done' &
while :; do wait; done
`)
	if err := os.WriteFile(said, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(said, 0o666); err != nil {
		t.Fatal(err)
	}
	p.Run("/usr/bin/mkfifo", "pipe")
	job := p.Sbatch("-n1", script)
	c.WaitFile(said, "up\n")
	for _, x := range []struct {
		flag string
		want string
	}{{"--signal=USR1", "step"}, {"--batch", "shell"}, {"--full", "step shell"}} {
		if err := os.Truncate(said, 0); err != nil {
			t.Fatal(err)
		}
		args := []string{x.flag, job}
		if x.flag != "--signal=USR1" {
			args = append([]string{"-s", "USR1"}, args...)
		}
		p.Run("scancel", args...)
		for _, word := range strings.Fields(x.want) {
			c.WaitFile(said, word+"\n")
		}
		if text := read(t, said); x.want != "step shell" && len(strings.Fields(text)) != 1 {
			t.Errorf("scancel %s was heard as %q", x.flag, text)
		}
	}
	p.Run("scancel", job+".0") // the step alone
	if j := c.WaitState(job, core.Running); j.State != core.Running {
		t.Errorf("scancel of a step left its job %v", j.State)
	}
	refused(t, c.As(bob).Try("scancel", job), 210, "scancel: error: Kill job error on job id "+job+
		": Access/permission denied")
	p.Run("scancel", job)
	c.WaitState(job, core.Cancelled)
	filters(t, c)
	c.WaitClean()
}

// filters: each ends the jobs it is true of, and no others.
func filters(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	for _, f := range [][]string{
		{"-n", "named"},
		{"-t", "PENDING"},
		{"-u", alice, "-n", "named"},
		{"--me", "--name=named"},
		{"-p", "main", "-n", "named"},
		{"-w", "n2", "-t", "RUNNING"},
		{"-A", "default", "-n", "named"},
	} {
		keep := p.Sbatch("-J", "other", "-w", "n1", "--wrap", "exec tail -f /dev/null")
		args := []string{"-J", "named", "-w", "n2", "--wrap", "exec tail -f /dev/null"}
		if f[len(f)-1] == "PENDING" {
			args = append([]string{"-H"}, args...)
		}
		goes := p.Sbatch(args...)
		c.WaitState(keep, core.Running)
		if args[0] != "-H" {
			c.WaitState(goes, core.Running)
		}
		p.Run("scancel", f...)
		c.WaitState(goes, core.Cancelled)
		if j := c.Job(keep); j.State != core.Running {
			t.Errorf("scancel %s: the other job is %v", strings.Join(f, " "), j.State)
		}
		p.Run("scancel", keep)
		c.WaitState(keep, core.Cancelled)
	}
}
