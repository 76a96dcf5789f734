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

// TestUnitAndSudo: a host with systemd, of which only systemctl is asked (and that is a fake one here), has its agent
// as a unit; on another the user becomes root by sudo, the real one. Both agents come back when they are killed, under
// jobs.
func TestUnitAndSudo(t *testing.T) {
	l := newLab(t)
	fake, err := filepath.Abs("testdata/fake-systemctl")
	if err != nil {
		t.Fatal(err)
	}
	unit, sudo := l.host("unit", 1), l.host("sudo", 2)
	// Its own /run, or the whole machine would seem to have systemd. The fake comes first in everybody's PATH: the machine
	// need not have the real one.
	unit.more = fmt.Sprintf("mount -t tmpfs none /run; mkdir -p /run/sshd /run/systemd/system /etc/systemd/system "+
		"/usr/local/sbin; "+
		"mount -t tmpfs none /etc/systemd/system; mount -t tmpfs none /usr/local/sbin; cp %[1]s /usr/local/sbin/systemctl; "+
		"if [ -e /usr/bin/systemctl ]; then mount --bind %[1]s /usr/bin/systemctl; fi;", fake)
	const user = "bireme-t1"
	rules := filepath.Join(l.dir, "sudoers")
	l.sh("echo '%s ALL=(ALL) NOPASSWD: ALL' >%s && chmod 440 %s", user, rules, rules)
	sudo.more = "mount --bind " + rules + " /etc/sudoers;"
	unit.boot()
	sudo.boot()
	l.start(l.bin)
	t.Cleanup(l.stop)
	hosts := []string{unit.addr, fmt.Sprintf("{hostname: %s, user: %s}", sudo.addr, user)}
	if said, code := l.apply("up", hosts...); code != 0 {
		t.Fatalf("apply: status %d\n%s", code, said)
	}
	calls := func() string {
		text, err := os.ReadFile(filepath.Join(unit.disk, "systemctl.log"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(unit.disk, "systemctl.log")); err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	const name = "bireme-agent-up-0.service"
	if got, want := calls(), "is-active --quiet "+name+"\nis-active --quiet "+name+"\ndaemon-reload\nenable --quiet "+
		name+"\nrestart "+name+"\n"; got != want {
		t.Errorf("systemctl was called\n%s\nwant\n%s", got, want)
	}
	if got := unit.on("cat /etc/systemd/system/" + name); !strings.Contains(
		got, "ExecStart=/bin/sh /var/lib/bireme/fleet/up-0/command\nRestart=always") {
		t.Errorf("the unit is\n%s", got)
	}
	if out := l.must("nodes"); strings.Contains(out, "only)") {
		t.Errorf("an agent is not root:\n%s", out)
	}
	if got := sudo.on("stat -c %U /proc/$(pgrep -f '[b]iremed agent')"); got != "root" {
		t.Errorf("the agent of %s is %s's", sudo.name, got)
	}

	for _, b := range []*box{unit, sudo} {
		l.agentDies("up", b)
	}

	// Other variables: the unit is started again.
	head := fmt.Sprintf("type: fleet\nname: up\nplacement: cluster\nenv: [A=1]\nssh_config:\n  user: root\n"+
		"  identity_file: %s\n", l.key)
	if said, code := l.applyText("up", head, hosts...); code != 0 {
		t.Fatalf("apply: status %d\n%s", code, said)
	}
	if got, want := calls(), "is-active --quiet "+name+"\ndaemon-reload\nenable --quiet "+name+"\nrestart "+name+
		"\n"; !strings.HasSuffix(got, want) {
		t.Errorf("systemctl was called\n%s\nwant\n%s", got, want)
	}
	l.must("fleet", "delete", "-y", "up")
	if got, want := calls(), "disable --quiet --now "+name+"\ndaemon-reload\n"; !strings.HasSuffix(got, want) {
		t.Errorf("systemctl was called\n%s\nwant\n%s", got, want)
	}
	for _, b := range []*box{unit, sudo} {
		if left := b.on("ls -A /var/lib/bireme; ls /etc/systemd/system | grep bireme; pgrep -f '[b]iremed " +
			"agent|[b]ireme-step'; true"); left != "" {
			t.Errorf("left on %s: %s", b.name, left)
		}
	}
}

// agentDies: a killed agent comes back by itself, under a job.
func (l *lab) agentDies(fleet string, b *box) {
	t := l.t
	t.Helper()
	node := string(l.instance(fleet, b.addr).Node)
	id := l.sbatch("-w", node, "--wrap", "while [ ! -e /var/lib/bireme/mark ]; do sleep 0.1; done")
	l.eventually("the job runs", func() (bool, string) {
		j := l.job(id)
		return j.State == core.Running, j.State.String()
	})
	pid := b.on("pgrep -f '[b]iremed agent'")
	b.on("kill -9 " + pid)
	l.eventually("another agent runs on "+b.name, func() (bool, string) {
		now := b.on("pgrep -f '[b]iremed agent'")
		return now != pid && strings.Trim(now, "0123456789") == "" && now != "", now
	})
	l.await("it is connected", fleet, b, func(x client.FleetInstance) bool {
		return x.Status == "busy" && x.Cause == "" && x.Phase == ""
	})
	mark := filepath.Join(b.disk, "mark")
	if err := os.WriteFile(mark, nil, 0o644); err != nil {
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
