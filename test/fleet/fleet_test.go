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

func up(x client.FleetInstance) bool { return x.Status == "idle" && x.Cause == "" }

// TestFleetOfRealHosts is a fleet's life: hosts that join directly and through a jump host, one that refuses and one
// that dies, updates in place, changed host keys, newer programs under a running job, and the end that leaves nothing
// behind.
func TestFleetOfRealHosts(t *testing.T) {
	l := newLab(t)
	plain, gate, mortal, shut := l.host("plain", 1), l.host("gate", 2), l.host("mortal", 3), l.host("shut", 4)
	inner := l.behind("inner", gate, 9)
	for _, b := range []*box{plain, gate, mortal, inner} {
		b.boot()
	}
	l.start(l.bin)
	t.Cleanup(l.stop)
	through := fmt.Sprintf("{hostname: %s, proxy_jump: {hostname: %s, user: root, identity_file: %s}}", inner.addr,
		gate.addr, l.key)
	all := []string{plain.addr, gate.addr, mortal.addr, through, shut.addr}

	said, code := l.apply("lab", all...)
	if code != 1 || !strings.Contains(said, shut.addr+":22: it refuses connections") ||
		!strings.Contains(said, "lab-3 root@"+inner.addr+":22: idle") {
		t.Fatalf("apply: status %d\n%s", code, said)
	}
	for _, b := range []*box{plain, gate, mortal, inner} {
		if x := l.instance("lab", b.addr); !up(x) || x.Hardware.CPUs == 0 || x.HostKey == "" {
			t.Errorf("%s: %+v", b.name, x)
		}
	}
	if out := l.must("nodes"); !strings.Contains(out, "it refuses connections") {
		t.Errorf("nodes names no cause:\n%s", out)
	}

	// A job over all of them, the one behind the jump host too.
	l.spread()

	// The fifth host gets its SSH server; applying again tries at once.
	shut.boot()
	if said, code = l.apply("lab", all...); code != 0 || !strings.Contains(said, "no changes") {
		t.Fatalf("apply: status %d\n%s", code, said)
	}

	l.splits(plain, all)
	l.hostKeyChanges(inner)
	l.hostDies(mortal)
	l.newerServer(plain)

	// A host leaves in place: its agent is ended and its files are gone. Another comes in a fleet of its own.
	if said, code = l.apply("lab", all[1:]...); code != 0 {
		t.Fatalf("apply: status %d\n%s", code, said)
	}
	if left := plain.on("ls -A /var/lib/bireme; pgrep -f '[b]iremed agent'; true"); left != "" {
		t.Errorf("left on %s: %s", plain.name, left)
	}
	if said, code = l.apply("two", gate.addr); code != 6 || !strings.Contains(said, gate.addr+":22 is in fleet lab") {
		t.Errorf("a host in two fleets: status %d\n%s", code, said)
	}
	l.must("fleet", "delete", "-y", "lab")
	for _, b := range []*box{gate, inner, shut, mortal} {
		if left := b.on("ls -A /var/lib/bireme; pgrep -f '[b]iremed agent|[b]ireme-step'; true"); left != "" {
			t.Errorf("left on %s: %s", b.name, left)
		}
	}
	if out := l.must("nodes"); strings.Contains(out, "lab-") {
		t.Errorf("nodes left:\n%s", out)
	}
}

// spread runs a task on four hosts and looks where it was.
func (l *lab) spread() {
	l.t.Helper()
	file := filepath.Join(l.dir, "task.dstack.yml")
	if err := os.WriteFile(file,
		[]byte("type: task\nnodes: 4\ncommands:\n  - echo rank=$DSTACK_NODE_RANK of $DSTACK_NODES_NUM on $(hostname) "+
			"as $SLURMD_NODENAME\n  - echo hosts=$(tr '\\n' , <$DSTACK_MPI_HOSTFILE)\n"), 0o644); err != nil {
		l.t.Fatal(err)
	}
	out, errs, code := l.as("bireme-t1", "apply", "-y", "-f", file)
	if code != 0 {
		l.t.Fatalf("task: status %d\n%s%s", code, out, errs)
	}
	hosts := ""
	for _, name := range []string{"plain", "gate", "mortal", "inner"} {
		hosts += l.hosts[name].addr + ","
	}
	for _, want := range []string{
		"on plain as lab-0", "on gate as lab-1", "on mortal as lab-2", "on inner as lab-3",
		"hosts=" + hosts + "\n",
	} {
		if !strings.Contains(out, want) {
			l.t.Errorf("the task was not %s:\n%s%s", want, out, errs)
		}
	}
}

// hostKeyChanges: the SSH server of a host whose stream it carries comes back with another key. The job there
// continues, the host is refused until somebody says that it is right.
func (l *lab) hostKeyChanges(b *box) {
	t := l.t
	t.Helper()
	x := l.instance("lab", b.addr)
	mark := filepath.Join(b.disk, "mark")
	id := l.sbatch("-w", string(x.Node), "--wrap", "while [ ! -e /var/lib/bireme/mark ]; do sleep 0.1; done; echo through")
	l.eventually("the job runs", func() (bool, string) {
		j := l.job(id)
		return j.State == core.Running, j.State.String()
	})
	l.sh("rm %[1]s.hostkey* && ssh-keygen -q -t ed25519 -N '' -f %[1]s.hostkey", b.disk)
	b.on("kill -HUP 1") // it starts again in place
	key, err := os.ReadFile(b.disk + ".hostkey.pub")
	if err != nil {
		t.Fatal(err)
	}
	l.eventually("it shows the new key", func() (bool, string) {
		out, _ := exec.Command("nsenter", "--net=/run/netns/"+b.ns, "ssh-keyscan", "-t", "ed25519", b.addr).Output()
		return strings.Contains(string(out), strings.Fields(string(key))[1]), string(out)
	})
	b.on("pkill -f '[s]shd: root' || pkill '[s]shd-session'; true")
	l.await("the changed key is refused", "lab", b, func(x client.FleetInstance) bool {
		return strings.Contains(x.Cause, "host key of "+b.addr+":22 changed")
	})
	if out := l.must("why", id); !strings.Contains(out, "changed") {
		t.Errorf("why names no cause:\n%s", out)
	}
	l.must("fleet", "trust", "lab", "-i", fmt.Sprint(x.Num))
	l.await("the new key is taken", "lab", b, func(x client.FleetInstance) bool {
		return x.Status == "busy" && x.Cause == ""
	})
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
}

// hostDies: its node is out of reach, with the cause; its job stays, because nobody knows better. When the host is back
// its agent is started again, and says how the job ended.
func (l *lab) hostDies(b *box) {
	t := l.t
	t.Helper()
	x := l.instance("lab", b.addr)
	id := l.sbatch("--no-requeue", "-w", string(x.Node), "--wrap", "touch /var/lib/bireme/began; sleep 1000")
	began := filepath.Join(b.disk, "began") // a launch that never arrived would be sent again
	l.eventually("the job runs", func() (bool, string) { _, err := os.Stat(began); return err == nil, fmt.Sprint(err) })
	_ = os.Remove(began)
	b.kill()
	l.await("it is out of reach", "lab", b, func(x client.FleetInstance) bool {
		return x.Status == "unreachable" && strings.Contains(x.State, "NOT_RESPONDING") && x.Cause != ""
	})
	if j := l.job(id); j.State != core.Running {
		t.Errorf("the job of a silent node is %s", j.State)
	}
	b.boot()
	l.await("it is back", "lab", b, func(x client.FleetInstance) bool { return x.Status == "idle" && x.Cause == "" })
	l.eventually("the job's end is known", func() (bool, string) {
		j := l.job(id)
		return j.State.Final(), j.State.String()
	})
}

// splits: a host is split in place, and two runs share it; one of the other tongue sees the same CPUs.
func (l *lab) splits(b *box, all []string) {
	t := l.t
	t.Helper()
	cpus := l.instance("lab", b.addr).Hardware.CPUs
	if cpus < 2 || cpus%2 != 0 {
		t.Logf("a machine of %d CPUs is not split", cpus)
		return
	}
	bad := append([]string{fmt.Sprintf("{hostname: %s, blocks: %d}", b.addr, cpus+1)}, all[1:]...)
	if said, code := l.apply("lab", bad...); code != 6 ||
		!strings.Contains(said, fmt.Sprintf("%d CPUs cannot be divided into %d equal blocks", cpus, cpus+1)) {
		t.Errorf("blocks that do not divide: status %d\n%s", code, said)
	}
	half := append([]string{fmt.Sprintf("{hostname: %s, blocks: 2}", b.addr)}, all[1:]...)
	if said, code := l.apply("lab", half...); code != 0 {
		t.Fatalf("apply: status %d\n%s", code, said)
	}
	node := string(l.instance("lab", b.addr).Node)
	for _, others := range []string{"gate", "mortal", "inner", "shut"} { // nothing else may be used
		l.must("drain", string(l.instance("lab", l.hosts[others].addr).Node))
	}
	mark := filepath.Join(b.disk, "mark")
	file := filepath.Join(l.dir, "half.dstack.yml")
	if err := os.WriteFile(file,
		[]byte("type: task\nfleets: [lab]\nresources: {cpu: 1}\ncommands:\n  - while [ ! -e /var/lib/bireme/mark ]; "+
			"do sleep 0.1; done\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, errs, code := l.as("bireme-t1", "apply", "-d", "-y", "-f", file); code != 0 {
			t.Fatalf("half: %s", errs)
		}
	}
	l.await("two runs share the host", "lab", b, func(x client.FleetInstance) bool {
		return x.Busy == 2 && x.AllocCPUs == cpus
	})
	if out := l.must("sinfo", "-h", "-n", node, "-o", "%t"); !strings.HasPrefix(out, "alloc") {
		t.Errorf("sinfo says %s", out)
	}
	if err := os.WriteFile(mark, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	l.await("they end", "lab", b, func(x client.FleetInstance) bool { return x.Busy == 0 && x.Status == "idle" })
	_ = os.Remove(mark)
	for _, others := range []string{"gate", "mortal", "inner", "shut"} {
		l.must("resume", string(l.instance("lab", l.hosts[others].addr).Node))
	}
	if said, code := l.apply("lab", all...); code != 0 {
		t.Fatalf("apply: status %d\n%s", code, said)
	}
}

// TestOrdinaryUser: somebody without root makes a node of a host for their own jobs.
func TestOrdinaryUser(t *testing.T) {
	l := newLab(t)
	b := l.host("own", 1)
	b.boot()
	l.start(l.bin)
	t.Cleanup(l.stop)
	const user = "bireme-t1"
	if said, code := l.apply("own", fmt.Sprintf("{hostname: %s, user: %s}", b.addr, user)); code != 0 {
		t.Fatalf("apply: status %d\n%s", code, said)
	}
	if out := l.must("nodes"); !strings.Contains(out, "("+user+" only)") {
		t.Errorf("nodes do not say whose it is:\n%s", out)
	}
	if out := l.must("fleet"); !strings.Contains(
		out, "jobs of "+user+" only: the user is not root there and has no sudo without a password") {
		t.Errorf("the fleet does not say whose it is:\n%s", out)
	}
	file := filepath.Join(l.dir, "who.dstack.yml")
	if err := os.WriteFile(file, []byte("type: task\ncommands:\n  - echo I am $(id -un) on $(hostname)\n"),
		0o644); err != nil {
		t.Fatal(err)
	}
	if out, errs, code := l.as(user, "apply", "-y", "-f", file); code != 0 ||
		!strings.Contains(out, "I am "+user+" on own") {
		t.Errorf("status %d\n%s%s", code, out, errs)
	}
	if out, errs, code := l.as("bireme-t2", "apply", "-y", "-f", file); code == 0 ||
		!strings.Contains(errs, "only their own user's jobs") {
		t.Errorf("another user's job: status %d\n%s%s", code, out, errs)
	}
	l.must("fleet", "delete", "-y", "own")
	if left := b.on("ls -A ~" + user + "/.bireme/fleet 2>/dev/null; pgrep -f '[b]iremed agent'; true"); left != "" {
		t.Errorf("left: %s", left)
	}
}
