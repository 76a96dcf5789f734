//go:build e2e

package fleet

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
)

// crash kills the server: nothing of it gets to say a word.
func (l *lab) crash() {
	l.t.Helper()
	_ = l.server.Process.Kill()
	<-l.ended
	l.server = nil
}

// single is what a host has that is one node: the loop, its agent and its keeper, each once, and whole programs.
func (b *box) single(what string) {
	b.l.t.Helper()
	b.l.eventually(what, func() (bool, string) {
		got := b.on(
			`pgrep -fc '^sh /[v]ar/lib/bireme/fleet/.*/run'; pgrep -fc '[b]iremed agent'; pgrep -xc bireme-step; ls ` +
				`-A /var/lib/bireme/fleet/bin | grep -c '^[.]'; ls /var/lib/bireme/fleet/bin | wc -l`)
		return got == "1\n1\n1\n0\n1", strings.ReplaceAll(got, "\n", " ")
	})
}

// TestFaults: servers that die in the middle of raising a fleet, or are away for a while, agents and whole hosts that
// die, and hosts that come back with another boot.
func TestFaults(t *testing.T) {
	l := newLab(t)
	a, gate := l.host("a", 1), l.host("gate", 2)
	inner := l.behind("inner", gate, 9)
	all := []*box{a, gate, inner}
	for _, b := range all {
		// Each has a boot of its own, which namespaces of one machine do not have.
		b.more = fmt.Sprintf("cat /proc/sys/kernel/random/uuid >%[1]s.boot; mount --bind %[1]s.boot "+
			"/proc/sys/kernel/random/boot_id;", b.disk)
		b.boot()
	}
	file := filepath.Join(l.dir, "flt.dstack.yml")
	text := fmt.Sprintf("type: fleet\nname: flt\nssh_config:\n  user: root\n  identity_file: %[1]s\n  hosts:\n"+
		"    - %[2]s\n    - %[3]s\n    - {hostname: %[4]s, proxy_jump: {hostname: %[3]s, user: root, identity_file: "+
		"%[1]s}}\n",
		l.key, a.addr, gate.addr, inner.addr)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l.start(l.bin)
	t.Cleanup(l.stop)
	l.must("apply", "-y", "-d", "-f", file)
	for _, phase := range []string{"uploading", "starting", "waiting for its agent"} {
		l.eventually("a host is "+phase, func() (bool, string) {
			f, err := l.client().Fleet(t.Context(), "flt")
			if err != nil {
				t.Fatal(err)
			}
			up, seen := 0, ""
			for _, x := range f.Instances {
				seen += x.Phase + "/" + x.Status + " "
				if x.Phase == phase || x.Status == "idle" { // one that was too quick is past it
					up++
				}
			}
			return up > 0, seen
		})
		l.crash()
		l.start(l.bin)
	}
	for _, b := range all {
		l.await(b.name+" is up", "flt", b, func(x client.FleetInstance) bool { return up(x) && x.Phase == "" })
		b.single(b.name + " was raised once")
	}

	l.serverAway(a, inner)
	l.agentDies("flt", a)
	l.agentDies("flt", inner)
	l.loopDies(a)
	l.reboots(a)

	l.must("fleet", "delete", "-y", "flt")
	for _, b := range all {
		if left := b.on("ls -A /var/lib/bireme; pgrep -f '[b]iremed agent|[b]ireme-step|fleet/.*/[r]un'; true"); left != "" {
			t.Errorf("left on %s: %s", b.name, left)
		}
	}
}

// serverAway: jobs end while there is no server. It learns of it when it is back, and the agents are the same.
func (l *lab) serverAway(hosts ...*box) {
	t := l.t
	t.Helper()
	var ids, agents []string
	for _, b := range hosts {
		ids = append(ids, l.sbatch("-w", string(l.instance("flt", b.addr).Node), "-o", "/var/lib/bireme/away", "--wrap",
			"while [ ! -e /var/lib/bireme/mark ]; do sleep 0.1; done; echo over"))
	}
	for i, id := range ids {
		l.eventually("the job runs", func() (bool, string) {
			_, err := os.Stat(filepath.Join(hosts[i].disk, "away"))
			return err == nil && l.job(id).State == core.Running, fmt.Sprint(err)
		})
		agents = append(agents, hosts[i].on("pgrep -f '[b]iremed agent'"))
	}
	l.crash()
	for _, b := range hosts {
		mark := filepath.Join(b.disk, "mark")
		if err := os.WriteFile(mark, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		l.eventually("the job ends while nobody is there", func() (bool, string) {
			out, err := os.ReadFile(filepath.Join(b.disk, "away"))
			return string(out) == "over\n", fmt.Sprint(err)
		})
		_ = os.Remove(mark)
		_ = os.Remove(filepath.Join(b.disk, "away"))
	}
	l.start(l.bin)
	for i, b := range hosts {
		l.eventually("its end is known", func() (bool, string) {
			j := l.job(ids[i])
			return j.State == core.Completed, j.State.String()
		})
		if j := l.job(ids[i]); j.Attempt != 1 {
			t.Errorf("the job was started %d times", j.Attempt)
		}
		l.await(b.name+" is back", "flt", b, func(x client.FleetInstance) bool { return up(x) && x.Phase == "" })
		if now := b.on("pgrep -f '[b]iremed agent'"); now != agents[i] {
			t.Errorf("the agent of %s was %s and is %s", b.name, agents[i], now)
		}
	}
}

// loopDies: who keeps the agent going dies with it. The server sees to it.
func (l *lab) loopDies(b *box) {
	l.t.Helper()
	b.on("kill -9 $(cat /var/lib/bireme/fleet/flt-*/loop.pid) $(pgrep -f '[b]iremed agent')")
	b.single("the agent was started again")
	l.await(b.name+" is back", "flt", b, func(x client.FleetInstance) bool { return up(x) && x.Phase == "" })
}

// reboots: the host comes back with another boot, so what ran there has ended: a job that may be is started again.
func (l *lab) reboots(b *box) {
	t := l.t
	t.Helper()
	node := string(l.instance("flt", b.addr).Node)
	id := l.sbatch("--requeue", "-w", node, "--wrap",
		"echo $SLURM_RESTART_COUNT >>/var/lib/bireme/began; while [ ! -e /var/lib/bireme/mark ]; do sleep 0.1; done")
	lost := l.sbatch("--no-requeue", "-w", node, "--wrap", "echo lost >>/var/lib/bireme/began; sleep 1000")
	began := filepath.Join(b.disk, "began")
	l.eventually("the jobs run", func() (bool, string) {
		text, _ := os.ReadFile(began)
		return strings.Count(string(text), "\n") == 2, string(text)
	})
	b.kill()
	l.await("it is out of reach", "flt", b, func(x client.FleetInstance) bool {
		return x.Status == "unreachable" && x.Cause != ""
	})
	if out := l.must("why", id); !strings.Contains(out, node) {
		t.Errorf("why does not name the node:\n%s", out)
	}
	b.boot()
	l.eventually("the job that was lost has ended", func() (bool, string) {
		j := l.job(lost)
		return j.State == core.NodeFail, j.State.String()
	})
	if err := os.WriteFile(filepath.Join(b.disk, "mark"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	l.eventually("the other ran again", func() (bool, string) {
		j := l.job(id)
		return j.State == core.Completed && j.Attempt == 2, fmt.Sprint(j.State, j.Attempt)
	})
	l.await(b.name+" is back", "flt", b, func(x client.FleetInstance) bool { return up(x) && x.Phase == "" })
	for _, f := range []string{"mark", "began"} {
		_ = os.Remove(filepath.Join(b.disk, f))
	}
}
