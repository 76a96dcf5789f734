//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/test/cluster"
)

// TestTour goes through a Slurm user's day, once as root and once as somebody else.
func TestTour(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{Nodes: 2, CPUs: 2, Memory: "1G"})
	for _, who := range []string{"root", alice} {
		t.Run(who, func(t *testing.T) { tour(t, c.For(t), who) })
	}
	c.WaitClean()
}

func tour(t *testing.T, c *cluster.Cluster, who string) {
	p := c.As(who)
	matches := func(what, text, pattern string) {
		t.Helper()
		if !regexp.MustCompile(pattern).MatchString(text) {
			t.Errorf("%s does not match %s:\n%s", what, pattern, text)
		}
	}
	gate := filepath.Join(c.Work, "gate-"+who)
	script := write(t, filepath.Join(c.Work, "tour-"+who+".sh"), fmt.Sprintf(`#!/bin/bash
#SBATCH --job-name=tour
#SBATCH --output=tour-%s.out
#SBATCH --ntasks=1
#SBATCH --mem=32M
#SBATCH --time=10
echo "job $SLURM_JOB_ID of $SLURM_JOB_USER on $SLURM_JOB_NODELIST, task $SLURM_PROCID of $SLURM_NTASKS"
while [ ! -e %s ]; do sleep 0.02; done
`, who, gate))
	matches("sbatch", p.Run("sbatch", script), `^Submitted batch job \d+\n$`)
	id := strings.TrimSpace(p.Run("squeue", "-h", "--me", "-o", "%i"))
	c.WaitFile(filepath.Join(c.Work, "tour-"+who+".out"), "job "+id+" of "+who+" on n")
	queue := p.Run("squeue", "-j", id)
	matches("squeue", queue,
		`(?m)^             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST\(REASON\)$`)
	matches("squeue", queue, fmt.Sprintf(`(?m)^ +%s +main +tour %8.8s  R +0:0\d +1 n[12]$`, id, who))
	show := p.Run("scontrol", "show", "job", id)
	wants(t, "scontrol show job", show, "JobId="+id+" JobName=tour", "JobState=RUNNING", "TimeLimit=00:10:00",
		"NumNodes=1 NumCPUs=1", "Command="+script, "WorkDir="+c.Work, "UserId="+who+"(")
	wants(t, "scontrol show node", p.Run("scontrol", "show", "node", "n1"), "NodeName=n1", "CPUTot=2")
	wants(t, "scontrol show partition", p.Run("scontrol", "show", "partition"), "PartitionName=main")
	wants(t, "sinfo", p.Run("sinfo"), "main*", "idle")
	if state := strings.TrimSpace(
		p.Run("sinfo", "-h", "-n", string(c.Job(id).Alloc.Nodes[0].Node), "-o", "%t")); state != "mix" {
		t.Errorf("a node of which a half is used is %q", state)
	}
	wants(t, "sacct", p.Run("sacct", "-X", "-n", "-j", id), "RUNNING")
	// More than fits waits, and says why.
	wide := p.Sbatch("--exclusive", "-N2", "-o", "/dev/null", "--wrap", "true")
	c.Eventually("the wide job says why it waits", func() (bool, string) {
		j := c.Job(wide)
		return j.Waiting == core.ReasonResources, fmt.Sprint(j.State, j.Waiting)
	})
	wants(t, "squeue", p.Run("squeue", "-j", wide), "PD", "(Resources)")
	wants(t, "why", p.Run("bireme", "why", wide), "is pending: Resources")
	write(t, gate, "")
	for _, job := range []string{id, wide} {
		if j := c.WaitEnd(job); j.State != core.Completed {
			t.Errorf("job %s ended %v: %s", job, j.State, j.Message)
		}
	}
	account := p.Run("sacct", "-j", id)
	wants(t, "sacct", account, "JobID           JobName  Partition    Account  AllocCPUS      State ExitCode \n"+
		"------------ ---------- ---------- ---------- ---------- ---------- -------- \n")
	matches("sacct", account,
		fmt.Sprintf(`(?m)^%-12s       tour       main    default          1  COMPLETED      0:0 $`, id))
	matches("sacct", account,
		fmt.Sprintf(`(?m)^%-12s      batch               default          1  COMPLETED      0:0 $`, id+".batch"))
	held := p.Sbatch("-o", "/dev/null", "-H", "--wrap", "true")
	wants(t, "squeue", p.Run("squeue", "-j", held), "(JobHeldUser)")
	p.Run("scontrol", "hold", held)
	hold := "(JobHeldUser)"
	if who == "root" {
		hold = "(JobHeldAdmin)"
	}
	wants(t, "squeue", p.Run("squeue", "-j", held), hold)
	p.Run("scontrol", "uhold", held)
	p.Run("scontrol", "release", held)
	c.WaitEnd(held)
	array := p.Sbatch("-a", "0-3%1", "-o", "/dev/null", "--wrap", "exit $SLURM_ARRAY_TASK_ID")
	for i := range 4 {
		want := core.Failed
		if i == 0 {
			want = core.Completed
		}
		if j := c.WaitEnd(fmt.Sprintf("%s_%d", array, i)); j.State != want || j.Exit.Code != int32(i) {
			t.Errorf("task %d ended %v %d", i, j.State, j.Exit.Code)
		}
	}
	matches("sacct", p.Run("sacct", "-X", "-n", "-P", "-j", array, "-o", "JobID,ExitCode"),
		fmt.Sprintf(`(?m)^%s_2\|2:0$`, array))
	for _, args := range [][]string{{"squeue", "--json"}, {"sinfo", "--json"}, {"sacct", "--json"}} {
		if out := p.Run(args[0], args[1:]...); !json.Valid([]byte(out)) {
			t.Errorf("%v prints no JSON: %.200s", args, out)
		}
	}
	if got := p.TryIn("typed\n", "srun", "cat"); got.Code != 0 || got.Out != "typed\n" {
		t.Errorf("srun passes standard input on: %v", got)
	}
	logs := p.Run("bireme", "logs", id)
	wants(t, "bireme logs", logs, "job "+id+" of "+who)
	endless := p.Sbatch("-o", "/dev/null", "--wrap", "sleep 600")
	c.WaitState(endless, core.Running)
	p.Run("scancel", endless)
	if j := c.WaitEnd(endless); j.State != core.Cancelled {
		t.Errorf("the cancelled job ended %v", j.State)
	}
}
