//go:build e2e

package dstack

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"bireme.dev/bireme/test/cluster"
	"bireme.dev/bireme/test/engine"
)

// sshHost is a host: an SSH server with a Docker, a hostname and directories of its own.
type sshHost struct {
	port string
	key  string // file that opens it
}

// newSSHHost starts one. Everything on it ends with the test.
func newSSHHost(t *testing.T, c *cluster.Cluster) *sshHost {
	t.Helper()
	dir := filepath.Join(c.Work, "host")
	h := &sshHost{key: filepath.Join(dir, "key")}
	address := freePort(t)
	_, h.port, _ = net.SplitHostPort(address)
	text := fmt.Sprintf("Port %s\nListenAddress 127.0.0.1\nHostKey %[2]s/hostkey\nAuthorizedKeysFile %[2]s/key.pub\n"+
		"PidFile none\nStrictModes no\nUsePAM yes\nPermitRootLogin yes\nPasswordAuthentication no\n", h.port, dir)
	prepare := fmt.Sprintf("mkdir -p %[1]s/disk && ssh-keygen -q -t ed25519 -N '' -f %[1]s/key && "+
		"ssh-keygen -q -t ed25519 -N '' -f %[1]s/hostkey", dir)
	if out, err := exec.Command("sh", "-ec", prepare).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	config := filepath.Join(dir, "sshd_config")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("hostname ssh-host; mount -t tmpfs none /root; mount -t tmpfs none /run; "+
		"mkdir -p /run/sshd /var/lib/bireme; mount --bind %[1]s/disk /var/lib/bireme; echo ready; read -r socket; "+
		"ln -s $socket /run/docker.sock; exec /usr/sbin/sshd -D -f %[2]s -E %[1]s/sshd.log", dir, config)
	cmd := exec.Command("unshare", "--mount", "--uts", "sh", "-ec", script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	mounts := fmt.Sprintf("/proc/%d/ns/mnt", cmd.Process.Pid)
	t.Cleanup(func() {
		endAll(mounts)
		_ = cmd.Wait()
	})
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil { // its directories are there
		t.Fatal(err)
	}
	engine, err := engine.StartIn(t.Context(), mounts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := importBox(engine); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintln(in, engine.Socket); err != nil {
		t.Fatal(err)
	}
	c.Eventually("the host's SSH server answers", func() (bool, string) {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
		}
		return err == nil, fmt.Sprint(err)
	})
	return h
}

// endAll ends the processes of a mount namespace.
func endAll(mounts string) {
	ours, err := os.Readlink(mounts)
	if err != nil {
		return
	}
	list, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range list {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if ns, _ := os.Readlink(filepath.Join(dir, "ns", "mnt")); err == nil && ns == ours {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// TestScriptOnSSHFleet is the life of an SSH fleet by the stock CLI: its host becomes a node, the working day of
// TestScript is done in containers on it, and the fleet is deleted.
func TestScriptOnSSHFleet(t *testing.T) {
	t.Parallel()
	api, door := freePort(t), freePort(t)
	c := cluster.Start(t, cluster.Options{
		Nodes: 1, CPUs: 1, Memory: "1G", Set: []string{"dstack.listen=" + api, "ssh.listen=" + door, "timers.grace=5s"},
	})
	root := c.Root()
	root.Run("bireme", "projects", "add", "main", "--runtime", "container")
	root.Run("bireme", "projects", "member", "main", "root", "--role", "admin")
	s := newSession(t, c)
	s.want(0, "project add --name main --url http://"+api+" --token "+token(t, c, "--scope", "read,submit,admin")+" -y")
	s.fleet(newSSHHost(t, c))
	s.on = "fleets: [lab]\n"
	s.tasks(root)
	s.busyFleet(root)
	s.changes()
	s.until(`"status": "idle"`, "fleet get lab --json")
	s.want(0, "fleet delete -y lab")
	s.want(0, "fleet", "!lab")
	t.Logf("%d commands", s.n)
	if s.n < 60 {
		t.Errorf("only %d commands", s.n)
	}
}

// fleet makes a node of a host.
func (s *session) fleet(h *sshHost) {
	s.t.Helper()
	s.file("lab.dstack.yml", fmt.Sprintf("type: fleet\nname: lab\nssh_config:\n  user: root\n  port: %s\n"+
		"  identity_file: %s\n  hosts: [127.0.0.1]\nblocks: 2\n", h.port, h.key))
	s.want(0, "apply -y -f lab.dstack.yml", "lab")
	s.until(`"status": "idle"`, "fleet get lab --json")
	s.want(0, "fleet", "lab", "ssh (remote)")
	s.want(0, "fleet get lab --json", `"name": "lab"`, `"hostname": "127.0.0.1"`)
	s.want(0, "apply -y -f lab.dstack.yml", "lab")
	s.want(0, "offer --fleet lab", "ssh (remote)", "idle")
}

// busyFleet: the sleeper of tasks is on the fleet's host.
func (s *session) busyFleet(root *cluster.Person) {
	s.t.Helper()
	s.want(0, "run get tick --json", `"exit_status": 0`, `"lab-0"`)
	s.want(0, "fleet list -v", "lab", "instance=0", "busy")
	if out := root.Run("squeue", "-h", "-o", "%j %T %N"); !strings.Contains(out, "sleeper RUNNING lab-0") {
		s.t.Errorf("squeue: %s", out)
	}
	s.want(0, "event --within-run sleeper", "sleeper")
	s.want(1, "fleet delete -y lab")
	s.want(0, "metrics sleeper")
	s.file("broken.dstack.yml", head+"type: task\nname: broken\ncommands: [echo oops, exit 7]\n")
	s.want(1, "apply -y -f broken.dstack.yml", "oops", "Exited (7)")
	s.file("notes.txt", "noted\n")
	s.file("files.dstack.yml", head+"type: task\nname: with-files\nfiles: [notes.txt]\ncommands: [cat notes.txt]\n")
	s.want(0, "apply -y -f files.dstack.yml", "noted")
}
