//go:build e2e

package site

import (
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	_ "modernc.org/sqlite"

	"bireme.dev/bireme/internal/core"
)

// restored is a site whose database is put back, as docs/backup.md says.
type restored struct {
	*site
	dir, work string
	args      []string
	d         *daemon
	starts    int
	copy, put func()
}

func (r *restored) start() {
	r.t.Helper()
	r.starts++
	r.d = r.server(fmt.Sprintf("server-%d", r.starts), r.dir, "root", r.args...)
	if r.starts == 1 {
		r.agent(r.dir, r.args[1], "n1")
	}
	r.eventually("node n1 is connected", func() (bool, string) {
		n, err := r.client(r.dir).Node(r.t.Context(), "n1")
		return err == nil && n.Connected, fmt.Sprint(err)
	})
}

// putBack stops the server and puts the copy back.
func (r *restored) putBack() {
	r.t.Helper()
	if err := r.d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		r.t.Fatal(err)
	}
	r.d.wait()
	r.put()
}

// job submits a job that runs until a file is there, and gives its id when it runs. It writes a line when it starts.
func (r *restored) job(name string) int {
	r.t.Helper()
	script := fmt.Sprintf("echo $$ >>%[1]s/%[2]s; until [ -e %[1]s/%[2]s.end ]; do sleep 0.05; done", r.work, name)
	out := r.must("bireme-t1", socket(r.dir), "bireme", "sbatch", "--parsable", "--mem=16M", "-D", "/tmp", "-o",
		"/dev/null", "--wrap", script)
	id, err := strconv.Atoi(strings.TrimSpace(out))
	if err != nil {
		r.t.Fatal(err)
	}
	r.eventually("job "+name+" runs", func() (bool, string) { return len(r.pids(name)) == 1, fmt.Sprint(r.pids(name)) })
	return id
}

// pids are the processes that a job has been, one for each start.
func (r *restored) pids(name string) []string {
	b, err := os.ReadFile(filepath.Join(r.work, name))
	if err != nil && !os.IsNotExist(err) {
		r.t.Fatal(err)
	}
	return strings.Fields(string(b))
}

func (r *restored) gone(name string) {
	r.t.Helper()
	pid := r.pids(name)[0]
	r.eventually("job "+name+", which the database does not know, is gone", func() (bool, string) {
		_, err := os.Stat("/proc/" + pid)
		return os.IsNotExist(err), "process " + pid + " is there"
	})
}

func (r *restored) state(id int, want core.JobState) {
	r.t.Helper()
	r.eventually(fmt.Sprintf("job %d is %v", id, want), func() (bool, string) {
		list, err := r.client(r.dir).Job(r.t.Context(), fmt.Sprint(id))
		if err != nil || len(list.Jobs) != 1 {
			return false, fmt.Sprint(err)
		}
		return list.Jobs[0].State == want, fmt.Sprint(list.Jobs[0].State)
	})
}

func (r *restored) forget() {
	r.t.Helper()
	if err := os.Remove(filepath.Join(r.dir, "job-ids")); err != nil {
		r.t.Fatal(err)
	}
}

// check puts an older copy of the database back three times: in the server's directory, without what that directory
// knew but with a node that runs a later job, and with the operator's word alone. No id comes twice; a job that the
// copy has as running and that runs continues; one that came later ends.
func (r *restored) check() {
	t := r.t
	r.start()
	old := r.job("old")
	r.copy()
	later := r.job("later")

	r.putBack()
	r.start()
	if said := r.d.said(); !strings.Contains(said, "a copy was put back") {
		t.Errorf("the server did not find out by itself that its database is older:\n%s", said)
	}
	r.gone("later")
	r.state(old, core.Running)
	second := r.job("second")
	if second <= later {
		t.Errorf("after job %d and a restore a new job got the id %d", later, second)
	}

	r.putBack()
	r.forget()
	r.start()
	r.gone("second")
	third := r.job("third")
	if third <= second {
		t.Errorf("node n1 ran job %d, and a new job got the id %d", second, third)
	}
	if n := len(r.pids("old")); n != 1 {
		t.Errorf("job %d, which ran all the time, was started %d times", old, n)
	}
	if err := os.WriteFile(filepath.Join(r.work, "old.end"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	r.state(old, core.Completed)

	r.putBack()
	r.forget()
	raise := append([]string{"biremed", "next-job-id", "--dir", r.dir}, r.args[2:]...)
	r.eventually("next-job-id shows the copy's", func() (bool, string) { // once the lease in a copy this young has ended
		x := r.as("root", "", raise...)
		return x.out == fmt.Sprintf("the next job gets id %d\n", old+1), x.out + x.err
	})
	if low := r.as("root", "", append(raise, fmt.Sprint(old))...); low.code == 0 ||
		!strings.Contains(low.err, "never lowered") {
		t.Errorf("lowered: %d %s%s", low.code, low.out, low.err)
	}
	next := old + 5_000_000 // more than nodes are believed
	r.must("root", "", append(raise, fmt.Sprint(next))...)
	r.start()
	if busy := r.as("root", "", append(raise, fmt.Sprint(next+1))...); busy.code == 0 {
		t.Errorf("raised while a server leads: %s", busy.out)
	}
	r.gone("third")
	if id := r.job("fourth"); id != next {
		t.Errorf("the first job after next-job-id %d got %d", next, id)
	}
	// It ended after the copy was made; the copy has it as running, and no node does.
	r.eventually("job old runs again", func() (bool, string) { return len(r.pids("old")) == 2, fmt.Sprint(r.pids("old")) })
	r.state(old, core.Completed)
}

func newRestored(t *testing.T, set ...string) *restored {
	s := newSite(t)
	return &restored{
		site: s, dir: s.folder("srv", "root"), work: s.folder("work", "bireme-t1"),
		args: append([]string{"--agent-listen", freePort(t)}, set...),
	}
}

func TestRestoreSQLite(t *testing.T) {
	t.Parallel()
	r := newRestored(t)
	file, kept := filepath.Join(r.dir, "db", "bireme.db"), filepath.Join(r.site.dir, "copy.db")
	r.copy = func() {
		db, err := sql.Open("sqlite", file)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.ExecContext(t.Context(), "VACUUM INTO '"+kept+"'"); err != nil {
			t.Fatal(err)
		}
	}
	r.put = func() {
		for _, end := range []string{"", "-wal", "-shm"} {
			if err := os.Remove(file + end); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
		}
		data, err := os.ReadFile(kept)
		if err == nil {
			err = os.WriteFile(file, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	r.check()
}

func TestRestorePostgres(t *testing.T) {
	t.Parallel()
	store := database(t)
	r := newRestored(t, "--set", "server.store="+store)
	kept := filepath.Join(r.site.dir, "copy.dump")
	run := func(words ...string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), words[0], words[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", words[0], err, out)
		}
	}
	r.copy = func() { run("pg_dump", "--format=custom", "--file="+kept, "--dbname="+store) }
	r.put = func() { run("pg_restore", "--clean", "--if-exists", "--single-transaction", "--dbname="+store, kept) }
	r.check()
}
