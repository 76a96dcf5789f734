//go:build e2e

package site

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/client"
)

// A cluster is copied while it runs and put back elsewhere: jobs, tokens, users and certificates are as they were, and
// its node continues with the new server. Half a copy, one that would overwrite, and one of another
// engine change nothing.
func TestBackup(t *testing.T) {
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		testBackup(t, "", "")
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		testBackup(t, database(t), database(t))
	})
}

func testBackup(t *testing.T, before, after string) {
	s := newSite(t)
	old, other := s.folder("srv", "root"), filepath.Join(s.dir, "other")
	door := freePort(t)
	settings := func(name, dir, store string) string {
		text := "cluster: atlas\ndir: " + dir + "\nserver: {listen: \"\", " +
			"agent_listen: \"" + door + "\", store: \"" + store + "\"}\n"
		file := filepath.Join(s.dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	first, second := settings("first.yml", old, before), settings("second.yml", other, after)
	refused := func(want string, words ...string) {
		t.Helper()
		if r := s.as("root", "", words...); r.code == 0 || !strings.Contains(r.err, want) {
			t.Errorf("%v: status %d, %q; want one that says %q", words, r.code, r.err, want)
		}
	}

	d := s.server("server", old, "root", "-c", first)
	s.agent(old, door, "n1")
	look := func(dir string) string {
		var b strings.Builder
		for _, words := range [][]string{
			{"sacct", "-nPX", "-o", "jobid,user,state,exitcode,nodelist"},
			{"sacctmgr", "-nP", "show", "assoc", "format=account,user"},
			{"token", "list", "--json"},
		} {
			b.WriteString(s.must("root", socket(dir), append([]string{"bireme"}, words...)...))
		}
		ca, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
		if err != nil {
			t.Fatal(err)
		}
		return b.String() + string(ca)
	}
	out := s.must(
		"bireme-t1",
		socket(old),
		"bireme",
		"sbatch",
		"--parsable",
		"-D",
		"/tmp",
		"-o",
		"/dev/null",
		"--wrap",
		"exit 3",
	)
	id := strings.TrimSpace(out)
	s.eventually("job "+id+" has ended", func() (bool, string) {
		got := s.must("root", socket(old), "bireme", "sacct", "-nPX", "-j", id, "-o", "state")
		return strings.TrimSpace(got) == "FAILED", got
	})
	s.must("root", socket(old), "bireme", "sacctmgr", "-i", "add", "account", "physics")
	secret := strings.TrimSpace(s.must("bireme-t1", socket(old), "bireme", "token", "create", "--name", "laptop"))
	held := strings.TrimSpace(
		s.must("bireme-t1", socket(old), "bireme", "sbatch", "--parsable", "-H", "-D", "/tmp", "-o",
			"/dev/null", "--wrap", "true"),
	)

	file := filepath.Join(s.dir, "atlas.backup")
	s.must("root", "", "biremed", "backup", "-c", first, "--logs", file)
	was := look(old)
	refused("is there already", "biremed", "backup", "-c", first, file)
	refused("is already running", "biremed", "restore", "-c", first, "--force", file)
	if got := s.must("root", "", "biremed", "restore", "--list", file); !strings.Contains(got, "cluster atlas") {
		t.Errorf("the list of a backup: %q", got)
	}
	if got := s.must("root", "", "biremed", "doctor", "-c", first, "--agent-dir", s.nodeDir("n1")); !strings.Contains(got,
		"1 connected, 0 not") ||
		strings.Contains(got, "fail") {
		t.Errorf("the doctor of a cluster that is well:\n%s", got)
	}
	if err := d.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	d.wait()
	if r := s.as("root", "", "biremed", "doctor", "-c", first, "--agent-dir", s.nodeDir("n1")); r.code != 1 ||
		!strings.Contains(r.out, "systemctl start biremed-server") {
		t.Errorf("the doctor of a stopped server: status %d\n%s", r.code, r.out)
	}

	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	half := filepath.Join(s.dir, "half.backup")
	if err := os.WriteFile(half, whole[:len(whole)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	refused("is no whole backup", "biremed", "restore", "-c", second, half)
	if _, err := os.Stat(other); err == nil {
		t.Error("half a backup left something")
	}
	s.must("root", "", "biremed", "restore", "-c", second, "--next-job-id", "500", file)
	refused("already", "biremed", "restore", "-c", second, file)

	s.server("restored", other, "root", "-c", second)
	s.eventually("node n1 continues with the restored server", func() (bool, string) {
		n, err := s.client(other).Node(t.Context(), "n1")
		if err != nil {
			return false, err.Error()
		}
		return n.Connected && n.State == "IDLE", n.State
	})
	if is := look(other); is != was {
		t.Errorf("after the restore:\n%s\nbefore:\n%s", is, was)
	}
	got := s.must("bireme-t1", socket(other), "bireme", "squeue", "-h", "-j", held, "-o", "%i %u %r")
	if strings.TrimSpace(got) != held+" bireme-t1 JobHeldUser" {
		t.Errorf("the held job is %q", got)
	}
	c, err := client.New(client.Settings{Servers: []string{socket(other)}, Token: secret})
	if err != nil {
		t.Fatal(err)
	}
	if me, err := c.Whoami(t.Context()); err != nil || me.User != "bireme-t1" {
		t.Errorf("the token acts as %+v, %v", me, err)
	}
	next := s.must(
		"bireme-t1",
		socket(other),
		"bireme",
		"sbatch",
		"--parsable",
		"-D",
		"/tmp",
		"-o",
		"/dev/null",
		"--wrap",
		"true",
	)
	if strings.TrimSpace(next) != "500" {
		t.Errorf("the next job got id %s", next)
	}
	s.completed(other, "500")
}
