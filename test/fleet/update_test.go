//go:build e2e

package fleet

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
)

// newer builds programs of another version than the lab's.
func (l *lab) newer(version string) string {
	l.t.Helper()
	dir := filepath.Join(l.dir, "newer")
	l.sh("cp -r %s %s", l.bin, dir)
	args := []string{"build", "-trimpath", "-ldflags", "-s -w -X main.version=" + version, "-o", dir + "/"}
	for _, name := range []string{"biremed", "bireme-step", "bireme-container", "bireme-init"} {
		args = append(args, "bireme.dev/bireme/cmd/"+name)
	}
	build := exec.Command("go", args...)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		l.t.Fatalf("build: %v\n%s", err, out)
	}
	return dir
}

// keeper tells the version of the program that a host's keeper runs, and that of what would start in containers there.
func (b *box) keeper() string {
	return b.on(
		`for p in $(pgrep -x bireme-step); do d=$(dirname $(readlink /proc/$p/exe)); for x in bireme-step ` +
			`bireme-container bireme-init; do $d/$x --version; done; done`)
}

// newerServer: a server of another version brings its agents along, under a running job; the keeper of that job has its
// old program until it ends.
func (l *lab) newerServer(b *box) {
	t := l.t
	t.Helper()
	x := l.instance("lab", b.addr)
	mark := filepath.Join(b.disk, "mark")
	id := l.sbatch("-w", string(x.Node), "--wrap", "while [ ! -e /var/lib/bireme/mark ]; do sleep 0.1; done; echo through")
	l.eventually("the job runs", func() (bool, string) {
		j := l.job(id)
		return j.State == core.Running, fmt.Sprint(j.State, " ", j.Reason, " ", j.Message)
	})
	was := b.keeper()
	newer := l.newer("99.0")
	l.stop()
	l.start(newer)
	for _, b := range l.hosts {
		l.await("the agent of "+b.name+" is newer", "lab", b, func(x client.FleetInstance) bool {
			return x.Version == "99.0" && (x.Status == "idle" || x.Status == "busy") && x.Cause == ""
		})
	}
	if now := b.keeper(); now != was || strings.Contains(now, "99.0") {
		t.Errorf("the keeper of a running job has another program: %s, it was %s", now, was)
	}
	if err := os.WriteFile(mark, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l.eventually("the job ends well", func() (bool, string) {
		j := l.job(id)
		return j.State == core.Completed, j.State.String()
	})
	_ = os.Remove(mark)
	if j := l.job(id); j.Attempt != 1 {
		t.Errorf("the job was started %d times", j.Attempt)
	}
	for _, b := range l.hosts {
		want := "bireme-step 99.0\nbireme-container 99.0\nbireme-init 99.0"
		l.eventually("the keeper of "+b.name+" is newer", func() (bool, string) {
			now := b.keeper()
			return now == want, now
		})
	}
	id = l.sbatch("-w", string(x.Node), "--wrap", "true")
	l.eventually("a job runs under the new keeper", func() (bool, string) {
		j := l.job(id)
		return j.State == core.Completed, fmt.Sprint(j.State, j.Reason)
	})
}

// TestReplacedPrograms: programs that are newer than the server beside which they lie are told of, and not brought
// again and again.
func TestReplacedPrograms(t *testing.T) {
	l := newLab(t)
	b := l.host("plain", 1)
	b.boot()
	bin := filepath.Join(l.dir, "bin")
	l.sh("cp -r %s %s", l.bin, bin)
	l.start(bin)
	t.Cleanup(l.stop)
	l.sh("mv %s/* %s/", l.newer("99.0"), bin)
	l.apply("odd", b.addr)
	l.await("it is told", "odd", b, func(x client.FleetInstance) bool {
		return strings.Contains(x.Cause, "its agent has version 99.0") && strings.Contains(x.Cause, "restart it")
	})
	if log, err := os.ReadFile(filepath.Join(l.dir, b.name+".sshd.log")); err != nil ||
		strings.Count(string(log), "Accepted publickey") > 2 {
		t.Errorf("it was logged in to again and again: %v\n%s", err, log)
	}
	if x := l.instance("odd", b.addr); x.Status != "idle" {
		t.Errorf("it serves all the same: %+v", x)
	}
	// What is right then mends itself.
	l.stop()
	l.start(bin)
	l.await("the server is as new", "odd", b, func(x client.FleetInstance) bool {
		return x.Status == "idle" && x.Cause == ""
	})
	l.must("fleet", "delete", "-y", "odd")
}
