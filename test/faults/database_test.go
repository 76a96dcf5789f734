//go:build e2e

package faults

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/test/cluster"
)

// database is a PostgreSQL of a test's own, to be stopped and started.
type database struct {
	t    *testing.T
	bin  string
	dir  string
	cred *syscall.Credential
}

func newDatabase(t *testing.T) *database {
	t.Helper()
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil || len(found) == 0 {
		t.Skip("PostgreSQL is not installed")
	}
	slices.Sort(found)
	u, err := user.Lookup("postgres")
	if err != nil {
		t.Skip("there is no user postgres to run the database as")
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	dir, err := os.MkdirTemp("/tmp", "bt-pg-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatal(err)
	}
	d := &database{t: t, bin: found[len(found)-1], dir: dir, cred: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	d.run("initdb", "-D", d.data(), "-U", "postgres", "-A", "trust", "--locale=C", "-E", "UTF8", "--no-sync")
	t.Cleanup(func() {
		if _, err := os.Stat(filepath.Join(d.data(), "postmaster.pid")); err == nil {
			d.stop()
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	d.start()
	return d
}

func (d *database) data() string { return filepath.Join(d.dir, "data") }

func (d *database) url() string {
	return fmt.Sprintf("postgres:///postgres?host=%s&user=postgres&sslmode=disable", d.dir)
}

func (d *database) run(name string, args ...string) {
	d.t.Helper()
	cmd := exec.Command(filepath.Join(d.bin, name), args...)
	cmd.Dir = d.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: d.cred}
	log := filepath.Join(d.dir, name+".log")
	out, err := os.Create(log) // not a pipe: the server would keep it open
	if err != nil {
		d.t.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		said, _ := os.ReadFile(log)
		d.t.Fatalf("%s: %v: %s", name, err, said)
	}
}

func (d *database) start() {
	d.t.Helper()
	d.run("pg_ctl", "-D", d.data(), "-l", filepath.Join(d.dir, "server.log"), "-w", "start", "-o",
		fmt.Sprintf("-c listen_addresses='' -c unix_socket_directories=%s -c fsync=off -c shared_buffers=16MB", d.dir))
}

func (d *database) stop() {
	d.t.Helper()
	d.run("pg_ctl", "-D", d.data(), "-m", "immediate", "-w", "stop")
}

// A database that goes away and comes back costs time and nothing else.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	b := newBench(t, cluster.Options{Store: db.url()})
	ends := &order{name: "ends", sleep: time.Second, code: 9}
	stays := &order{name: "stays", sleep: time.Minute}
	endsID, staysID := b.submit(ends), b.submit(stays)
	b.started(ends, 1)
	b.started(stays, 1)
	server := b.Server()

	db.stop()
	_, err := b.Client(0).Submit(t.Context(), (&order{name: "refused"}).submission(b.dir))
	if core.CodeOf(err) != core.Unavailable {
		t.Errorf("a submission without a database: %v, want unavailable", err)
	}
	b.Eventually("the server says why nothing can be written", func() (bool, string) {
		s, err := b.Client(0).Cluster(t.Context())
		if err != nil {
			return false, err.Error()
		}
		return s.ReadOnly != "", "writable"
	})
	b.ended(ends)
	waiting := make(chan error, 1)
	late := &order{name: "late", nodes: 1}
	go func() {
		done, err := b.Client(time.Minute).Submit(t.Context(), late.submission(b.dir))
		if err == nil {
			late.id = done.ID
		}
		waiting <- err
	}()
	pause(t.Context(), time.Second) // it stays away for a while
	db.start()

	if err := <-waiting; err != nil {
		t.Errorf("a submission that was tried until the database was back: %v", err)
	}
	wantEnd(t, b.WaitEnd(endsID), core.Failed, core.Exit{Code: 9}, 1)
	wantEnd(t, b.WaitEnd(fmt.Sprint(late.id)), core.Completed, core.Exit{}, 1)
	if j := b.Job(staysID); j.State != core.Running || j.Attempt != 1 {
		t.Errorf("the job that ran all the time is %v in attempt %d", j.State, j.Attempt)
	}
	if b.Server() != server {
		t.Errorf("the server did not live through it")
	}
	if _, err := b.Client(10*time.Second).Cancel(t.Context(), &client.Cancel{IDs: []string{staysID}}); err != nil {
		t.Error(err)
	}
	if j := b.WaitEnd(staysID); j.State != core.Cancelled {
		t.Errorf("the cancelled job ended %v", j.State)
	}
	b.marks(ends, 1)
	b.marks(late, 1)
}
