//go:build e2e

package e2e

import (
	"strings"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/test/cluster"
)

// TestPapers changes what decides nothing about jobs, has one fail for want of a directory, and ends jobs by what they
// asked for.
func TestPapers(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{Nodes: 1, CPUs: 4, Memory: "2G"})
	p, root := c.As(alice), c.Root()
	held := p.Sbatch("-H", "-t", "10", "--wrap", "true")
	p.Run("scontrol", "update", "job="+held, "stdout=new.out", "MailType=end", "MailUser=eve",
		"wckey=w1")
	wants(t, "a job with other papers", p.Run("scontrol", "show", "job", held), "new.out\n",
		"MailUser=eve MailType=END")
	refused(t, p.Try("scontrol", "update", "job="+held, "EndTime=now+5minutes"), 1, "Job is not running for job "+
		held)
	runs := p.Sbatch("-t", "10", "-o", "/dev/null", "--mem=10M", "--wrap", "sleep 60")
	c.WaitState(runs, core.Running)
	p.Run("scontrol", "update", "job="+runs, "EndTime=now+5minutes")
	limit := p.Run("squeue", "-h", "-o", "%l", "-j", runs)
	if limit != "5:00\n" && limit != "6:00\n" { // counted from its start, which was some seconds ago
		t.Errorf("a job that is to end in five minutes has a limit of %s", limit)
	}
	refused(t, p.Try("scontrol", "update", "job="+runs, "stdout=late.out"), 1, "Job is no longer pending execution")

	lost := p.Sbatch("-o", "/proc/nowhere/out", "--mem=10M", "--wrap", "true")
	c.WaitEnd(lost)
	if got := p.Run("sacct", "-X", "-n", "-P", "-o", "State,ExitCode", "-j", lost); got != "FAILED|0:53\n" {
		t.Errorf("a job whose output has no place: %s", got)
	}

	root.Run("scontrol", "create", "reservation", "ReservationName=kept", "starttime=now+1hour", "duration=60",
		"users="+alice, "nodecnt=1")
	in := p.Sbatch("-H", "--reservation=kept", "--wrap", "true")
	table := p.TryIn("@yearly true\n", "scrontab", "-")
	if table.Code != 0 {
		t.Fatal(table)
	}
	cron := strings.TrimSpace(p.Run("squeue", "-h", "-n", "true", "-o", "%i"))
	p.Run("scancel", "-R", "kept")
	p.Run("scancel", "--wckey", "w1")
	for _, id := range []string{in, held} {
		if j := c.WaitEnd(id); j.State != core.Cancelled {
			t.Errorf("job %s is %v", id, j.State)
		}
	}
	refused(t, p.Try("scancel", cron), 1, "scancel: error: Kill job error on job id "+cron+
		": Cannot cancel scrontab jobs without --cron flag.")
	p.Run("scancel", "--cron", cron)
	if j := c.WaitEnd(cron); j.State != core.Cancelled {
		t.Errorf("the job of scrontab is %v", j.State)
	}
	p.Run("scancel", runs)
	c.WaitEnd(runs)
	c.WaitClean()
}
