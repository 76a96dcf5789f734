//go:build e2e

package site

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Settings that name what is not there are judged alike by `biremed config check`, reconfigure and a start: a QOS that
// does not exist is refused by all three, nodes that have not joined are told of by all three.
func TestSettingsAreJudgedAlike(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	dir := s.folder("srv", "root")
	file := filepath.Join(s.dir, "config.yml")
	write := func(qos string) {
		t.Helper()
		text := "dir: " + dir + "\nserver: {listen: \"\", agent_listen: \"\"}\npartitions:\n" +
			"  - {name: main, nodes: ALL, default: yes}\n" +
			"  - {name: gpu, nodes: \"g[1-2]\", qos: \"" + qos + "\"}\n"
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	check := func() result { return s.as("root", "", "biremed", "config", "check", "-c", file) }
	const missing, unknown = "g[1-2]: neither under nodes: nor joined", `there is no QOS "gold"`

	write("")
	d := s.server("server", dir, "root", "-c", file)
	if r := check(); r.code != 0 || !strings.Contains(r.err, missing) {
		t.Errorf("check of nodes that are not there: %+v", r)
	}
	if r := s.as("root", socket(dir), "bireme", "reconfigure"); r.code != 0 || !strings.Contains(r.err, missing) {
		t.Errorf("reconfigure with nodes that are not there: %+v", r)
	}
	if !strings.Contains(d.said(), missing) {
		t.Errorf("the start did not tell of nodes that are not there:\n%s", d.said())
	}

	write("gold")
	for what, r := range map[string]result{
		"check":       check(),
		"reconfigure": s.as("root", socket(dir), "bireme", "reconfigure"),
	} {
		if r.code == 0 || !strings.Contains(r.err, unknown) {
			t.Errorf("%s of a QOS that is not there: %+v", what, r)
		}
	}
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	d.wait()
	if r := check(); r.code != 0 || !strings.Contains(r.err, `QOS "gold" cannot be checked`) {
		t.Errorf("check without a server: %+v", r)
	}
	again := s.serverStarts("again", dir, "root", "-c", file)
	if code := again.wait(); code == 0 || !strings.Contains(again.said(), unknown) {
		t.Errorf("a start with a QOS that is not there: status %d\n%s", code, again.said())
	}

	write("")
	s.server("third", dir, "root", "-c", file)
	s.must("root", socket(dir), "bireme", "sacctmgr", "-i", "add", "qos", "gold")
	write("gold")
	if r := check(); r.code != 0 {
		t.Errorf("check of a QOS that is there: %+v", r)
	}
	s.must("root", socket(dir), "bireme", "reconfigure")
}
