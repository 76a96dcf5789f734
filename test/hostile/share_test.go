//go:build e2e

package hostile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/test/cluster"
)

// TestNobodyInheritsTheServersShare: the server has a nice value and a slice of its own; agents that it starts, keepers
// and jobs have neither, also after an agent has died and was started again.
func TestNobodyInheritsTheServersShare(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{})
	of := func(pid int) (nice int32, slice uint64) {
		t.Helper()
		a, err := unix.SchedGetAttr(pid, 0)
		if err != nil {
			t.Fatal(err)
		}
		return a.Nice, a.Runtime
	}
	own, usual := of(0)
	server, short := of(c.Server())
	if os.Geteuid() == 0 && server != -10 {
		t.Errorf("the server has the nice value %d", server)
	}
	if usual != 0 && short >= usual { // Linux before 6.12 says 0 for all
		t.Errorf("the server has a slice of %d ns, others have %d", short, usual)
	}
	node := c.Nodes()[0]
	check := func(what string, pid int) {
		t.Helper()
		if nice, slice := of(pid); nice != own || slice != usual {
			t.Errorf("%s has the nice value %d and a slice of %d ns, want %d and %d", what, nice, slice, own, usual)
		}
	}
	check("the agent", c.Agent(node))
	check("the keeper", c.Keeper(node))
	c.Kill("the agent", func() int { return c.Agent(node) })
	c.Eventually("there is another agent", func() (bool, string) { return c.Agent(node) > 0, "none" })
	check("the next agent", c.Agent(node))
	out := filepath.Join(c.Work, "nice.out")
	c.WaitEnd(c.As(victim).Sbatch("-o", out, "--wrap", "nice"))
	if b, err := os.ReadFile(out); err != nil || own == 0 && strings.TrimSpace(string(b)) != "0" {
		t.Errorf("a job has the nice value %q, %v", b, err)
	}
}
