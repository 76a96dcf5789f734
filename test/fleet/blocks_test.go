//go:build e2e

package fleet

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
)

// TestBlocksInBothTongues: hosts that are split into as many blocks as can be are shared by YAML runs and Slurm jobs, a
// run on several hosts has them whole, and whoever is asked says the same of them.
func TestBlocksInBothTongues(t *testing.T) {
	l := newLab(t)
	a, b := l.host("a", 1), l.host("b", 2)
	a.boot()
	b.boot()
	l.start(l.bin)
	t.Cleanup(l.stop)
	text := fmt.Sprintf("type: fleet\nname: blk\nplacement: cluster\nblocks: auto\nssh_config:\n  user: root\n"+
		"  identity_file: %s\n", l.key)
	if said, code := l.applyText("blk", text, a.addr, b.addr); code != 0 {
		t.Fatalf("apply: status %d\n%s", code, said)
	}
	cpus := l.instance("blk", a.addr).Hardware.CPUs
	if x := l.instance("blk", b.addr); x.Blocks != cpus || cpus < 2 {
		t.Fatalf("%d CPUs are %d blocks", cpus, x.Blocks)
	}
	nodeA, nodeB := string(l.instance("blk", a.addr).Node), string(l.instance("blk", b.addr).Node)
	const wait = "while [ ! -e /var/lib/bireme/mark ]; do sleep 0.1; done"
	task := func(name, more string) string {
		t.Helper()
		file := filepath.Join(l.dir, name+".yml")
		if err := os.WriteFile(file, []byte("type: task\nname: "+name+"\nfleets: [blk]\n"+more+"commands: ['"+wait+
			"']\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		out, errs, code := l.as("bireme-t1", "apply", "-d", "-y", "-f", file)
		if code != 0 {
			t.Fatalf("%s: status %d\n%s", name, code, errs)
		}
		fields := strings.Fields(out)
		return fields[len(fields)-1] // its job
	}
	runs := func(id string) {
		t.Helper()
		l.eventually("job "+id+" runs", func() (bool, string) {
			j := l.job(id)
			return j.State == core.Running, fmt.Sprint(j.State, " ", j.Reason)
		})
	}

	// One of each tongue on the same host.
	small := l.sbatch("-w", nodeA, "-n", "1", "-c", "1", "--wrap", wait)
	runs(small)
	part := task("part", "resources: {cpu: 1}\n")
	runs(part)
	l.agree("blk", a, 0)
	l.agree("blk", b, 0)
	if n := l.instance("blk", a.addr).AllocCPUs + l.instance("blk", b.addr).AllocCPUs; n != 2 {
		t.Errorf("two jobs of one CPU have %d", n)
	}

	// A run over both waits until both are free, whole.
	wide := task("wide", "nodes: 2\nresources: {cpu: 1}\n")
	if j := l.job(wide); j.State != core.Pending {
		t.Errorf("a run over two hosts is %s beside others", j.State)
	}
	if out := l.must("why", wide); !strings.Contains(out, "wait") && !strings.Contains(out, "Resources") {
		t.Errorf("why does not tell:\n%s", out)
	}
	l.must("scancel", small, part)
	runs(wide)
	for _, x := range []*box{a, b} {
		l.agree("blk", x, cpus)
		if i := l.instance("blk", x.addr); i.Busy != cpus || i.Status != "busy" {
			t.Errorf("%s is not whole: %+v", x.name, i)
		}
	}
	late := l.sbatch("-w", nodeB, "-n", "1", "-c", "1", "--wrap", "true")
	if j := l.job(late); j.State != core.Pending {
		t.Errorf("a job beside a run that has its hosts whole is %s", j.State)
	}
	for _, x := range []*box{a, b} {
		if err := os.WriteFile(filepath.Join(x.disk, "mark"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{wide, late} {
		l.eventually("job "+id+" ends", func() (bool, string) {
			j := l.job(id)
			return j.State == core.Completed, j.State.String()
		})
	}
	for _, x := range []*box{a, b} {
		l.await(x.name+" is idle", "blk", x, func(x client.FleetInstance) bool { return up(x) && x.Busy == 0 })
		l.agree("blk", x, 0)
	}
	l.must("fleet", "delete", "-y", "blk")
}

// agree asks everybody how many CPUs of a host are in use: the fleet, the nodes, sinfo and scontrol. least of them must
// be.
func (l *lab) agree(fleet string, b *box, least int32) {
	t := l.t
	t.Helper()
	x := l.instance(fleet, b.addr)
	node := string(x.Node)
	n, err := l.client().Node(t.Context(), x.Node)
	if err != nil {
		t.Fatal(err)
	}
	all := x.Hardware.CPUs
	want := fmt.Sprintf("%d/%d/0/%d", x.AllocCPUs, all-x.AllocCPUs, all)
	word := map[bool]string{true: "mix"}[x.AllocCPUs > 0 && x.AllocCPUs < all]
	switch x.AllocCPUs {
	case 0:
		word = "idle"
	case all:
		word = "alloc"
	}
	sinfo := strings.TrimSpace(l.must("sinfo", "-h", "-N", "-n", node, "-o", "%C %t"))
	if sinfo != want+" "+word {
		t.Errorf("sinfo says %q of %s and the fleet %q", sinfo, node, want+" "+word)
	}
	shown := l.must("scontrol", "show", "node", node)
	if !regexp.MustCompile(fmt.Sprintf(`\bCPUAlloc=%d\b`, x.AllocCPUs)).MatchString(shown) {
		t.Errorf("scontrol says of %s, where the fleet says %d CPUs:\n%s", node, x.AllocCPUs, shown)
	}
	if n.AllocCPUs != x.AllocCPUs || n.Blocks != x.Blocks {
		t.Errorf("nodes say %d CPUs in %d blocks of %s, the fleet %d in %d", n.AllocCPUs, n.Blocks, node, x.AllocCPUs,
			x.Blocks)
	}
	if per := all / x.Blocks; x.Busy != (x.AllocCPUs+per-1)/per || x.AllocCPUs < least {
		t.Errorf("%d CPUs of %s are %d of %d blocks", x.AllocCPUs, node, x.Busy, x.Blocks)
	}
	status := map[bool]string{true: "busy", false: "idle"}[x.AllocCPUs > 0]
	if x.Status != status {
		t.Errorf("%s with %d CPUs in use is %s", node, x.AllocCPUs, x.Status)
	}
}
