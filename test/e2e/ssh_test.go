//go:build e2e

package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/test/cluster"
)

// visitor is a user with a key and the system's ssh.
type visitor struct {
	t      *testing.T
	person *cluster.Person
	key    string // file of the private key
	port   string // of the SSH listener
}

// newVisitor makes a key for a user of the cluster and adds it to the user's own by dstack's API.
func newVisitor(t *testing.T, c *cluster.Cluster, name, api, port string) *visitor {
	t.Helper()
	v := &visitor{t: t, person: c.As(name), port: port, key: filepath.Join(t.TempDir(), "key")}
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", v.key).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	token := ""
	for _, word := range strings.Fields(v.person.Run("bireme", "token", "create", "--for", "dstack")) {
		if strings.HasPrefix(word, "bm_") {
			token = word
		}
	}
	body, err := json.Marshal(map[string]string{"key": read(t, v.key+".pub")})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+api+"/api/users/public_keys/add",
		bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body)
		t.Fatalf("the key was not added: %s %s", resp.Status, text)
	}
	return v
}

// options are those of ssh and scp.
func (v *visitor) options() []string {
	return []string{
		"-F", "none", "-i", v.key, "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no",
		"-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR",
	}
}

func (v *visitor) command(args ...string) *exec.Cmd {
	return exec.CommandContext(v.t.Context(), "ssh", append(append(v.options(), "-p", v.port), args...)...)
}

// try runs ssh and gives what it printed and its exit code.
func (v *visitor) try(args ...string) (string, int) {
	cmd := v.command(args...)
	out, _ := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), cmd.ProcessState.ExitCode()
}

// The system's ssh, scp and sftp reach a user's own job through the server's listener, each of its nodes, with streams,
// terminal, files and ports; a stranger, another user and a login on a node are refused.
func TestOpenSSHIntoJobs(t *testing.T) {
	t.Parallel()
	api, port := fmt.Sprintf("127.0.0.1:%d", freePort(t)), strconv.Itoa(freePort(t))
	c := cluster.Start(t, cluster.Options{
		Nodes: 2, CPUs: 2, Memory: "1G", Set: []string{"dstack.listen=" + api, "ssh.listen=127.0.0.1:" + port},
	})
	ann, ben := newVisitor(t, c, alice, api, port), newVisitor(t, c, bob, api, port)
	job := ann.person.Sbatch("-N2", "--export=ALL,MINE=yes", "--wrap", "sleep 1000")
	c.WaitState(job, core.Running)
	at := job + "@127.0.0.1"

	out, code := ann.try(at, "id -un; hostname; echo $MINE $SLURM_JOB_ID; exit 7")
	if want := alice + "\nn1\nyes " + job; out != want || code != 7 {
		t.Errorf("%q, %d; want %q", out, code, want)
	}
	if out, _ := ann.try(job+"-n1@127.0.0.1", "hostname"); out != "n2" {
		t.Errorf("the second node is %q", out)
	}
	if out, code := ann.try("-tt", at, "test -t 0 && echo terminal"); out != "terminal" || code != 0 {
		t.Errorf("with a terminal: %q, %d", out, code)
	}
	for name, who := range map[string]string{
		"another user's job": at, "a job that is not there": "999999@127.0.0.1", "a login": "root@127.0.0.1",
	} {
		if out, code := ben.try(who, "true"); code != 255 || !strings.Contains(out, "Permission denied (publickey)") {
			t.Errorf("%s: %q, %d", name, out, code)
		}
	}
	mine := ben.person.Sbatch("--wrap", "sleep 1000")
	c.WaitState(mine, core.Running)
	if out, code := ben.try(mine+"@127.0.0.1", "id -un"); code != 0 || out != bob {
		t.Errorf("%q, %d", out, code)
	}
	ann.files(at, c.Work)
	ann.bigPort(c, at)

	c.KillServer()
	if err := c.Up(); err != nil {
		t.Fatal(err)
	}
	c.Eventually("ssh after the server was killed", func() (bool, string) {
		out, code := ann.try(at, "hostname")
		return code == 0 && out == "n1", out
	})
	ann.person.Run("scancel", job)
	c.WaitState(job, core.Cancelled)
	if out, code := ann.try(at, "true"); code != 255 || !strings.Contains(out, "job "+job+" has ended") {
		t.Errorf("a job that is over: %q, %d", out, code)
	}
}

// files copies a file there and back by sftp and by the protocol of old scp.
func (v *visitor) files(at, dir string) {
	v.t.Helper()
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	from := filepath.Join(v.t.TempDir(), "from")
	if err := os.WriteFile(from, data, 0o600); err != nil {
		v.t.Fatal(err)
	}
	for _, how := range []string{"-s", "-O"} {
		there, back := at+":"+filepath.Join(dir, "there"+how), from+".back"
		for _, pair := range [][2]string{{from, there}, {there, back}} {
			args := append(append([]string{how, "-P", v.port}, v.options()...), pair[0], pair[1])
			if out, err := exec.CommandContext(v.t.Context(), "scp", args...).CombinedOutput(); err != nil {
				v.t.Fatalf("scp %s: %v: %s", how, err, out)
			}
		}
		if got, err := os.ReadFile(back); err != nil || !bytes.Equal(got, data) {
			v.t.Errorf("scp %s: %d bytes came back, %v", how, len(got), err)
		}
	}
}

// bigPort has 100 MB come by a forwarded port.
func (v *visitor) bigPort(c *cluster.Cluster, at string) {
	v.t.Helper()
	const size = 100 << 20
	l, err := net.Listen("tcp", "127.0.0.1:0") // emulated nodes have the machine's network
	if err != nil {
		v.t.Fatal(err)
	}
	defer l.Close()
	want := sha256.New()
	go func() {
		to, err := l.Accept()
		if err != nil {
			return
		}
		defer to.Close()
		chunk := bytes.Repeat([]byte("0123456789abcde\n"), 1<<12)
		for n := 0; n < size; n += len(chunk) {
			want.Write(chunk)
			if _, err := to.Write(chunk); err != nil {
				return
			}
		}
	}()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	local := fmt.Sprintf("127.0.0.1:%d", freePort(v.t))
	cmd := v.command("-N", "-o", "ExitOnForwardFailure=yes", "-L", fmt.Sprintf("%s:localhost:%s", local, port), at)
	if err := cmd.Start(); err != nil {
		v.t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	var conn net.Conn
	c.Eventually("the forwarded port", func() (ok bool, saw string) {
		conn, err = net.Dial("tcp", local)
		return err == nil, fmt.Sprint(err)
	})
	defer conn.Close()
	got := sha256.New()
	if n, err := io.Copy(got, conn); n != size || err != nil {
		v.t.Errorf("%d of %d bytes came: %v", n, size, err)
	}
	if !bytes.Equal(got.Sum(nil), want.Sum(nil)) {
		v.t.Error("other bytes came than were sent")
	}
}
