//go:build e2e

package hostile

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/test/cluster"
)

// impostorEnv has this test program pass for a server: ADDRESS, then the file that what it hears is written to.
const impostorEnv = "BIREME_TEST_IMPOSTOR"

// impostor listens on HOST:PORT or a socket and records what it is told. Over TCP it offers TLS to whoever wants
// that, and answers whatever comes as a server in good health would.
func impostor(spec string) error {
	at, file, _ := strings.Cut(spec, " ")
	network := "tcp"
	if strings.HasPrefix(at, "/") {
		network = "unix"
	}
	l, err := net.Listen(network, at)
	if err != nil {
		return err
	}
	if network == "unix" {
		if err := os.Chmod(at, 0o777); err != nil {
			return err
		}
	}
	out, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	fmt.Println("listening")
	cert, err := selfSigned()
	if err != nil {
		return err
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			fmt.Fprintln(out, "CALLED")
			first := make([]byte, 1)
			if n, _ := c.Read(first); n == 0 {
				return
			}
			var from net.Conn = &prefixed{c, io.MultiReader(bytes.NewReader(first), c)}
			if first[0] == 22 { // a TLS hello
				from = tls.Server(from, &tls.Config{Certificates: []tls.Certificate{cert}})
			}
			buf := make([]byte, 64<<10)
			for {
				n, err := from.Read(buf)
				fmt.Fprintf(out, "%s", buf[:n])
				if err != nil {
					fmt.Fprintln(out, "ERROR", err)
					return
				}
				_, _ = io.WriteString(from,
					"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 8\r\n\r\n{\"id\":7}")
			}
		}()
	}
}

type prefixed struct {
	net.Conn
	r io.Reader
}

func (p *prefixed) Read(b []byte) (int, error) { return p.r.Read(b) }

func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	t := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// pose has mallory listen at an address; what was heard is in the file it gives.
func pose(t *testing.T, c *cluster.Cluster, at string) (heard func() string) {
	t.Helper()
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(c.Base, "impostor")
	if err := os.WriteFile(program, self, 0o755); err != nil && !os.IsExist(err) {
		if _, serr := os.Stat(program); serr != nil { // it runs already, for another address
			t.Fatal(err)
		}
	}
	file := filepath.Join(c.Work, "heard-"+strconv.Itoa(int(time.Now().UnixNano())))
	u, err := user.Lookup(mallory)
	if err != nil {
		t.Fatal(err)
	}
	uid, err1 := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	cmd := exec.Command(program)
	cmd.Env = []string{impostorEnv + "=" + at + " " + file}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)},
		Pdeathsig:  syscall.SIGKILL,
	}
	cmd.Stderr = os.Stderr
	says, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if _, err := io.ReadFull(says, make([]byte, len("listening"))); err != nil {
		t.Fatalf("the impostor does not listen on %s: %v", at, err)
	}
	return func() string {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
}

// While the server is away another user listens on its port, on its socket's path and wherever else a command could be
// led: nothing of a script, an environment or a token gets there.
func TestNobodyPassesForTheServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().String()
	_ = l.Close()
	c := cluster.Start(t, cluster.Options{Args: []string{"--listen", port}})
	id := c.As(victim).Sbatch("--wrap", "true", "-o", "/dev/null")
	c.WaitState(id, core.Completed)
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	const secret = "correct-horse-battery"
	script := filepath.Join(c.Work, "s.sh")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n# "+secret+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	p := c.As(victim).With("BIREME_TIMEOUT=0", "BIREME_TOKEN=bm_"+secret, "PASSWORD="+secret)
	deny := func(what string, heard func() string, called bool, env ...string) {
		t.Helper()
		for _, line := range [][]string{
			{"sbatch", script},
			{"squeue"},
			{"srun", "--export=ALL", "true"},
			{"bireme", "whoami"},
			{"scancel", "1"},
		} {
			if r := p.With(env...).Try(line[0], line[1:]...); r.Code == 0 {
				t.Errorf("%s: %v succeeded: %s", what, line, r.Out)
			}
		}
		got := heard()
		if strings.Contains(got, secret) || strings.Contains(got, "HTTP/1.1") {
			t.Errorf("%s: the impostor heard %q", what, got)
		}
		if called && !strings.Contains(got, "CALLED") {
			t.Errorf("%s: nobody called: the attack was none", what)
		}
	}
	// The address that standalone exported: its socket is gone, its port is taken.
	deny("the port", pose(t, c, port), true)
	if r := p.With("BIREME_SERVER=http://"+port).Try("sbatch", script); r.Code == 0 ||
		!strings.Contains(r.Err, "https://") {
		t.Errorf("plain HTTP: %v", r)
	}
	// Paths that mallory could make: a socket, and a directory, where everybody writes.
	sock := filepath.Join(c.Work, "b.sock")
	heard := pose(t, c, sock)
	deny("a socket among others' files", func() string {
		return strings.ReplaceAll(heard(), "ERROR EOF", "")
	}, true, "BIREME_SERVER=unix:"+sock)
	dir := filepath.Join(c.Work, "b")
	if r := c.As(mallory).Try("/bin/mkdir", "-m", "755", dir); r.Code != 0 {
		t.Fatal(r)
	}
	deny("a folder of mallory's", pose(t, c, filepath.Join(dir, "bireme.sock")), true, "BIREME_SERVER=unix:"+
		filepath.Join(dir, "bireme.sock"))
	r := p.With("BIREME_SERVER=unix:"+sock).Try("bireme", "whoami")
	if !strings.Contains(r.Err, "nothing was sent") {
		t.Errorf("it does not say why: %v", r)
	}
	// The server's own socket: mallory cannot even be there.
	if err := os.Remove(filepath.Join(c.Dir, "bireme.sock")); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if r := c.As(mallory).Try("/usr/bin/touch", filepath.Join(c.Dir, "bireme.sock")); r.Code == 0 {
		t.Error("anybody may write to the server's folder")
	}
}

// A pid file of somebody else's does not make root end a process of mallory's choice.
func TestStopEndsNobodyElse(t *testing.T) {
	c := cluster.New(t, cluster.Options{})
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
	dir := filepath.Join(c.Work, "trap")
	hold := c.As(mallory).Command(t.Context(), "/bin/sh", "-c", fmt.Sprintf(
		"mkdir -m 755 %[1]s && echo %[2]d > %[1]s/server.pid && exec 9<%[1]s/server.pid && flock -x 9 && echo held "+
			"&& exec sleep 600", dir, cmd.Process.Pid))
	says, err := hold.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := hold.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hold.Process.Kill(); _ = hold.Wait() })
	if _, err := io.ReadFull(says, make([]byte, 4)); err != nil {
		t.Fatal(err)
	}
	if r := c.Root().Try("biremed", "stop", "--dir", dir); r.Code == 0 || !strings.Contains(r.Err, "left alone") {
		t.Errorf("biremed stop: %v", r)
	}
	select {
	case err := <-ended:
		t.Errorf("root's process was ended: %v", err)
		ended <- err
	default:
	}
}
