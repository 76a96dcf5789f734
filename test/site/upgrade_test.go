//go:build e2e

package site

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// buildPrevious builds the programs of the previous release, whose commit testdata/previous names, from this clone's
// history.
func (s *site) buildPrevious() string {
	t := s.t
	t.Helper()
	text, err := os.ReadFile("testdata/previous")
	if err != nil {
		t.Fatal(err)
	}
	commit := strings.Fields(string(text))[0]
	dir := s.folder("previous", "root") // where every user may run them
	if out, err := exec.Command("git", "cat-file", "-e", commit).CombinedOutput(); err != nil {
		t.Skipf("this tree has no history with %s: %v %s", commit, err, out)
	}
	script := `set -euo pipefail
root=$(git rev-parse --show-toplevel)
git -C "$root" archive "$1" | tar -x -C "$2"
cd "$2"
CGO_ENABLED=0 GOFLAGS=-trimpath go build -buildvcs=false -ldflags "-s -w -X main.version=previous" \
	-o "$2/bin/" ./cmd/...`
	if out, err := exec.Command("bash", "-c", script, "build", commit, dir).CombinedOutput(); err != nil {
		t.Fatalf("build of %s: %v\n%s", commit, err, out)
	}
	return filepath.Join(dir, "bin")
}

// rolling is a cluster whose parts are replaced one by one.
type rolling struct {
	*site
	dir, door, work string
	server, agent   *daemon
	starts          int
	ids             []string
}

func (r *rolling) stop(d *daemon) {
	r.t.Helper()
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		r.t.Fatal(err)
	}
	d.wait()
}

func (r *rolling) startServer(bin string) {
	r.t.Helper()
	if r.server != nil {
		r.stop(r.server)
	}
	r.starts++
	r.bin = bin
	r.server = r.site.server(fmt.Sprintf("server-%d", r.starts), r.dir, "root", "--agent-listen", r.door)
}

func (r *rolling) startAgent(bin string) {
	r.t.Helper()
	r.stop(r.agent)
	r.starts++
	r.bin = bin
	r.agent = r.start(fmt.Sprintf("n1-%d", r.starts), "root", nil, "agent", "--server", r.door, "--dir", r.nodeDir("n1"),
		"--node", "n1", "--ca", filepath.Join(r.dir, "ca.pem"))
	r.eventually("node n1 is connected", func() (bool, string) {
		n, err := r.client(r.dir).Node(r.t.Context(), "n1")
		return err == nil && n.Connected, fmt.Sprint(err)
	})
}

// submit submits jobs by the commands of one release. Each makes a folder of its id: a second time that fails.
func (r *rolling) submit(bin string, n int, then string) {
	r.t.Helper()
	r.bin = bin
	for range n {
		script := fmt.Sprintf("mkdir %[1]s/$SLURM_JOB_ID || touch %[1]s/twice; %[2]s", r.work, then)
		id := r.must("bireme-t1", socket(r.dir), "bireme", "sbatch", "--parsable", "--mem=16M", "-D", "/tmp", "-o",
			"/dev/null", "--wrap", script)
		r.ids = append(r.ids, strings.TrimSpace(id))
	}
}

// Server and agent are replaced by the next release and by the previous one again, one after the other, while jobs run
// and are submitted by commands of both: none is lost, none runs twice.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	before := s.buildPrevious()
	after := s.bin
	r := &rolling{site: s, dir: s.folder("srv", "root"), door: freePort(t), work: s.folder("work", "bireme-t1")}
	t.Cleanup(func() { s.bin = after }) // what ends the node is this release's

	r.startServer(before)
	r.agent = s.agent(r.dir, r.door, "n1")
	end := filepath.Join(r.work, "end")
	r.submit(before, 2, "until [ -e "+end+" ]; do sleep 0.1; done") // they live through all of it
	for _, step := range []func(){
		func() { r.startServer(after) },
		func() { r.startAgent(after) },
		func() { r.startServer(before) },
		func() { r.startAgent(before) },
		func() { r.startAgent(after) },
		func() { r.startServer(after) },
	} {
		r.submit(before, 3, "sleep 0.3")
		r.submit(after, 3, "sleep 0.3")
		step()
	}
	r.submit(before, 3, "true")
	if err := os.WriteFile(end, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, id := range r.ids {
		r.completed(r.dir, id)
		if _, err := os.Stat(filepath.Join(r.work, id)); err != nil {
			t.Errorf("job %s is completed and has not run: %v", id, err)
		}
	}
	if _, err := os.Stat(filepath.Join(r.work, "twice")); err == nil {
		t.Error("a job ran twice")
	}
}
