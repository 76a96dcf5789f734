//go:build e2e

package hostile

import (
	"fmt"
	"os"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/test/cluster"
	"bireme.dev/bireme/test/hostile/flood"
)

// The users that scripts/prereqs.sh adds.
const (
	mallory = "bireme-t1" // the attacker
	victim  = "bireme-t2"
)

func TestMain(m *testing.M) {
	if spec := os.Getenv(impostorEnv); spec != "" {
		fmt.Fprintln(os.Stderr, impostor(spec))
		os.Exit(1)
	}
	flood.Main() // where this process is the attacker of a test
	if os.Geteuid() != 0 {
		fmt.Fprintln(os.Stderr, "test/hostile: needs root: it attacks as other users")
		os.Exit(1)
	}
	if _, err := cluster.Bin(); err != nil {
		fmt.Fprintln(os.Stderr, "test/hostile:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// A cluster that is never attacked is no proof: this one checks the arrangement itself. Both users can work.
func TestBothUsersCanWork(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	for _, name := range []string{mallory, victim} {
		id := c.As(name).Sbatch("--wrap", "id -un", "-o", "/dev/null")
		c.WaitState(id, core.Completed)
	}
}
