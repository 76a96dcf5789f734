package emulate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNames(t *testing.T) {
	t.Parallel()
	for n, want := range map[int][2]string{1: {"n1", "n1"}, 9: {"n1", "n9"}, 12: {"n01", "n12"}, 100: {"n001", "n100"}} {
		got := Names("n", n)
		if len(got) != n || got[0] != want[0] || got[n-1] != want[1] {
			t.Errorf("%d nodes are %s to %s, want %v", n, got[0], got[n-1], want)
		}
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	for i, want := range map[int]string{
		1: "127.0.1.1", 8: "127.0.1.8", 254: "127.0.1.254", 255: "127.0.2.1",
		1000: "127.0.4.238",
	} {
		if got := Addr(i); got != want {
			t.Errorf("node %d has %s, want %s", i, got, want)
		}
	}
	seen := map[string]bool{}
	for i := range 70000 {
		a := Addr(i + 1)
		if seen[a] {
			t.Fatalf("node %d has the address %s of another", i+1, a)
		}
		seen[a] = true
	}
}

func TestHostsFileNamesAllNodes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, err := WriteHosts(dir, []byte("127.0.0.1 localhost\n\n"),
		[]Node{{Name: "n1", Addr: "127.0.1.1"}, {Name: "vm"}, {Name: "n2", Addr: "127.0.1.2"}})
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := "127.0.0.1 localhost\n\n# nodes of the standalone cluster\n127.0.1.1\tn1\n127.0.1.2\tn2\n"
	if diff := cmp.Diff(want, string(b)); diff != "" {
		t.Error(diff)
	}
}

func TestBootID(t *testing.T) {
	t.Parallel()
	n := Node{Name: "n1", Dir: t.TempDir()}
	boot := func() string {
		t.Helper()
		id, err := n.BootID()
		if err != nil || len(id) != 36 {
			t.Fatalf("boot id %q, %v", id, err)
		}
		return id
	}
	if n.Booted() {
		t.Error("booted before its first boot")
	}
	first := boot()
	if again := boot(); again != first {
		t.Errorf("an agent that starts again has another boot id: %s, then %s", first, again)
	}
	if !n.Booted() {
		t.Error("not booted")
	}
	if err := n.forgetBoot(); err != nil {
		t.Fatal(err)
	}
	second := boot()
	if second == first {
		t.Error("a stopped node has its old boot id")
	}
	// The machine itself was restarted.
	if err := os.WriteFile(filepath.Join(n.Dir, bootFile),
		[]byte(strings.Replace(second, "-", "-", 1)+" another-machine-boot\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if boot() == second {
		t.Error("the boot id survived a restart of the machine")
	}
}

func TestStopOfNodesThatNeverRan(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "n1"), 0o755); err != nil {
		t.Fatal(err)
	}
	nodes, err := Found(dir)
	if err != nil || len(nodes) != 1 || nodes[0].Name != "n1" {
		t.Fatalf("found %v, %v", nodes, err)
	}
	if err := Stop(t.Context(), nodes, "/nonexistent"); err != nil {
		t.Error(err)
	}
	if none, err := Found(filepath.Join(dir, "nothing")); err != nil || none != nil {
		t.Errorf("found %v, %v", none, err)
	}
}
