//go:build e2e

package site

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/test/cluster"
)

const patience = time.Minute

// serverUser is who servers run as here: an account of every machine that nobody logs in to.
const serverUser = "daemon"

func TestMain(m *testing.M) {
	if os.Geteuid() != 0 {
		fmt.Fprintln(os.Stderr, "test/site: needs root: agents run jobs as their users")
		os.Exit(1)
	}
	if _, err := cluster.Bin(); err != nil {
		fmt.Fprintln(os.Stderr, "test/site:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// site is a server's machine and its nodes.
type site struct {
	t   *testing.T
	bin string
	dir string // everything below here goes at the end
}

func newSite(t *testing.T) *site {
	t.Helper()
	bin, err := cluster.Bin()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("/tmp", "site-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return &site{t: t, bin: bin, dir: dir}
}

func credential(t *testing.T, name string) *syscall.Credential {
	t.Helper()
	u, err := user.Lookup(name)
	if err != nil {
		t.Fatalf("%v: scripts/prereqs.sh adds the users of tests", err)
	}
	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	if err1 != nil || err2 != nil {
		t.Fatalf("user %s: %v %v", name, err1, err2)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

// directory makes a directory of a user's.
func (s *site) folder(name, owner string) string {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.MkdirAll(path, 0o755); err != nil {
		s.t.Fatal(err)
	}
	c := credential(s.t, owner)
	if err := os.Chown(path, int(c.Uid), int(c.Gid)); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// daemon is a server or an agent that was started.
type daemon struct {
	s     *site
	cmd   *exec.Cmd
	log   string
	ended chan struct{}
}

// start starts biremed as a user; env are more variables.
func (s *site) start(name, owner string, env []string, args ...string) *daemon {
	s.t.Helper()
	d := &daemon{s: s, log: filepath.Join(s.dir, name+".log"), ended: make(chan struct{})}
	log, err := os.OpenFile(d.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	d.cmd = exec.Command(filepath.Join(s.bin, "biremed"), args...)
	d.cmd.Dir = "/"
	d.cmd.Env = append([]string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}, env...)
	d.cmd.Stdout, d.cmd.Stderr = log, log
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Credential: credential(s.t, owner)}
	if err := d.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	go func() { _ = d.cmd.Wait(); close(d.ended) }()
	s.t.Cleanup(func() {
		_ = d.cmd.Process.Kill() // it may have ended
		<-d.ended
		if s.t.Failed() {
			s.t.Logf("--- %s\n%s", name, d.said())
		}
	})
	return d
}

func (d *daemon) said() string {
	b, err := os.ReadFile(d.log)
	if err != nil {
		d.s.t.Fatal(err)
	}
	return string(b)
}

func (d *daemon) alive() bool {
	select {
	case <-d.ended:
		return false
	default:
		return true
	}
}

// wait waits for the end and gives the exit code.
func (d *daemon) wait() int {
	d.s.t.Helper()
	select {
	case <-d.ended:
	case <-time.After(patience):
		d.s.t.Fatalf("it did not end in %v:\n%s", patience, d.said())
	}
	return d.cmd.ProcessState.ExitCode()
}

// freePort is a port of loopback that nobody listens on.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// server starts a server in a directory and waits until it answers.
func (s *site) server(name, dir, owner string, args ...string) *daemon {
	s.t.Helper()
	d := s.serverStarts(name, dir, owner, args...)
	s.eventually("the server of "+dir+" answers", func() (bool, string) {
		if !d.alive() {
			s.t.Fatalf("the server ended:\n%s", d.said())
		}
		_, err := s.client(dir).Nodes(context.Background())
		return err == nil, fmt.Sprint(err)
	})
	return d
}

// serverStarts starts a server that may have to wait, or to end.
func (s *site) serverStarts(name, dir, owner string, args ...string) *daemon {
	s.t.Helper()
	words := []string{
		"server", "--dir", dir, "--listen", "", "--set", "timers.heartbeat=100ms", "--set",
		"timers.silent_after=2s",
		"--set", "timers.kill_wait=500ms", "--set", "timers.grace=500ms", "--set", "timers.lease=2s",
	}
	return s.start(name, owner, nil, append(words, args...)...)
}

func socket(dir string) string { return "unix:" + filepath.Join(dir, "bireme.sock") }

func (s *site) client(dir string) *client.Client {
	s.t.Helper()
	c, err := client.New(client.Settings{Servers: []string{socket(dir)}})
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// agent starts an agent as root, joins it and waits for its node.
func (s *site) agent(dir, door, node string) *daemon {
	s.t.Helper()
	made, err := s.client(dir).NewToken(s.t.Context(), &client.NewToken{
		Kind: "join", Node: core.NodeName(node), Roles: core.Compute | core.Login, TTL: 600,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	d := s.start(node, "root", []string{"BIREME_JOIN_TOKEN=" + made.Secret}, "agent", "--server", door, "--dir",
		s.nodeDir(node), "--node", node,
		"--ca", filepath.Join(dir, "ca.pem"))
	s.t.Cleanup(func() { // whatever the test left
		out, err := exec.Command(filepath.Join(s.bin, "biremed"), "stop", "--jobs", "--dir", s.nodeDir(node)).CombinedOutput()
		if err != nil {
			s.t.Errorf("stop of node %s: %v: %s", node, err, out)
		}
	})
	s.eventually("node "+node+" is idle", func() (bool, string) {
		n, err := s.client(dir).Node(s.t.Context(), core.NodeName(node))
		if err != nil {
			return false, err.Error()
		}
		return n.Connected && n.State == "IDLE", n.State
	})
	return d
}

func (s *site) nodeDir(node string) string { return filepath.Join(s.dir, "node-"+node) }

// result is what a command did.
type result struct {
	out, err string
	code     int
}

// as runs a program of ours as a user.
func (s *site) as(name, server string, words ...string) result {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.t.Context()), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, words[0]), words[1:]...)
	cmd.Dir = "/tmp"
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/nonexistent", "USER=" + name, "BIREME_SERVER=" +
		server}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: credential(s.t, name)}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		s.t.Fatalf("%s: %v", strings.Join(words, " "), err)
	}
	return result{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

// must is as for what has to work.
func (s *site) must(name, server string, words ...string) string {
	s.t.Helper()
	r := s.as(name, server, words...)
	if r.code != 0 {
		s.t.Fatalf("%s: %s: exit status %d\n%s%s", name, strings.Join(words, " "), r.code, r.out, r.err)
	}
	return r.out
}

// completed waits until a job has completed.
func (s *site) completed(dir, id string) {
	s.t.Helper()
	s.eventually("job "+id+" is completed", func() (bool, string) {
		list, err := s.client(dir).Job(s.t.Context(), id)
		if err != nil || len(list.Jobs) == 0 {
			return false, fmt.Sprint(err)
		}
		j := &list.Jobs[0]
		return j.State == core.Completed, fmt.Sprintf("%v %s %s", j.State, j.Waiting, j.Message)
	})
}

func (s *site) eventually(what string, look func() (bool, string)) {
	s.t.Helper()
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, saw := look()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("not in %v: %s; last seen: %s", patience, what, saw)
		}
		<-tick.C
	}
}

// database makes a PostgreSQL database for a test and gives its URL.
func database(t *testing.T) string {
	t.Helper()
	base := os.Getenv("TEST_POSTGRES_URL")
	if base == "" {
		t.Skip("TEST_POSTGRES_URL is not set: run it with scripts/with-postgres.sh")
	}
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("pgx", base)
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("site_%d_%d", os.Getpid(), rand.Uint32())
	if _, err := db.ExecContext(t.Context(), "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, err := db.ExecContext(context.WithoutCancel(t.Context()), "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
		if err := errors.Join(err, db.Close()); err != nil {
			t.Error(err)
		}
	})
	u.Path = "/" + name
	return u.String()
}
