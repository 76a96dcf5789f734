package jobs

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/core"
)

func TestPortsOfTheUser(t *testing.T) {
	t.Parallel()
	got, err := parsePorts([]string{"8080", "18090:8090", "*:9000"})
	want := []core.Port{{Local: 8080, Container: 8080}, {Local: 18090, Container: 8090}, {Container: 9000}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	for _, bad := range []string{"", "x", "0", "65536", "1:", ":1", "1:2:3", "8080:*", "-1"} {
		if got, err := parsePorts([]string{bad}); err == nil {
			t.Errorf("%q was taken for %v", bad, got)
		}
	}
}

// A port that somebody else has is told of by number, with what would work; any free one is found for those who do not
// mind; what the user names goes before what the configuration says.
func TestPortsOfThisMachine(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	busy := int32(l.Addr().(*net.TCPAddr).Port)
	_, err = chooseForwards([]core.Port{{Local: busy, Container: 8080}}, nil, "localhost")
	text := strconv.Itoa(int(busy))
	if core.CodeOf(err) != core.Conflict || !strings.Contains(err.Error(), "port "+text+" of this machine") ||
		!strings.Contains(err.Error(), "address already in use") || !strings.Contains(err.Error(), "-p '*:8080'") {
		t.Errorf("%v", err)
	}
	got, err := chooseForwards([]core.Port{{Local: busy, Container: 8080}, {Container: 8081}},
		[]core.Port{{Container: 8080}, {Container: 9000}}, "localhost")
	if err != nil || len(got) != 3 {
		t.Fatalf("%v %v", got, err)
	}
	seen := map[int]bool{}
	for i, remote := range []int{8080, 8081, 9000} {
		if got[i].remote != remote || got[i].local == 0 || seen[got[i].local] {
			t.Errorf("%v", got)
		}
		seen[got[i].local] = true
	}
}

// One line is added to the user's file, once and at its beginning; all else is in a file of ours and goes with the
// process that put it there.
func TestSSHConfig(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	real := filepath.Join(dir, "dotfiles")
	c := &sshConfig{own: filepath.Join(dir, "conf", "ssh", "config"), user: filepath.Join(dir, ".ssh", "config")}
	const before = "Host work\n    User ann\n"
	if err := os.Mkdir(filepath.Join(dir, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(real, []byte(before), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, c.user); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := c.add("Host train\n    User root\n"); err != nil {
			t.Fatal(err)
		}
	}
	read := func(path string) string {
		t.Helper()
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if got, want := read(c.user), `Include "`+c.own+"\"\n"+before; got != want {
		t.Errorf("the user's file is %q", got)
	}
	if st, err := os.Lstat(c.user); err != nil || st.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the user's link is gone: %v %v", st, err)
	}
	if st, err := os.Stat(real); err != nil || st.Mode().Perm() != 0o644 {
		t.Errorf("%v %v", st, err)
	}
	mine := blockMark + strconv.Itoa(os.Getpid()) + "\nHost train\n    User root\n" + blockEnd
	if got := read(c.own); got != mine {
		t.Errorf("our file is %q", got)
	}
	others := blockMark + "1\nHost other\n" + blockEnd // process 1 lives
	gone := blockMark + "2147483646\nHost gone\n" + blockEnd
	if err := os.WriteFile(c.own, []byte(gone+mine+others), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.remove(); err != nil {
		t.Fatal(err)
	}
	if got := read(c.own); got != others {
		t.Errorf("what is left is %q", got)
	}
	if got := read(c.user); !strings.HasSuffix(got, before) {
		t.Errorf("the user's file is %q", got)
	}
}
