//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/test/cluster"
)

// daemon is a part of a cluster that the test itself runs.
type daemon struct {
	t   *testing.T
	cmd *exec.Cmd
	log string
}

// run starts a part; it is ended with the test.
func run(t *testing.T, c *cluster.Cluster, log string, args ...string) *daemon {
	t.Helper()
	d := &daemon{t: t, log: filepath.Join(c.Base, log)}
	out, err := os.OpenFile(d.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	d.cmd = c.Root().Command(context.WithoutCancel(t.Context()), "biremed", args...)
	d.cmd.Stdout, d.cmd.Stderr = out, out
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.end)
	return d
}

// end asks the part to end and waits for it.
func (d *daemon) end() {
	d.t.Helper()
	if d.cmd == nil {
		return
	}
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		d.t.Errorf("%v", err)
	}
	err := d.cmd.Wait()
	d.cmd = nil
	if said, _ := os.ReadFile(d.log); err != nil || d.t.Failed() {
		d.t.Logf("%v: %s", err, said)
	}
}

// TestApart runs server and agents as parts of their own: nodes join with one-time tokens, over mutual TLS.
func TestApart(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{})
	door := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	sock := filepath.Join(c.Base, "server", "bireme.sock")
	ca := filepath.Join(c.Base, "server", "ca.pem")
	c.Env = []string{"BIREME_SERVER=unix:" + sock, "BIREME_CA=" + ca}
	run(t, c, "server.log", "server", "--dir", filepath.Join(c.Base, "server"), "--listen", "", "--agent-listen", door,
		"--set", "timers.heartbeat=100ms", "--set", "timers.silent_after=1s", "--set", "timers.kill_wait=500ms")
	root, p := c.Root(), c.As(alice)
	c.Eventually("the server answers", func() (bool, string) {
		err := c.Client(0).Ping(t.Context())
		return err == nil, fmt.Sprint(err)
	})
	join := func(args ...string) string {
		return strings.TrimSpace(root.Run("bireme", append([]string{"token", "join"}, args...)...))
	}
	agent := func(name string, more ...string) []string {
		return append([]string{
			"agent", "--node", name, "--dir", filepath.Join(c.Base, name), "--server", door, "--ca",
			ca, "--stop-jobs",
		}, more...)
	}
	connected := func(name string) {
		t.Helper()
		c.WaitNode(name, "connected", func(n *client.Node) bool { return n.Connected })
	}
	token := join("--node", "a")
	refused(t, root.Try("biremed", agent("b", "--token", token)...), 1) // it is another node's
	run(t, c, "a.log", agent("a", "--token", token, "--cpus", "2", "--memory", "1G")...)
	connected("a")
	refused(t, root.Try("biremed", agent("a2", "--token", token)...), 1)   // it was used
	refused(t, root.Try("biremed", agent("a3", "--token", "wrong")...), 1) // it never was one
	refused(t, root.Try("biremed", "agent", "--node", "a4", "--dir", filepath.Join(c.Base, "a4"), "--server", door), 1,
		"joined")
	run(t, c, "login.log", agent("login", "--token", join("--login", "--node", "login"))...)
	connected("login")

	out := filepath.Join(c.Work, "apart.out")
	id := p.Sbatch("-o", out, "--mem=16M", "--wrap", "hostname; srun hostname; squeue -h -o %i")
	if j := c.WaitEnd(id); j.State != core.Completed || string(j.Alloc.Nodes[0].Node) != "a" {
		t.Errorf("ended %v on %v: %s", j.State, j.Alloc, j.Message)
	}
	wants(t, "the job's output", read(t, out), "\n"+id+"\n") // commands work inside the job

	// On a login node people are who they are there, and its root is nobody special.
	there := "BIREME_SERVER=unix:" + filepath.Join(c.Base, "login", "agent.sock")
	wants(t, "whoami on a login node", p.With(there).Run("bireme", "whoami"), alice)
	id = p.With(there).Sbatch("-o", "/dev/null", "--mem=16M", "--wrap", "true")
	if j := c.WaitEnd(id); j.State != core.Completed || string(j.Spec.User) != alice {
		t.Errorf("a job from the login node ended %v as %s: %s", j.State, j.Spec.User, j.Message)
	}
	refused(t, root.With(there).Try("bireme", "drain", "a", "-r", "because"), 4, "administrator")
	root.Run("bireme", "drain", "a", "-r", "because")
	id = p.Sbatch("-o", "/dev/null", "--mem=16M", "--wrap", "true")
	wants(t, "sinfo", root.Run("sinfo", "-h", "-n", "a", "-o", "%T"), "drained")
	root.Run("bireme", "resume", "a")
	c.WaitEnd(id)
}

// TestHTTPS: the API speaks TLS only, with the cluster's own authority.
func TestHTTPS(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	c := cluster.Start(t, cluster.Options{Args: []string{"--listen", fmt.Sprintf("0.0.0.0:%d", port)}})
	p := c.As(alice)
	token := strings.TrimSpace(p.Run("bireme", "token", "create"))
	far := p.With(fmt.Sprintf("BIREME_SERVER=https://127.0.0.1:%d", port), "BIREME_TOKEN="+token, "BIREME_TIMEOUT=2s")
	wants(t, "whoami", far.Run("bireme", "whoami"), alice)
	refused(t, far.With("BIREME_CA=").Try("bireme", "whoami"), 5, "BIREME_CA")
	refused(t, far.With(fmt.Sprintf("BIREME_SERVER=http://127.0.0.1:%d", port)).Try("bireme", "whoami"), 2,
		"nobody can tell who answers there")
	plain := far.With(fmt.Sprintf("BIREME_SERVER=http+insecure://127.0.0.1:%d", port)).Try("bireme", "whoami")
	if plain.Code == 0 {
		t.Errorf("the API answered in the clear: %v", plain)
	}
	conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close() // somebody who says nothing does no harm
	home := filepath.Join(c.Work, "home")
	login := p.With("HOME="+home, "BIREME_SERVER=", "BIREME_CA=")
	login.Run("bireme", "login", "--server", fmt.Sprintf("https://127.0.0.1:%d", port), "--token", token, "--ca",
		filepath.Join(c.Dir, "ca.pem"))
	wants(t, "whoami after login", login.Run("bireme", "whoami"), alice)
}

// TestWithoutRoot: anybody can have a cluster. It runs its owner's jobs, and says at submit that it runs no others.
func TestWithoutRoot(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{})
	p := c.As(alice)
	c.Dir = filepath.Join(c.Base, "own") // not among everybody's files, where anybody could have made it
	if r := c.Root().Try("/usr/bin/install", "-d", "-o", alice, c.Dir); r.Code != 0 {
		t.Fatal(r)
	}
	if r := p.Try("biremed", c.Args()...); r.Code != 0 {
		t.Fatalf("%v\n%s", r, c.Logs())
	}
	t.Cleanup(func() {
		if r := p.Try("biremed", "stop", "--dir", c.Dir); r.Code != 0 {
			t.Errorf("%v", r)
		}
	})
	c.Env = []string{"BIREME_SERVER=unix:" + filepath.Join(c.Dir, "bireme.sock")}
	mark := filepath.Join(c.Work, "own.pid")
	out := filepath.Join(c.Work, "own.out")
	id := p.Sbatch("-o", out, "--mem=16M", "--wrap", fmt.Sprintf(
		"id -un; setsid sh -c 'echo $$ >%s; sleep 600' >/dev/null 2>&1 & while [ ! -s %s ]; do sleep 0.01; done; "+
			"echo $TMPDIR", mark, mark))
	if j := c.WaitEnd(id); j.State != core.Completed {
		t.Errorf("ended %v: %s", j.State, j.Message)
	}
	wants(t, "the output", read(t, out), alice+"\n")
	if pid := read(t, mark); cluster.Runs(pid) {
		t.Errorf("process %s outlived its job", pid)
	}
	refused(t, c.As(bob).Try("sbatch", "-o", "/dev/null", "--mem=16M", "--wrap", "true"), 1, "sbatch: error: ")
	wants(t, "bireme nodes", p.Run("bireme", "nodes"), "weak")
	refused(t, p.Try("srun", "sh", "-c", "exit 4"), 4)
}

// TestWeakContainment: without cgroups jobs run all the same, nothing outlives them, and nodes says so.
func TestWeakContainment(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{Args: []string{"--cgroup", "none"}})
	nothingOutlives(t, c)
	exitCodes(t, c)
	wants(t, "bireme nodes", c.Root().Run("bireme", "nodes"), "weak")
	c.WaitClean()
}
