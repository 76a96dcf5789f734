//go:build e2e

package dstack

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/test/cluster"
)

// TestAttach attaches to a dev environment with the stock CLI, and with those of other releases that
// BIREME_DSTACK_OLD names, separated by colons: its output with the editor's link, `ssh RUN`, and a port. ssh must take
// HOME for the user's home in all of them, which that of 0.20.20 does not.
func TestAttach(t *testing.T) {
	api, door := freePort(t), freePort(t)
	c := cluster.Start(t, cluster.Options{
		Args: []string{"--engine", docker.Socket, "--cpus", "4"},
		Set:  []string{"dstack.listen=" + api, "ssh.listen=" + door},
	})
	root := c.Root()
	root.Run("bireme", "projects", "add", "main", "--runtime", "container")
	root.Run("bireme", "projects", "member", "main", "root", "--role", "admin")
	var made client.NewTokenMade
	text := root.Run("bireme", "token", "create", "--for", "dstack", "--json")
	if err := json.Unmarshal([]byte(text), &made); err != nil {
		t.Fatal(err)
	}
	list := []string{cli}
	if old := os.Getenv("BIREME_DSTACK_OLD"); old != "" {
		list = append(list, strings.Split(old, ":")...)
	}
	for i, path := range list {
		s := newSession(t, c)
		s.home, s.cli = filepath.Join(c.Work, fmt.Sprintf("home%d", i)), path
		if err := os.MkdirAll(s.home, 0o700); err != nil {
			t.Fatal(err)
		}
		s.want(0, "project add --name main --url http://"+api+" --token "+made.Secret+" -y")
		s.attach(c, fmt.Sprintf("bench%d", i))
	}
	// what another front end made is listed, and can be deleted
	s := newSession(t, c)
	s.home = filepath.Join(c.Work, "home0")
	s.file("native.dstack.yml", "type: task\nname: native\nimage: box:1\ncommands: [echo made natively]\n")
	root.Run("bireme", "apply", "-y", "--project", "main", "-f", filepath.Join(s.work, "native.dstack.yml"))
	s.want(0, "ps -a", "native")
	s.want(0, "logs native", "made natively")
	s.want(0, "delete -y -f native.dstack.yml")
}

// attach makes a dev environment, uses it while attached, and leaves it.
func (s *session) attach(c *cluster.Cluster, run string) {
	s.t.Helper()
	_, port, _ := net.SplitHostPort(freePort(s.t))
	s.file(run+".dstack.yml", head+`type: dev-environment
name: `+run+`
ide: vscode
init:
  - echo prepared > /tmp/index.html
  - httpd -p 127.0.0.1:8000 -h /tmp
  - echo prepared
ports: ["`+port+`:8000"]
`)
	s.want(0, "apply -y -d -f "+run+".dstack.yml", "submitted")
	s.until("running", "ps")
	said := filepath.Join(s.home, "said")
	out, err := os.Create(said)
	if err != nil {
		s.t.Fatal(err)
	}
	defer out.Close()
	cmd := exec.CommandContext(s.t.Context(), s.cli, "attach", "--logs", run)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = s.work, s.env(), out, out
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	text := c.WaitFile(said, "vscode://vscode-remote/ssh-remote+"+run)
	if !strings.Contains(text, "prepared") {
		s.t.Errorf("the output is not whole:\n%s", text)
	}
	ssh := exec.CommandContext(s.t.Context(), "ssh", "-F", filepath.Join(s.home, ".dstack", "ssh", "config"), run,
		"cat /tmp/index.html; echo $DSTACK_RUN_NAME")
	ssh.Env = s.env()
	if got, err := ssh.Output(); err != nil || string(got) != "prepared\n"+run+"\n" {
		s.t.Errorf("ssh %s: %q, %v", run, got, err)
	}
	resp, err := http.Get("http://127.0.0.1:" + port + "/index.html")
	if err != nil {
		s.t.Fatalf("the forwarded port: %v", err)
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if string(body) != "prepared\n" || err != nil {
		s.t.Errorf("the forwarded port: %q, %v", body, err)
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		s.t.Fatal(err)
	}
	_ = cmd.Wait() // its status differs by release
	c.WaitFile(said, "Detached")
	s.want(0, "stop -y "+run, "Stopped")
}
