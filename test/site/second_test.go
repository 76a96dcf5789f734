//go:build e2e

package site

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// works proves that a server is the one that leads: what it is told is committed.
func (s *site) works(d *daemon, dir string) {
	s.t.Helper()
	if !d.alive() {
		s.t.Fatalf("the first server ended:\n%s", d.said())
	}
	for range 2 { // each is a commit, which a stale epoch would refuse
		s.must("root", socket(dir), "bireme", "sacctmgr", "-i", "add", "account", fmt.Sprintf("a%d", rand.Uint32()))
	}
	if said := d.said(); strings.Contains(said, "leadership lost") || strings.Contains(said, "stale") {
		s.t.Errorf("the first server was disturbed:\n%s", said)
	}
}

// refused wants a newcomer to end by itself and to say why.
func (s *site) refused(d *daemon, wants ...string) {
	s.t.Helper()
	code, said := d.wait(), d.said()
	if code == 0 {
		s.t.Errorf("the second server ended with status 0:\n%s", said)
	}
	for _, want := range wants {
		if !strings.Contains(said, want) {
			s.t.Errorf("the second server did not say %q:\n%s", want, said)
		}
	}
	if strings.Contains(said, "msg=leading") {
		s.t.Errorf("the second server took the lead:\n%s", said)
	}
}

// A second server beside one that runs finds that out before it takes anything: it ends, and the first continues.
func TestSecondServerSQLite(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	dir, other, door := s.folder("srv", serverUser), s.folder("other", serverUser), freePort(t)
	first := s.server("first", dir, serverUser, "--agent-listen", door)

	s.refused(s.serverStarts("same", dir, serverUser, "--agent-listen", door), "running in "+dir)
	// that user's links would have root write anywhere
	s.refused(s.serverStarts("root", dir, "root", "--agent-listen", ""), "not safe for root")
	s.works(first, dir)
	s.refused(s.start("standalone", serverUser, nil, "standalone", "--dir", dir), "running in "+dir)
	s.works(first, dir)
	store := "server.store=sqlite:" + filepath.Join(dir, "db", "bireme.db")
	s.refused(s.serverStarts("store", other, serverUser, "--agent-listen", "", "--set", store), "another server uses")
	s.works(first, dir)
	s.refused(s.serverStarts("port", other, serverUser, "--agent-listen", door), "server.agent_listen")
	s.refused(s.serverStarts("socket", other, serverUser, "--agent-listen", "", "--set", "server.socket="+
		filepath.Join(dir, "bireme.sock")), "left alone")
	s.works(first, dir)
}

// Servers that share a PostgreSQL: one in the directory of another is refused, also under the other's id; one with a
// directory of its own waits, says so, and leads when the first has ended.
func TestSecondServerPostgres(t *testing.T) {
	t.Parallel()
	store := "server.store=" + database(t)
	s := newSite(t)
	dir, other := s.folder("srv", "root"), s.folder("other", "root") // the database's socket is for root
	args := []string{"--set", store, "--set", "server.id=main", "--set", "server.seal_key=" +
		filepath.Join(s.dir, "seal.key"), "--agent-listen", ""}
	first := s.server("first", dir, "root", args...)

	s.refused(s.serverStarts("same", dir, "root", args...), "running in "+dir)
	s.works(first, dir)
	s.refused(s.serverStarts("keyless", other, "root", "--set", store, "--agent-listen", ""), "server.seal_key")
	second := s.serverStarts("second", other, "root", args...)
	s.eventually("the second server says that it waits", func() (bool, string) {
		said := second.said()
		return strings.Contains(said, "another server leads") && strings.Contains(said, "main:"+dir), said
	})
	s.works(first, dir)
	if !second.alive() {
		t.Fatalf("the second server ended:\n%s", second.said())
	}
	if err := first.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := first.wait(); code != 0 {
		t.Errorf("the first server ended with %d:\n%s", code, first.said())
	}
	s.eventually("the second server leads", func() (bool, string) {
		_, err := s.client(other).Nodes(context.Background())
		return err == nil, second.said()
	})
	s.works(second, other)
}
