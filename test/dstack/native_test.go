//go:build e2e

package dstack

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"bireme.dev/bireme/test/cluster"
)

// TestNative is a working day with our own commands: by the link named dstack, and by bireme.
func TestNative(t *testing.T) {
	c, url, token := start(t)
	s := newSession(t, c)
	linked(s, c, url, token)
	native(s, c)
	t.Logf("%d commands", s.n)
	if s.n < 60 {
		t.Errorf("only %d commands", s.n)
	}
}

// linked is the same working day by the link named dstack: bireme with the stock CLI's options, from a home that the
// stock CLI has never seen.
func linked(s *session, c *cluster.Cluster, url, token string) {
	l := newNamedSession(s, "linked", filepath.Join(c.Links, "dstack"))
	l.want(0, "--version")
	l.want(2, "frobnicate", "there is no command")
	l.want(2, "ps --frobnicate", "unknown flag")
	l.want(1, "project add --name main --url "+url+" --token nonsense -y")
	l.want(0, "project add --name main --url "+url+" --token "+token+" -y", "OK")
	l.want(0, "project list", "main", url, "✓")
	l.want(0, "project list -v", "root")
	l.want(0, "project set-default main", "OK")
	l.want(1, "project set-default other", "Project other is not configured")
	l.want(1, "ps --project other", "Project other is not configured")
	l.want(0, "fleet", "main")
	l.want(0, "fleet list -v", "instance=0", "cpu=x86:")
	l.want(0, "offer --cpu 1 --memory 64MB.. --max-offers 1", "ssh (remote)", "idle")
	l.want(0, "offer --json", `"total_offers": 1`)
	l.want(0, "offer --group-by gpu", "$/GPU")
	l.want(0, "volume")
	l.want(0, "gateway list --json", `"gateways": []`)
	l.want(1, "export list", "not available")
	l.want(1, "login --url "+url, "token")

	l.file("short.dstack.yml", head+"type: task\nname: by-link\nenv: [GIVEN]\n"+
		"commands: ['echo given $GIVEN', 'echo ${{ run.args }}', 'exit 3']\n")
	l.want(1, "apply -y -f short.dstack.yml -e GIVEN=slate one two", "task (nodes=1)", "idle", "given slate", "one two")
	l.want(1, "apply -y -f short.dstack.yml", "GIVEN")
	l.want(0, "ps -a", "by-link", "exited (3)")
	l.want(0, "ps -a -v", "RESOURCES", "by-link")
	l.want(0, "run get by-link --json", `"exit_status": 3`)
	l.want(0, "logs by-link", "given slate\n")
	l.want(0, "logs by-link --since 1h", "given slate\n")
	l.want(0, "logs -d by-link", "Job started")
	l.want(1, "logs nobody")
	l.want(0, "event --target-run by-link", "[run by-link]", "Run submitted")
	l.want(0, "stop -y by-link", "Stopped")
	l.want(0, "delete -y -f short.dstack.yml", "run by-link deleted")
	l.want(1, "run get by-link --json")
	l.want(0, "secret set hue teal", "OK")
	l.want(0, "secret get hue", "teal")
	l.want(0, "secret delete -y hue", "OK")
	l.want(1, "secret get hue")
	s.n += l.n
}

// native is a day with `bireme`, for what its commands share with dstack's.
func native(s *session, c *cluster.Cluster) {
	n := newNamedSession(s, "native", c.Program("bireme"))
	n.more = append([]string{"BIREME_PROJECT=main"}, c.Env...)
	n.want(0, "project list", "main", "container")
	n.want(0, "user list", "root")
	n.want(0, "offer", "NODE", "idle")
	n.want(2, "offer --max-offers 0", "--max-offers 0")
	n.want(2, "offer --group-by price", "must be gpu")
	n.file("long.dstack.yml", head+"type: task\nname: long\ncommands: [echo begun, sleep 3000]\n")
	n.want(0, "apply -y -d -f long.dstack.yml", "Runs in        a container of box:1", "idle", "run long, job ")
	n.until("begun", "logs long")
	n.want(0, "apply -y -d -f long.dstack.yml", "has no changes")
	n.file("long.dstack.yml", head+"type: task\nname: long\npriority: 9\ncommands: [echo begun, sleep 3000]\n")
	n.want(0, "apply -y -d -f long.dstack.yml", "priority: 0 → 9", "run long updated")
	n.file("long.dstack.yml", head+"type: task\nname: long\ncommands: [echo anew, sleep 3000]\n")
	n.want(6, "apply -d -f long.dstack.yml", "need a new start", "run long is running")
	n.want(0, "apply -y -d -f long.dstack.yml", `["echo begun","sleep 3000"] → ["echo anew","sleep 3000"]`, "stopping run")
	n.until("anew", "logs --tail 1 long")
	n.want(0, "logs --since 10m long", "anew\n", "!begun")
	n.want(0, "event --target-run long", "Run submitted")
	n.want(0, "volume list", "CLASS")
	n.want(0, "run get long --json", `"status": "running"`)
	n.want(6, "apply -y -d -f long.dstack.yml -n vast --cpu 900", "No node has what is asked for",
		"The nodes that there are")
	n.want(2, "apply -y -d -f long.dstack.yml --cpu 8..2", "--cpu", "write 2..8")
	n.want(0, "apply -y -f long.dstack.yml -n piece --json", `"run_name": "piece"`)
	n.want(0, "stop -y piece")
	n.want(0, "stop -y long")
	n.until(`"status": "terminated"`, "run get long --json")
	n.want(6, "attach long", "has ended")
	n.want(0, "delete -y long", "run long deleted")
	n.want(3, "run get long --json")
	n.array()
	n.repository()
	s.n += n.n
}

// array: a run of an array is judged by all its tasks, also when the last one ends first.
func (s *session) array() {
	s.t.Helper()
	s.file("sweep.dstack.yml", "type: task\nname: sweep\narray: 0-2\nruntime: process\n"+
		"resources: {cpu: 1, memory: 64MB..}\n"+
		"commands: ['echo task $SLURM_ARRAY_TASK_ID; [ $SLURM_ARRAY_TASK_ID != 1 ] || exit 7']\n")
	s.want(7, "apply -y -f sweep.dstack.yml", "_0 <==", "task 2", "2 tasks completed, 1 task failed", "exit status 7")
	s.want(0, "run get sweep --json", `"status": "failed"`)
	s.want(0, "logs -f sweep", "task 0", "task 1", "task 2")
}

// repository: a run in a container begins with the working copy, also with what was not committed.
func (s *session) repository() {
	s.t.Helper()
	cmd := exec.Command("sh", "-ec", `git init -q --bare ../up.git; git init -q; git checkout -q -b main
git config user.name a; git config user.email a@b; git remote add origin "$PWD/../up.git"
echo one > tracked; git add tracked; git commit -qm first; git push -q -u origin main
echo two > tracked; echo new > untracked`)
	cmd.Dir = s.work
	cmd.Env = append(os.Environ(), "HOME="+s.home)
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("%v: %s", err, out)
	}
	s.file("repo.dstack.yml", "type: task\nname: coded\nruntime: process\nrepos: ['.:copy']\n"+
		"resources: {cpu: 1, memory: 64MB..}\nworking_dir: "+s.work+"\ncommands: [cat copy/tracked copy/untracked]\n")
	s.want(0, "apply -y -f repo.dstack.yml", "two\nnew\n")
}

// newNamedSession is a session with another program and a home of its own on the same machine.
func newNamedSession(s *session, name, program string) *session {
	s.t.Helper()
	out := &session{t: s.t, cli: program, home: filepath.Join(s.home, name), work: filepath.Join(s.work, name)}
	for _, dir := range []string{out.home, out.work} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			s.t.Fatal(err)
		}
	}
	if strings.TrimSpace(program) == "" {
		s.t.Fatal("there is no program")
	}
	return out
}
