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

// strange gives a host another machine's name in the place of its own.
func (b *box) strange(machine string) {
	file := filepath.Join(b.l.dir, "fake-uname-"+machine)
	b.l.sh(`printf '#!/bin/sh\ncase $1 in -s) echo Linux;; *) echo %s;; esac\n' >%s && chmod 755 %s`, machine, file, file)
	b.more = "mount --bind " + file + " /usr/bin/uname;"
}

// TestBadHosts: what is wrong with a host is told where the user looks, and nothing of it is left: no file on the host,
// no process, no connection of the server.
func TestBadHosts(t *testing.T) {
	l := newLab(t)
	small, fine := l.host("small", 1), l.host("fine", 2)
	odd, arm := l.host("odd", 3), l.host("arm", 4)
	small.size = "8m"
	odd.strange("riscv64")
	arm.strange("aarch64")
	for _, b := range []*box{small, fine, odd, arm} {
		b.boot()
	}
	l.start(l.bin)
	t.Cleanup(l.stop)
	other := filepath.Join(l.dir, "other")
	l.sh("ssh-keygen -q -t ed25519 -N '' -f %s", other)
	behind := 100
	jump := func(host, key string) string {
		behind--
		return fmt.Sprintf("{hostname: 10.99.99.%d, proxy_jump: {hostname: %s, user: root, identity_file: %s}}", behind,
			host, key)
	}
	said, code := l.apply("bad", small.addr, fmt.Sprintf("{hostname: %s, identity_file: %s}", fine.addr, other),
		"nowhere.invalid", l.net+".1.99",
		odd.addr, arm.addr, jump(fine.addr, l.key), jump(fine.addr, other), jump(l.net+".2.99", l.key),
		fmt.Sprintf("{hostname: %s, port: 23}", fine.addr))
	causes := []string{
		small.addr + ":22: no space for the agent: /var/lib/bireme/fleet has ",
		fine.addr + ":22: user root is not let in with key SHA256:",
		"nowhere.invalid:22: its name is not known",
		l.net + ".1.99:22: ",
		odd.addr + ":22 is Linux on riscv64: agents run on Linux on x86_64 or aarch64",
		arm.addr + ":22: no agent for arm64 machines here",
		"10.99.99.99:22 does not answer the jump host " + fine.addr + ":22: ",
		"jump host: " + fine.addr + ":22: user root is not let in",
		"jump host: " + l.net + ".2.99:22: ",
		fine.addr + ":23: it refuses connections: no SSH server listens there",
	}
	list := l.must("fleet")
	nodes := l.must("nodes")
	for _, want := range causes {
		for what, text := range map[string]string{"apply": said, "fleet": list, "nodes": nodes} {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not tell %q:\n%s", what, want, text)
			}
		}
	}
	if code != 1 || !strings.Contains(said, "10 hosts of 10 cannot be used yet") {
		t.Errorf("apply: status %d\n%s", code, said)
	}
	// Who submits a job for them is told why they will not do.
	if _, errs, code := l.bireme("sbatch", "-w", string(l.instance("bad", small.addr).Node), "--wrap",
		"true"); code != 1 || !strings.Contains(errs, "no space for the agent") {
		t.Errorf("sbatch does not tell the cause: status %d\n%s", code, errs)
	}
	l.must("fleet", "delete", "-y", "bad")
	for _, b := range []*box{small, fine, odd, arm} {
		if left := b.on("ls -A /var/lib/bireme; pgrep -f '[b]iremed |[b]ireme-'; true"); left != "" {
			t.Errorf("left on %s: %s", b.name, left)
		}
	}
	if out := l.must("fleet", "--json"); !strings.Contains(out, `"fleets": []`) {
		t.Errorf("left: %s", out)
	}
	l.eventually("no connection of the server is left", func() (bool, string) {
		out, _ := exec.Command("ss", "-Htnp", "( dport = :22 or dport = :23 )").CombinedOutput()
		return !strings.Contains(string(out), fmt.Sprintf("pid=%d,", l.server.Process.Pid)), string(out)
	})
}

// TestBadFiles: what is wrong with a configuration is told at once, with its place in the file, and no fleet is made.
func TestBadFiles(t *testing.T) {
	l := newLab(t)
	l.start(l.bin)
	t.Cleanup(l.stop)
	l.sh("ssh-keygen -q -t ed25519 -N secret -f %[1]s/locked; echo nonsense >%[1]s/nonsense; mkdir %[1]s/folder", l.dir)
	head := func(key string) string {
		return "type: fleet\nname: xx\nssh_config:\n  user: root\n  identity_file: " + key + "\n"
	}
	at := func(name string) string { return filepath.Join(l.dir, name) }
	for name, tc := range map[string]struct {
		text string
		code int
		want string
	}{
		"a key of the file": {
			"nmae: x\n" + head(l.key) + "  hosts: [a]\n", 2,
			"line 1, column 1: fleet.nmae: unknown key; did you mean name?",
		},
		"a key of a host": {
			head(l.key) + "  hosts: [{hostname: a, usr: b}]\n", 2,
			"fleet.ssh_config.hosts.0.usr: unknown key; did you mean user?",
		},
		"no hosts":     {head(l.key) + "  hosts: []\n", 2, "ssh_config.hosts: a fleet needs hosts"},
		"a host twice": {head(l.key) + "  hosts: [a, b, {hostname: a, port: 22}]\n", 6, "a:22 is listed twice"},
		"no such key": {head(at("none")) + "  hosts: [a]\n", 2, "identity_file: " + at("none") +
			": no such file or directory"},
		"a folder for a key": {head(at("folder")) + "  hosts: [a]\n", 2, "identity_file: " + at("folder") +
			": is a directory"},
		"nonsense for a key": {head(at("nonsense")) + "  hosts: [a]\n", 2, at("nonsense") + " is not a private key"},
		"the public key":     {head(l.key+".pub") + "  hosts: [a]\n", 2, l.key + ".pub is not a private key"},
		"a key with passphrase": {
			head(at("locked")) + "  hosts: [a]\n", 2,
			"the key has a passphrase; the server needs one without: ssh-keygen -p -N ''",
		},
		"blocks": {
			head(l.key) + "  hosts: [{hostname: a, blocks: 0}]\n", 2,
			"fleet.ssh_config.hosts.0.blocks: must be auto or a number from 1 on",
		},
		"a public network": {head(l.key) + "  network: 8.8.8.0/24\n  hosts: [a]\n", 2, "is not a private network"},
	} {
		file := at("bad.dstack.yml")
		if err := os.WriteFile(file, []byte(tc.text), 0o644); err != nil {
			t.Fatal(err)
		}
		if out, errs, code := l.bireme("apply", "-y", "-f", file); code != tc.code || !strings.Contains(errs, tc.want) {
			t.Errorf("%s: status %d, want %d with %q:\n%s%s", name, code, tc.code, tc.want, out, errs)
		}
	}
	// A key that its user may not read.
	file := at("mine.dstack.yml")
	if err := os.WriteFile(file, []byte(head(l.key)+"  hosts: [a]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := l.as("bireme-t1", "apply", "-y", "-f", file); code != 2 ||
		!strings.Contains(errs, l.key+": permission denied") {
		t.Errorf("a key that cannot be read: status %d\n%s", code, errs)
	}
	if out := l.must("fleet", "--json"); !strings.Contains(out, `"fleets": []`) {
		t.Errorf("left: %s", out)
	}
}

// TestHostKeyPolicies: strict takes what known_hosts has and nothing else, off takes everything; and a host is one node
// under whatever names.
func TestHostKeyPolicies(t *testing.T) {
	l := newLab(t)
	a, b := l.host("a", 1), l.host("b", 2)
	a.boot()
	b.boot()
	key := func(b *box) string {
		text, err := os.ReadFile(b.disk + ".hostkey.pub")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(strings.Fields(string(text))[:2], " ")
	}
	known := filepath.Join(l.dir, "known_hosts")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(known, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(a.addr + " " + key(b) + "\n")
	l.start(l.bin, "fleets.host_keys=strict", "fleets.known_hosts="+known)
	t.Cleanup(l.stop)
	said, code := l.apply("keys", a.addr, b.addr)
	for _, want := range []string{
		"the host key of " + a.addr + ":22 is SHA256:", "and " + known + " has another",
		"the host key of " + b.addr + ":22 is not known",
	} {
		if code != 1 || !strings.Contains(said, want) {
			t.Errorf("status %d, want %q:\n%s", code, want, said)
		}
	}
	write(a.addr + " " + key(a) + "\n" + b.addr + " " + key(b) + "\n")
	if said, code = l.apply("keys", a.addr, b.addr); code != 0 {
		t.Errorf("known keys: status %d\n%s", code, said)
	}

	// With off a changed key is no matter.
	l.stop()
	l.start(l.bin, "fleets.host_keys=off")
	l.sh("rm %[1]s.hostkey* && ssh-keygen -q -t ed25519 -N '' -f %[1]s.hostkey", b.disk)
	b.kill()
	l.await("it is out of reach", "keys", b, func(x client.FleetInstance) bool { return x.Status == "unreachable" })
	b.boot()
	l.await("the new key is taken", "keys", b, func(x client.FleetInstance) bool { return up(x) && x.HostKey == key(b) })

	// The same host by another name.
	name := "bireme-same.invalid"
	l.sh("cp /etc/hosts %[1]s/hosts && echo '%[2]s %[3]s' >>%[1]s/hosts", l.dir, a.addr, name)
	l.stop()
	l.hostsFile = filepath.Join(l.dir, "hosts")
	l.start(l.bin)
	if said, code = l.apply("twice", name); code != 1 ||
		!strings.Contains(said, fmt.Sprintf("%s:22 has address %s:22, as does %s:22 of fleet keys: a host can be in "+
			"one fleet only", name, a.addr, a.addr)) {
		t.Errorf("the same host: status %d\n%s", code, said)
	}
	if got := a.on("ls /var/lib/bireme/fleet"); strings.Contains(got, "twice") {
		t.Errorf("something of it is on the host: %s", got)
	}
	l.must("fleet", "delete", "-y", "twice")
	l.must("fleet", "delete", "-y", "keys")
}

// TestBareHost: a host that joins and cannot be split says so and takes no jobs. One without a container engine is a
// node for plain jobs; a run that wants a container there says what is missing, and where.
func TestBareHost(t *testing.T) {
	l := newLab(t)
	b := l.host("bare", 1)
	b.more = "mount -t tmpfs none /run; mkdir -p /run/sshd;"
	b.boot()
	l.start(l.bin, "health.engine=warn", "health.every=1s")
	t.Cleanup(l.stop)
	said, code := l.apply("bare", fmt.Sprintf("{hostname: %s, blocks: 12345}", b.addr))
	x := l.instance("bare", b.addr)
	want := fmt.Sprintf("blocks: %d CPUs cannot be divided into 12345 equal blocks", x.Hardware.CPUs)
	if code != 1 || !strings.Contains(said, want) || !strings.Contains(l.must("fleet"), want) ||
		!strings.Contains(l.must("nodes"), want) {
		t.Errorf("blocks that do not divide: status %d\n%s", code, said)
	}
	if said, code = l.apply("bare", b.addr); code != 0 {
		t.Fatalf("apply: status %d\n%s", code, said)
	}
	l.await("the missing engine is told", "bare", b, func(x client.FleetInstance) bool {
		return up(x) && strings.Contains(x.Note, "container engine")
	})
	file := filepath.Join(l.dir, "box.dstack.yml")
	if err := os.WriteFile(file, []byte("type: task\nname: boxed\nimage: busybox\ncommands: [echo hello]\n"),
		0o644); err != nil {
		t.Fatal(err)
	}
	const lacks = "no container engine listens on /var/run/docker.sock"
	if out, errs, code := l.as("bireme-t1", "apply", "-y", "-f", file); code == 0 || !strings.Contains(errs, lacks) {
		t.Errorf("a container without an engine: status %d\n%s%s", code, out, errs)
	}
	if out := l.must("why", "1"); !strings.Contains(out, lacks) {
		t.Errorf("why does not tell:\n%s", out)
	}
	id := l.sbatch("--wrap", "true")
	l.eventually("a plain job runs", func() (bool, string) {
		j := l.job(id)
		return j.State == core.Completed, j.State.String()
	})
	l.must("fleet", "delete", "-y", "bare")
}
