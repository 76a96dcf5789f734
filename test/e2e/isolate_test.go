//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/test/cluster"
)

// TestIsolate: jobs beside each other. One that takes too much memory dies alone, one that forks without end stays
// within its bound, and nobody reads another's temporary files, device or environment. (A job cannot open others' GPUs:
// TestGPU.)
func TestIsolate(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{Memory: "1G", Args: []string{"--cpus", "4"}, Set: []string{"step.max_pids=60"}})
	ann, bob := c.As(alice), c.As(bob)
	mark, end := filepath.Join(c.Work, "beside"), filepath.Join(c.Work, "end")
	beside := ann.With("SECRET=sesame").Sbatch("--mem=64M", "-o", mark, "--wrap",
		"echo key >$TMPDIR/file; echo $$ $TMPDIR; while [ ! -e "+end+" ]; do sleep 0.05; done")
	c.Eventually("the job beside to begin", func() (bool, string) {
		b, err := os.ReadFile(mark)
		return strings.HasSuffix(string(b), "\n"), fmt.Sprint(string(b), err)
	})
	who := strings.Fields(read(t, mark))
	pid, tmp := who[0], who[1]
	if b, err := os.ReadFile("/proc/" + pid + "/environ"); err != nil || !strings.Contains(string(b), "SECRET=sesame") {
		t.Fatalf("its environment is not where others look for it: %q %v", b, err)
	}

	out := filepath.Join(c.Work, "curious")
	j := c.WaitEnd(bob.Sbatch("--mem=64M", "-o", out, "--wrap", "cat /proc/"+pid+"/environ; ls "+tmp+"; cat "+tmp+
		"/file; echo looked"))
	if text := read(t, out); j.State != core.Completed || strings.Contains(text, "sesame") ||
		strings.Contains(text, "key") || strings.Count(text, "ermission denied") != 3 {
		t.Errorf("another's job sees (%v): %s", j.State, text)
	}
	if j := c.WaitEnd(bob.Sbatch("--mem=64M", "-o", "/dev/null", "--wrap",
		"head -c 300m /dev/zero | tail >/dev/null")); j.State != core.OutOfMemory {
		t.Errorf("a job that takes 300 MiB of 64 ended %v: %s", j.State, j.Message)
	}
	out = filepath.Join(c.Work, "bomb")
	bomb := bob.Sbatch("--mem=64M", "-o", "/dev/null", "--wrap", "i=0; while :; do i=$((i+1)); sleep 1000 & echo $i >"+
		out+"; done")
	if j := c.WaitEnd(bomb); j.State != core.Failed {
		t.Errorf("a fork bomb ended %v: %s", j.State, j.Message)
	}
	if n, err := strconv.Atoi(strings.TrimSpace(read(t, out))); err != nil || n < 20 || n > 60 {
		t.Errorf("it had %d processes of 60: %v", n, err)
	}
	write(t, end, "")
	if j := c.WaitEnd(beside); j.State != core.Completed {
		t.Errorf("the job beside ended %v: %s", j.State, j.Message)
	}
	c.WaitClean()
}
