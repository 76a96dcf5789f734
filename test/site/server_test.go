//go:build e2e

package site

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A server that is an ordinary system user: jobs run as those who submit them, root of its machine is administrator,
// and nobody else is.
func TestServerWithoutRoot(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	dir, door := s.folder("srv", serverUser), freePort(t)
	d := s.server("server", dir, serverUser, "--agent-listen", door)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		key, value, _ := strings.Cut(line, ":")
		switch value = strings.TrimSpace(value); key {
		case "Uid":
			if c := credential(t, serverUser); strings.Fields(value)[1] != fmt.Sprint(c.Uid) {
				t.Errorf("the server's uids are %s", value)
			}
		case "CapEff", "CapPrm":
			if strings.Trim(value, "0") != "" {
				t.Errorf("the server has capabilities: %s", line)
			}
		}
	}
	s.agent(dir, door, "n1")

	for _, name := range []string{"bireme-t1", "bireme-t2"} {
		out := filepath.Join(s.folder("work-"+name, name), "out")
		id := strings.TrimSpace(s.must(name, socket(dir), "bireme", "sbatch", "--parsable", "-D", "/tmp", "-o", out,
			"--wrap", "id -un; id -gn"))
		s.completed(dir, id)
		text, err := os.ReadFile(out)
		if err != nil || string(text) != name+"\n"+name+"\n" {
			t.Errorf("the job of %s ran as %q (%v)", name, text, err)
		}
		if st, err := os.Stat(out); err != nil || st.Sys().(*syscall.Stat_t).Uid != credential(t, name).Uid {
			t.Errorf("the output of %s: %v, %v", name, st, err)
		}
	}

	if r := s.as("bireme-t1", socket(dir), "bireme", "drain", "n1", "--reason", "mine"); r.code == 0 {
		t.Errorf("an ordinary user drained a node: %s", r.out)
	}
	s.must("root", socket(dir), "bireme", "drain", "n1", "--reason", "maintenance")
	s.must("root", socket(dir), "bireme", "resume", "n1")
	// An operator who may act as the server's account has the server's files, and so its rights.
	s.must(serverUser, socket(dir), "bireme", "drain", "n1", "--reason", "maintenance")
}

// A server that is told to use a directory that is somebody else's says whose it is, and changes nothing.
func TestForeignFolder(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	dir := s.folder("srv", "root")
	if err := os.WriteFile(filepath.Join(dir, "standalone.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, words := range [][]string{
		{"biremed", "server", "--dir", dir, "--listen", "", "--agent-listen", ""},
		{"biremed", "standalone", "--dir", dir, "--detach"},
		{"biremed", "standalone", "--dir", filepath.Join(dir, "new"), "--detach"},
	} {
		r := s.as("bireme-t1", "", words...)
		if r.code == 0 || !strings.Contains(r.err, dir) || !strings.Contains(r.err, "you are bireme-t1") {
			t.Errorf("%s: exit status %d\n%s%s", strings.Join(words, " "), r.code, r.out, r.err)
		}
	}
	list, err := os.ReadDir(dir)
	if err != nil || len(list) != 1 {
		t.Errorf("what is in the folder now: %v, %v", list, err)
	}
}
