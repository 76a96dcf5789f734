//go:build e2e

package hostile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/test/cluster"
)

// run has a user apply a YAML task of one command and gives what apply said; its log is the server's.
func run(t *testing.T, c *cluster.Cluster, user, name, command string) cluster.Result {
	t.Helper()
	file := filepath.Join(c.Work, name+".dstack.yml")
	text := fmt.Sprintf("type: task\nname: %s\nruntime: process\nresources: {cpu: 1.., memory: 16MB..}\ncommands:\n"+
		"  - %s\n", name, command)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return c.As(user).Try("bireme", "apply", "-y", "-f", file)
}

// works proves that another user's job starts and ends as it should.
func works(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	out := filepath.Join(c.Work, "victim.out")
	if j := c.WaitEnd(c.As(victim).Sbatch("-o", out, "--wrap", "id -un")); j.State != core.Completed {
		t.Errorf("the victim's job ended %v: %s", j.State, j.Message)
	}
	if b, err := os.ReadFile(out); err != nil || strings.TrimSpace(string(b)) != victim {
		t.Errorf("the victim's job wrote %q, %v", b, err)
	}
}

// TestManyVariables: an environment of 100,000 variables is refused with the limit's name; where a site has no such
// limit it runs, and others' jobs beside it.
func TestManyVariables(t *testing.T) {
	t.Parallel()
	env := make([]string, 100_000)
	for i := range env {
		env[i] = fmt.Sprintf("A%d=", i)
	}
	c := cluster.Start(t, cluster.Options{})
	r := c.As(mallory).With(env...).Try("sbatch", "-o", "/dev/null", "--wrap", "true")
	if r.Code == 0 || !strings.Contains(r.Err, "limits.env_vars") || !strings.Contains(r.Err, "10000") {
		t.Errorf("exit status %d: %.500s", r.Code, r.Err)
	}
	long := "LONG=" + strings.Repeat("x", 130_000) // an exec takes 131072 bytes of one
	if r := c.As(mallory).With(long).Try("sbatch", "-o", "/dev/null", "--wrap", "true"); r.Code != 0 {
		t.Errorf("a long variable that programs can have: %.500s", r.Err)
	}
	works(t, c)

	c = cluster.Start(t, cluster.Options{Set: []string{"limits.env_vars=0"}})
	if j := c.WaitEnd(c.As(mallory).With(env...).Sbatch("-o", "/dev/null", "--wrap", "true")); j.State != core.Completed {
		t.Errorf("without a limit it ended %v: %s", j.State, j.Message)
	}
	works(t, c)
}

// TestForkBomb: with the settings of a site that wrote none a job that forks without end stays within its own bound,
// and others' jobs start beside it.
func TestForkBomb(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{Args: []string{"--cpus", "4"}})
	count := filepath.Join(c.Work, "count")
	// Threads count as processes do, and are cheaper to make.
	bomb := c.As(mallory).Sbatch("-o", filepath.Join(c.Work, "bomb.out"), "--wrap",
		`exec python3 -c '
import threading, time
n = 0
try:
    threading.stack_size(65536)
    while True:
        threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
        n += 1
except RuntimeError:
    open("`+count+`", "w").write("%d\n" % n)
    time.sleep(1000)
'`)
	n := c.WaitFile(count, "\n")
	works(t, c)
	var made int
	if _, err := fmt.Sscan(n, &made); err != nil || made < 1000 || made >= 8192 {
		t.Errorf("it had %q threads: %v", n, err)
	}
	c.As(mallory).Run("scancel", bomb)
	c.WaitState(bomb, core.Cancelled)
	c.WaitClean()
}

// TestEndlessOutput: what a run writes without end is kept up to the limits, says so in its last line, and the run goes
// on.
func TestEndlessOutput(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{Set: []string{"limits.log_per_job=64K", "limits.log_per_user=100K"}})
	for _, name := range []string{"one", "two"} {
		if r := run(t, c, mallory, name, "yes | head -c 3000000; touch "+filepath.Join(c.Work, name+".ran")); r.Code != 0 {
			t.Errorf("%.2000v", r)
		}
		if _, err := os.Stat(filepath.Join(c.Work, name+".ran")); err != nil {
			t.Errorf("the run did not go on: %v", err)
		}
	}
	for name, limit := range map[string]string{"one": "limits.log_per_job", "two": "limits.log_per_user"} {
		text := c.As(mallory).Run("bireme", "logs", name)
		last := text[strings.LastIndex(strings.TrimSuffix(text, "\n"), "\n")+1:]
		if len(text) > 70_000 || !strings.HasPrefix(last, "[bireme: ") || !strings.Contains(last, limit) {
			t.Errorf("%s has %d bytes and ends with %q", name, len(text), last)
		}
	}
	if r := run(t, c, victim, "mine", "echo hello"); r.Code != 0 || !strings.Contains(r.Out, "hello") {
		t.Errorf("the victim's run: %v", r)
	}
	works(t, c)
}

// TestFillTheDisk: with the cluster's directory on a small disk, runs that write without end leave the floor of free
// disk alone, on the server and on the node: the database, the keeper's journal and others' jobs continue, and the log
// says what happened.
func TestFillTheDisk(t *testing.T) {
	t.Parallel()
	small, err := os.MkdirTemp("/tmp", "bt-small-")
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("small", small, "tmpfs", 0, "size=96m,mode=755"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // after the cluster's own, which is registered later
		if err := errors.Join(unix.Unmount(small, unix.MNT_DETACH), os.Remove(small)); err != nil {
			t.Error(err)
		}
	})
	c := cluster.New(t, cluster.Options{
		Args: []string{"--cpus", "4"},
		Set:  []string{"limits.min_free_disk=24M", "limits.log_rate=0"},
	})
	c.Dir = filepath.Join(small, "d")
	if err := c.Up(); err != nil {
		t.Fatal(err)
	}
	least := int64(1) << 60
	watch := func() {
		var st unix.Statfs_t
		if err := unix.Statfs(c.Dir, &st); err != nil {
			t.Fatal(err)
		}
		least = min(least, int64(st.Bavail)*st.Bsize)
	}
	ran := filepath.Join(c.Work, "ran")
	file := filepath.Join(c.Work, "fill.dstack.yml")
	text := "type: task\nname: fill\nruntime: process\nresources: {cpu: 1.., memory: 16MB..}\ncommands:\n" +
		"  - head -c 400M /dev/zero | tr '\\0' x; echo >" + ran + "; sleep 1000\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	c.As(mallory).Run("bireme", "apply", "-y", "-d", "-f", file)
	c.Eventually("the run to have written four times the disk", func() (bool, string) {
		watch()
		_, err := os.Stat(ran)
		return err == nil, fmt.Sprint(err)
	})
	works(t, c)
	watch()
	if least < 8<<20 {
		t.Errorf("of the 24 MiB that are to stay free %d bytes were left", least)
	}
	// Output comes to the server behind the job. What the node has sent is free again there, so that the last of the
	// output may have been kept; else why names the limit, too.
	c.Eventually("log and why to name the limit", func() (bool, string) {
		log, why := c.As(mallory).Run("bireme", "logs", "fill"), c.As(mallory).Run("bireme", "why", "fill")
		again := strings.LastIndex(log, "output is kept again") > strings.LastIndex(log, "output is dropped from here on")
		return strings.Contains(log, "limits.min_free_disk") && (again || strings.Contains(why, "limits.min_free_disk")),
			fmt.Sprintf("the log of %d bytes ends with %q; why: %s", len(log), log[max(0, len(log)-300):], why)
	})
	c.As(mallory).Run("bireme", "stop", "-y", "fill")
	works(t, c)
}
