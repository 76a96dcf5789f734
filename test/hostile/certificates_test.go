//go:build e2e

package hostile

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/test/cluster"
)

func nodeCert(t *testing.T, dir string) *x509.Certificate {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "node.crt"))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// copyNode has what somebody has who got at a node's directory.
func copyNode(t *testing.T, c *cluster.Cluster, from, name string) string {
	t.Helper()
	to := filepath.Join(c.Base, name)
	if err := os.Mkdir(to, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{"node.key", "node.crt", "ca.pem"} {
		data, err := os.ReadFile(filepath.Join(from, f))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, f), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

func stillWorks(t *testing.T, c *cluster.Cluster, when string) {
	t.Helper()
	if j := c.WaitEnd(c.As(victim).Sbatch("--wrap", "true", "-o", "/dev/null")); j.State != core.Completed {
		t.Errorf("%s: a job ended %v: %s", when, j.State, j.Message)
	}
}

// Certificates are renewed while everything continues; a server that is away for longer than they last finds its nodes
// again.
func TestCertificatesRunOut(t *testing.T) {
	c := cluster.Start(t, cluster.Options{Nodes: 1, Set: []string{"certificates.node=3s", "certificates.server=3s"}})
	dir := filepath.Join(c.Dir, "nodes", "n1")
	first := nodeCert(t, dir)
	if life := first.NotAfter.Sub(first.NotBefore); life > time.Minute {
		t.Fatalf("a certificate of %v", life)
	}
	c.Eventually("the certificate is renewed", func() (bool, string) {
		now := nodeCert(t, dir)
		return now.NotAfter.After(first.NotAfter), now.NotAfter.String()
	})
	stillWorks(t, c, "after a renewal")
	c.KillServer()
	c.Eventually("the certificate has run out", func() (bool, string) {
		now := nodeCert(t, dir)
		return time.Now().After(now.NotAfter), now.NotAfter.String()
	})
	if err := c.Up(); err != nil {
		t.Fatal(err)
	}
	c.WaitNode("n1", "connected", func(n *client.Node) bool { return n.Connected })
	stillWorks(t, c, "after the server was away")
}

// The authority is replaced while jobs run, over a death of the server between the steps; what the old one signed is
// refused then.
func TestRotateCA(t *testing.T) {
	c := cluster.Start(t, cluster.Options{Nodes: 2})
	root := c.Root()
	rotate := func() string { return root.Run("biremed", "ca", "rotate", "--dir", c.Dir) }
	behind := func() string { return root.Run("biremed", "ca", "show", "--dir", c.Dir) }
	old, err := os.ReadFile(filepath.Join(c.Dir, "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	before := nodeCert(t, filepath.Join(c.Dir, "nodes", "n1"))
	if out := rotate(); !strings.Contains(out, "new authority") {
		t.Fatal(out)
	}
	c.KillServer()
	if err := c.Up(); err != nil {
		t.Fatal(err)
	}
	c.Eventually("every node trusts the new authority", func() (bool, string) {
		out := behind()
		return !strings.Contains(out, "behind") && strings.Contains(out, "n2"), out
	})
	stillWorks(t, c, "between the steps")
	if out := rotate(); !strings.Contains(out, "no longer trusted") {
		t.Fatal(out)
	}
	now, err := os.ReadFile(filepath.Join(c.Dir, "ca.pem"))
	if err != nil || strings.Contains(string(now), strings.TrimSpace(string(old))) {
		t.Fatalf("the old authority is still handed out (%v)", err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(now)
	uses := x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if _, err := before.Verify(uses); err == nil {
		t.Error("a certificate of the old authority is good")
	}
	c.Eventually("nodes have forgotten the old authority", func() (bool, string) {
		out := behind()
		return !strings.Contains(out, "behind"), out
	})
	for _, n := range []string{"n1", "n2"} {
		if _, err := nodeCert(t, filepath.Join(c.Dir, "nodes", n)).Verify(uses); err != nil {
			t.Errorf("%s: %v", n, err)
		}
	}
	stillWorks(t, c, "after the rotation")
	if r := c.As(mallory).Try("biremed", "ca", "rotate", "--dir", c.Dir); r.Code == 0 ||
		!strings.Contains(r.Err, "administrator") {
		t.Errorf("anybody replaces the authority: %v", r)
	}
}

// A copied certificate is of no use once its node was removed, and a token for any name does not take a name that is
// there.
func TestStolenNames(t *testing.T) {
	c := cluster.Start(t, cluster.Options{Nodes: 2})
	root := c.Root()
	port, err := os.ReadFile(filepath.Join(c.Dir, "agent.port"))
	if err != nil {
		t.Fatal(err)
	}
	agent := func(node, dir string, more ...string) cluster.Result {
		return root.Try("biremed",
			append([]string{
				"agent", "--dir", dir, "--node", node, "--server",
				"127.0.0.1:" + strings.TrimSpace(string(port)), "--cgroup", "none",
			}, more...)...)
	}
	token := strings.TrimSpace(root.Run("bireme", "token", "join"))
	r := agent("n1", filepath.Join(c.Base, "thief"), "--token", token, "--ca", filepath.Join(c.Dir, "ca.pem"))
	if r.Code == 0 || !strings.Contains(r.Err, "has joined before") {
		t.Errorf("a token for any name took n1: %v", r)
	}
	stolen := copyNode(t, c, filepath.Join(c.Dir, "nodes", "n2"), "stolen")
	root.Run("bireme", "node", "remove", "n2", "--now")
	c.Eventually("n2 is gone", func() (bool, string) {
		out := root.Run("bireme", "nodes")
		return !strings.Contains(out, "n2"), out
	})
	stillWorks(t, c, "after a removal")
	// The agent of the copy asks without effect; it continues asking, so it is the server's answer that counts.
	cl := agentCall(t, c, stolen, strings.TrimSpace(string(port)))
	if cl != 403 {
		t.Errorf("a removed node's certificate is answered %d", cl)
	}
}

// agentCall makes a call with a node's certificate and gives the status of the answer.
func agentCall(t *testing.T, c *cluster.Cluster, dir, port string) int {
	t.Helper()
	cert, err := tls.LoadX509KeyPair(filepath.Join(dir, "node.crt"), filepath.Join(dir, "node.key"))
	if err != nil {
		t.Fatal(err)
	}
	h := c.HTTP()
	h.Transport.(*http.Transport).TLSClientConfig.Certificates = []tls.Certificate{cert}
	req, err := http.NewRequestWithContext(t.Context(), "GET", "https://127.0.0.1:"+port+"/api/v1/whoami", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Bireme-Peer", "0:0:root")
	resp, err := h.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}
