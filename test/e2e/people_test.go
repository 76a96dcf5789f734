//go:build e2e

package e2e

import (
	"strings"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/test/cluster"
)

// TestEnforcement: with accounting enforced only those who are known may submit, and in their projects only.
func TestEnforcement(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{Set: []string{"accounting.enforce=true"}})
	p, root := c.As(alice), c.Root()
	refused(t, p.Try("sbatch", "-o", "/dev/null", "--wrap", "true"), 1, "sbatch: error: Batch job submission failed: ")
	root.Run("bireme", "projects", "add", "physics")
	root.Run("bireme", "users", "add", alice, "--unix-name", alice)
	root.Run("bireme", "projects", "member", "physics", alice, "--role", "user")
	id := p.Sbatch("-A", "physics", "-o", "/dev/null", "--wrap", "true")
	if j := c.WaitEnd(id); j.State != core.Completed || j.Spec.Project != "physics" {
		t.Errorf("the member's job ended %v in project %s", j.State, j.Spec.Project)
	}
	refused(t, c.As(bob).Try("sbatch", "-A", "physics", "-o", "/dev/null", "--wrap", "true"), 1,
		"sbatch: error: Batch job submission failed: ")
	refused(t, p.Try("bireme", "projects", "add", "mine"), 4, "administrator")
	if list := root.Run("squeue", "-h"); strings.TrimSpace(list) != "" {
		t.Errorf("refused jobs are in the queue:\n%s", list)
	}
}
