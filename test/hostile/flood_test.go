//go:build e2e

package hostile

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/test/cluster"
	"bireme.dev/bireme/test/hostile/flood"
)

// While one user sends requests, opens streams and connections, makes tokens and submits jobs without end, and `yes`
// runs in 50 jobs, all of it in half of the machine's processors, another user's jobs are taken and run. Each kind of
// the flood is served meanwhile. Afterwards the server has the memory of before.
func TestFloodHarmsNobodyElse(t *testing.T) {
	c := cluster.Start(t, cluster.Options{
		Nodes: 2, CPUs: 64, Memory: "64G",
		Set: []string{
			"timers.heartbeat=1s", "timers.silent_after=10s",
			fmt.Sprintf("limits.connections=%d", flood.MaxConnections),
		},
	})
	c.As(victim).Sbatch("--wrap", "true", "-o", "/dev/null")
	before := heapOf(t, c)
	cage := newCage(t, c)
	startYes(t, c, cage)
	attack, err := flood.Start(cage, flood.Order{
		Socket: c.Socket(), Program: filepath.Join(c.Work, "flood"),
		Jobs: 100_000, Streams: 1000,
		Own: func(cmd *exec.Cmd) { cmd.SysProcAttr = c.As(mallory).Command(t.Context(), "true").SysProcAttr },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(attack.Kill)
	for i := range 20 {
		id := c.As(victim).Sbatch("--mem=16M", "--wrap", "true", "-o", "/dev/null")
		if i%5 == 0 {
			c.WaitState(id, core.Completed)
		}
	}
	if os.Getenv("BIREME_SOAK") != "" {
		<-attack.Sent() // all 100,000
	}
	stats, err := attack.End()
	if err != nil {
		t.Fatal(err)
	}
	for kind, s := range stats {
		t.Logf("%s: %+v", kind, s)
		if s.Served == 0 || s.Errors > 0 {
			t.Errorf("the flood of %s: %+v", kind, s)
		}
	}
	if s := stats[flood.Streams]; s.Refused["limit_streams"] == 0 {
		t.Errorf("no stream was refused by limits.streams: %+v", s)
	}
	c.Eventually("nothing of the attacker's is left", func() (bool, string) {
		c.Root().Run("scancel", "-u", mallory) // again: what was on its way is taken after the attackers' end
		out := c.Root().Run("squeue", "-h", "-u", mallory, "-o", "%i %T")
		return strings.TrimSpace(out) == "", fmt.Sprintf("%d jobs", strings.Count(out, "\n"))
	})
	c.Eventually("the server has the memory of before", func() (bool, string) {
		now := heapOf(t, c)
		return now <= before*3/2+16<<20, fmt.Sprintf("%d bytes before, %d after", before, now)
	})
	id := c.As(victim).Sbatch("--wrap", "true", "-o", "/dev/null")
	c.WaitState(id, core.Completed)
}

// startYes starts 50 jobs of `yes`, one half with a file for their output and the other as runs, in their part of the
// cage.
func startYes(t *testing.T, c *cluster.Cluster, cage *flood.Cage) {
	t.Helper()
	part, err := cage.Part("jobs")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 25 {
		out := filepath.Join(c.Work, fmt.Sprintf("yes%d.out", i))
		c.As(mallory).Sbatch("-n1", "--mem=16M", "-o", out, "--wrap", flood.Yes(out))
		file := filepath.Join(c.Work, fmt.Sprintf("yes%d.dstack.yml", i))
		if err := os.WriteFile(file, []byte(flood.YesRun(i)), 0o644); err != nil {
			t.Fatal(err)
		}
		c.As(mallory).Run("bireme", "apply", "-y", "-d", "-f", file)
	}
	uid := uidOf(t, mallory)
	c.Eventually("the jobs of yes run", func() (bool, string) {
		jobs := strings.Count(c.Root().Run("squeue", "-h", "-t", "R", "-u", mallory, "-o", "%i"), "\n")
		n, err := part.PutUser(uid)
		return err == nil && n == 0 && jobs == 50, fmt.Sprintf("%d jobs, %d processes outside the cage, %v", jobs, n, err)
	})
}

// newCage makes a cgroup with half of the machine's processors.
func newCage(t *testing.T, c *cluster.Cluster) *flood.Cage {
	t.Helper()
	cage, err := flood.NewCage(fmt.Sprintf("bireme-flood-%d", os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Eventually("the attackers' cgroup is empty", func() (bool, string) {
			err := cage.Close()
			return err == nil, fmt.Sprint(err)
		})
	})
	t.Cleanup(func() { c.Root().Try("scancel", "-u", mallory) }) // where the test ended before it did
	return cage
}

func uidOf(t *testing.T, name string) uint32 {
	t.Helper()
	u, err := user.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(n)
}

var heapLine = regexp.MustCompile(`(?m)^go_memstats_heap_alloc_bytes (\S+)$`)

// heapOf is what the server's heap holds after a collection.
func heapOf(t *testing.T, c *cluster.Cluster) int64 {
	t.Helper()
	get := func(path string) string {
		resp, err := c.SocketHTTP().Get("http://bireme" + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		data, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s %v", path, resp.Status, err)
		}
		return string(data)
	}
	get("/debug/pprof/heap?gc=1")
	m := heapLine.FindStringSubmatch(get("/metrics"))
	if m == nil {
		t.Fatal("the metrics say nothing of the heap")
	}
	f, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return int64(f)
}
