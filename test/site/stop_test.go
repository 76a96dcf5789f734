//go:build e2e

package site

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bireme.dev/bireme/test/cluster"
)

// keepers lists the step keepers of a node's directory.
func keepers(t *testing.T, dir string) (pids []string) {
	t.Helper()
	list, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		words, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err == nil && strings.Contains(string(words), "bireme-step") && strings.Contains(string(words), dir) &&
			cluster.Runs(e.Name()) {
			pids = append(pids, e.Name())
		}
	}
	return pids
}

// `biremed stop` ends what runs in a directory, whatever it is: a server, whose jobs continue, and an agent with its
// keeper, whose jobs have to be meant. Where nothing runs it says so.
func TestStop(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	dir, door := s.folder("srv", serverUser), freePort(t)
	d := s.server("server", dir, serverUser, "--agent-listen", door)
	agent := s.agent(dir, door, "n1")
	node := s.nodeDir("n1")
	pidFile := filepath.Join(s.folder("work", "bireme-t1"), "pid")
	id := strings.TrimSpace(s.must("bireme-t1", socket(dir), "bireme", "sbatch", "--parsable", "-D", "/tmp", "-o",
		"/dev/null",
		"--wrap", "echo $$ >"+pidFile+"; exec sleep 1000"))
	var job string
	s.eventually("the job runs", func() (bool, string) {
		b, err := os.ReadFile(pidFile)
		job = strings.TrimSpace(string(b))
		return err == nil && job != "", job
	})

	if r := s.as("bireme-t2", "", "biremed", "stop", "--dir", dir); r.code == 0 || !d.alive() {
		t.Errorf("another user stopped the server, or was told so: %+v", r)
	}
	s.must("root", "", "biremed", "stop", "--dir", dir)
	if code := d.wait(); code != 0 {
		t.Errorf("the server ended with %d", code)
	}
	if !cluster.Runs(job) {
		t.Error("the job ended with the server")
	}
	if r := s.as("root", "", "biremed", "stop", "--dir", dir); r.code != 0 ||
		!strings.Contains(r.err, "nothing is running in "+dir) {
		t.Errorf("stop of a server that does not run: %+v", r)
	}

	r := s.as("root", "", "biremed", "stop", "--dir", node)
	if r.code == 0 || !strings.Contains(r.err, id) || !strings.Contains(r.err, "--jobs") {
		t.Errorf("stop of a node with a job: %+v", r)
	}
	if !agent.alive() || !cluster.Runs(job) || len(keepers(t, node)) == 0 {
		t.Error("a stop that was refused ended something")
	}
	s.must("root", "", "biremed", "stop", "--jobs", "--dir", node)
	agent.wait()
	if cluster.Runs(job) {
		t.Error("the job is still there")
	}
	if left := keepers(t, node); len(left) > 0 {
		t.Errorf("keepers are left: %v", left)
	}
	s.must("root", "", "biremed", "stop", "--dir", node) // again is fine
}
