//go:build e2e

package hostile

import (
	"bufio"
	"strings"
	"syscall"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/test/cluster"
)

// A lock on a file needs no more than the right to open it: whoever locked the pid file of a server that is away would
// keep it from starting. The attacker locks every file of the cluster that they can open; it starts all the same.
func TestLocksOfOthers(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	// One process a file, each with its lock, until they are killed.
	const attack = `find "$1" -type f -readable 2>/dev/null | while read -r f; do
		( exec 9<"$f" && flock -n -x 9 && exec sleep 1000 ) </dev/null >/dev/null 2>&1 &
	done
	echo locked
	wait`
	cmd := c.As(mallory).In("/").Command(t.Context(), "/bin/sh", "-c", attack, "sh", c.Dir)
	cmd.SysProcAttr.Setpgid = true
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end := func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // it may have ended
		_ = cmd.Wait()
	}
	defer end()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || strings.TrimSpace(line) != "locked" {
		t.Fatalf("%q, %v", line, err)
	}
	if err := c.Up(); err != nil {
		t.Fatalf("the cluster does not start while somebody else has locks: %v", err)
	}
	end()
	c.WaitState(c.As(victim).Sbatch("--wrap", "true", "-o", "/dev/null"), core.Completed)
}
