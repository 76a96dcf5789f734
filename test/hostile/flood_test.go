//go:build e2e

package hostile

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/test/cluster"
	"bireme.dev/bireme/test/hostile/flood"
)

// While one user sends requests, opens streams, makes tokens and submits jobs without end, and `yes` runs in 50 jobs, all of
// it in half of the machine's processors, another user's jobs are taken and run. Afterwards the server has the memory of before.
func TestFloodHarmsNobodyElse(t *testing.T) {
	c := cluster.Start(t, cluster.Options{Nodes: 2, CPUs: 64, Memory: "64G"})
	uid := uidOf(t, mallory)
	c.As(victim).Sbatch("--wrap", "true", "-o", "/dev/null")
	before := heapOf(t, c)
	clients, jobs := newCage(t, c, "clients"), newCage(t, c, "jobs")
	var yes []string
	for range 50 {
		yes = append(yes, c.As(mallory).Sbatch("-n1", "--mem=16M", "-o", "/dev/null", "--wrap", "exec timeout 120 yes"))
	}
	if n, err := jobs.PutUser(uid); err != nil || n < 10 {
		t.Fatalf("%d processes of the attacker: %v", n, err)
	}
	attacker := startFlood(t, c, clients, 20_000, 2000)
	for i := range 20 {
		id := c.As(victim).Sbatch("--mem=16M", "--wrap", "true", "-o", "/dev/null")
		if i%5 == 0 {
			c.WaitState(id, core.Completed)
		}
	}
	stats := attacker()
	if stats.Refused == 0 || stats.Served == 0 || stats.Errors > 0 {
		t.Errorf("the attack: %+v", stats)
	}
	c.As(mallory).Run("scancel", "-u", mallory)
	c.Eventually("nothing of the attacker's is left", func() (bool, string) {
		out := c.Root().Run("squeue", "-h", "-u", mallory, "-o", "%i %T")
		return strings.TrimSpace(out) == "", fmt.Sprintf("%d of %d jobs", strings.Count(out, "\n"), len(yes))
	})
	c.Eventually("the server has the memory of before", func() (bool, string) {
		now := heapOf(t, c)
		return now <= before*3/2+16<<20, fmt.Sprintf("%d bytes before, %d after", before, now)
	})
	id := c.As(victim).Sbatch("--wrap", "true", "-o", "/dev/null")
	c.WaitState(id, core.Completed)
}

// newCage makes a cgroup with a quarter of the machine's processors.
func newCage(t *testing.T, c *cluster.Cluster, name string) *flood.Cage {
	t.Helper()
	cage, err := flood.NewCage(fmt.Sprintf("bireme-flood-%s-%d", name, os.Getpid()), float64(runtime.NumCPU())/4)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Eventually("the attackers' cgroup is empty", func() (bool, string) {
			err := cage.Close()
			return err == nil, fmt.Sprint(err)
		})
	})
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

// startFlood runs the attacker's client as mallory in the cage; the function ends it and gives what became of it.
func startFlood(t *testing.T, c *cluster.Cluster, cage *flood.Cage, jobs, streams int) func() flood.Stats {
	t.Helper()
	program := filepath.Join(c.Work, "flood")
	data, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(program, data, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	cmd := c.As(mallory).Command(ctx, program)
	cmd.Env = append(cmd.Env, flood.Env(c.Socket(), jobs, streams)...)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	if err := cage.Put(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(out)
	if line, err := r.ReadString('\n'); err != nil || line != "flooding\n" {
		t.Fatalf("the attacker says %q: %v", line, err)
	}
	return func() flood.Stats { return endFlood(t, cmd, r) }
}

func endFlood(t *testing.T, cmd *exec.Cmd, r io.Reader) (stats flood.Stats) {
	t.Helper()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(r).Decode(&stats); err != nil {
		t.Fatalf("the attacker's account: %v", err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the attacker: %v", err)
	}
	return stats
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
