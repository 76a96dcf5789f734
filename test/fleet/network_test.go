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

// TestNetworkAndVariables: hosts reach each other by their addresses in the fleet's network, agents have the fleet's
// variables, jobs do not; both change in place, under a running job.
func TestNetworkAndVariables(t *testing.T) {
	l := newLab(t)
	a, b := l.host("a", 1), l.host("b", 2)
	for i, x := range []*box{a, b} {
		x.boot()
		l.sh("ip -n %s addr add 10.77.0.%d/24 dev lo", x.ns, 11+i)
	}
	l.sh("ip -n %s addr add 10.78.0.11/24 dev lo", a.ns)
	l.start(l.bin)
	t.Cleanup(l.stop)
	head := func(env, network string) string {
		return fmt.Sprintf("type: fleet\nname: net\nenv: %s\nssh_config:\n  user: root\n  identity_file: %s\n"+
			"  network: %s\n", env, l.key, network)
	}
	said, code := l.applyText("net", head("[HTTPS_PROXY=http://u:secret@p, 'ODD=it''s $HOME']", "10.77.0.99/24"),
		a.addr, b.addr)
	if code != 0 {
		t.Fatalf("apply: status %d\n%s", code, said)
	}
	environ := func(x *box) string {
		return x.on(
			`tr '\0' '\n' </proc/$(pgrep -f '[b]iremed agent --replace')/environ | grep -E '^(HTTPS_PROXY|ODD)=' | sort`)
	}
	for i, x := range []*box{a, b} {
		n, err := l.client().Node(t.Context(), l.instance("net", x.addr).Node)
		if err != nil || n.Host.Addr != fmt.Sprintf("10.77.0.%d", 11+i) {
			t.Errorf("%s is reached by %q: %v", x.name, n.Host.Addr, err)
		}
		if got := environ(x); got != "HTTPS_PROXY=http://u:secret@p\nODD=it's $HOME" {
			t.Errorf("the agent of %s has %q", x.name, got)
		}
		if got := x.on("stat -c %a /var/lib/bireme/fleet/net-*/env"); got != "600" {
			t.Errorf("its variables can be read: %s", got)
		}
	}
	if out := l.must("fleet", "get", "net", "--json"); strings.Contains(out, "secret") ||
		!strings.Contains(out, "HTTPS_PROXY") {
		t.Errorf("the fleet shows:\n%s", out)
	}
	if said, code = l.applyText("net", head("[HTTPS_PROXY=http://u:secret@p, 'ODD=it''s $HOME']", "10.77.0.0/24"),
		a.addr, b.addr); code != 0 || !strings.Contains(said, "no changes") {
		t.Errorf("the same again: status %d\n%s", code, said)
	}

	// Other variables and another network, while a job runs; one of the hosts is not in it.
	mark := filepath.Join(a.disk, "mark")
	id := l.sbatch("-w", string(l.instance("net", a.addr).Node), "-o", "/var/lib/bireme/out", "--wrap",
		"while [ ! -e /var/lib/bireme/mark ]; do sleep 0.1; done; echo proxy=$HTTPS_PROXY")
	l.eventually("the job runs", func() (bool, string) {
		j := l.job(id)
		return j.State == core.Running, j.State.String()
	})
	said, code = l.applyText("net", head("{ODD: new}", "10.78.0.0/24"), a.addr, b.addr)
	if code != 1 || !strings.Contains(said, b.addr+":22: has no address in the fleet's network 10.78.0.0/24") ||
		!strings.Contains(said, "network: 10.78.0.0/24") || !strings.Contains(said, "env: ODD") {
		t.Errorf("apply: status %d\n%s", code, said)
	}
	l.await("its agent runs anew", "net", a, func(x client.FleetInstance) bool {
		return x.Status == "busy" && x.Cause == ""
	})
	l.eventually("it has the new variables", func() (bool, string) { got := environ(a); return got == "ODD=new", got })
	if n, err := l.client().Node(t.Context(), l.instance("net", a.addr).Node); err != nil || n.Host.Addr != "10.78.0.11" {
		t.Errorf("it is reached by %q: %v", n.Host.Addr, err)
	}
	if err := os.WriteFile(mark, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l.eventually("the job ends well", func() (bool, string) {
		j := l.job(id)
		return j.State == core.Completed, j.State.String()
	})
	if out, err := os.ReadFile(filepath.Join(a.disk, "out")); err != nil || string(out) != "proxy=\n" {
		t.Errorf("the job had %q: %v", out, err)
	}
	l.must("fleet", "delete", "-y", "net")
	if files, err := filepath.Glob(filepath.Join(l.dir, "srv", "db", "*")); err != nil || len(files) == 0 {
		t.Errorf("no database: %v %v", files, err)
	} else {
		for _, name := range files {
			if text, err := os.ReadFile(name); err != nil || strings.Contains(string(text), "u:secret@p") {
				t.Errorf("%s holds a variable in the clear (%v)", name, err)
			}
		}
	}
}
