package server_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/ca"
	"bireme.dev/bireme/internal/server/seal"
	"bireme.dev/bireme/internal/server/servertest"
	"bireme.dev/bireme/internal/store"
	"bireme.dev/bireme/internal/store/open"
)

func joinToken(s *servertest.Server, node core.NodeName) client.NewTokenMade {
	var made client.NewTokenMade
	s.Must("POST", "/api/v1/tokens", client.NewToken{Kind: "join", Node: node, Roles: core.Compute}, &made)
	return made
}

// A name that has joined is taken over with a token made for it only; whoever had it before is out at once.
func TestNamesAreNotTakenOver(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	own := s.Join("n1", core.Compute, false)
	own.Connect()
	if _, err := s.JoinWith("n1", joinToken(s, "").Secret); err == nil || err.Code != core.Denied ||
		err.Reason != "node_joined" {
		t.Fatalf("a token for any name took an existing one: %v", err)
	}
	if err := own.TryConnect(); err != nil {
		t.Fatalf("the rightful node is out: %v", err)
	}
	// A name of the config file that nobody has joined under is free.
	if _, err := s.JoinWith("idle", joinToken(s, "").Secret); err != nil {
		t.Fatalf("a declared name: %v", err)
	}
	next, err := s.JoinWith("n1", joinToken(s, "n1").Secret)
	if err != nil {
		t.Fatal(err)
	}
	own.AwaitCut()
	if err := own.TryConnect(); err == nil {
		t.Fatal("the key that was replaced is let in")
	}
	next.Connect()
	if err := own.Renew(nil, false); core.CodeOf(err) != core.Denied {
		t.Fatalf("the key that was replaced gets a certificate: %v", err)
	}
}

// A revoked certificate stays revoked when the name joins again, when its holder asks to renew, and over a restart.
func TestRevokedStaysRevoked(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	made := joinToken(s, "n1")
	stolen, err := s.JoinWith("n1", made.Secret)
	if err != nil {
		t.Fatal(err)
	}
	stolen.Connect()
	s.Must("DELETE", "/api/v1/tokens/"+made.Token.ID, nil, nil)
	stolen.AwaitCut()
	refused := func(when string) {
		t.Helper()
		if err := stolen.TryConnect(); err == nil {
			t.Fatalf("%s: a revoked certificate works", when)
		}
		if err := stolen.Renew(nil, false); core.CodeOf(err) != core.Denied {
			t.Fatalf("%s: a revoked key was renewed: %v", when, err)
		}
	}
	refused("after the revocation")
	s.Join("n1", core.Compute, false).Connect()
	refused("after the name joined anew")
	s.Stop()
	s.Start()
	refused("after a restart")
}

// A key may be renewed by whoever has it, also when its certificate has run out, and changed only with the certificate.
func TestRenewal(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t, "certificates.node=2s")
	n := s.Join("n1", core.Compute, false)
	n.Connect()
	thief, _ := servertest.NewCSR(t)
	if err := n.Copy().Renew(thief, false); core.CodeOf(err) != core.Denied {
		t.Fatalf("another key got a certificate for the name alone: %v", err)
	}
	old := n.Copy()
	if err := n.Renew(thief, true); err != nil { // here it is the node itself that changes its key
		t.Fatal(err)
	}
	n.Disconnect()
	if err := old.TryConnect(); err != nil {
		t.Fatalf("the old key is out before the new one was used: %v", err)
	}
	n.Connect()
	if err := old.TryConnect(); err == nil {
		t.Fatal("the old key works after the new one was used")
	}
	n.Disconnect()
	s.Stop() // away for longer than certificates live
	<-time.After(time.Until(n.Cert().NotAfter))
	s.Start()
	if err := n.TryConnect(); err == nil {
		t.Fatal("a certificate that has run out is let in")
	}
	if err := n.Renew(nil, false); err != nil {
		t.Fatalf("a pinned key cannot come back: %v", err)
	}
	n.Connect()
}

// What a node's user sends through the node's socket comes with the node's certificate, and gets no certificate for it.
func TestUsersRenewNothing(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	n := s.Join("n1", core.Login, false)
	_, csr := servertest.NewCSR(t)
	body, err := json.Marshal(client.Renew{Node: "n1", CSR: csr})
	if err != nil {
		t.Fatal(err)
	}
	for _, peer := range []string{"1001:1001:mallory", "0:0:root", ""} {
		req, err := http.NewRequestWithContext(t.Context(), "POST", "https://"+s.Info.Agents+"/api/v1/renew",
			bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header[call.PeerHeader] = []string{peer}
		h := &http.Client{Transport: &http.Transport{TLSClientConfig: n.TLS(), DisableKeepAlives: true}}
		resp, err := h.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusForbidden || bytes.Contains(text, []byte("CERTIFICATE")) {
			t.Errorf("%q got %s %s", peer, resp.Status, text)
		}
	}
	n.Connect() // its own key is still the one
}

// A node that joined a server without pins is pinned at its first connection, by the certificate of its last join and
// no other.
func TestTakeOverOldNodes(t *testing.T) {
	t.Parallel()
	s := servertest.New(t)
	st, err := open.Store(t.Context(), "sqlite:"+filepath.Join(s.Dir, "test.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	s.Store = st
	s.Start()
	for _, name := range []core.NodeName{"n1", "n2"} {
		if _, err := s.JoinWith(name, joinToken(s, name).Secret); err != nil {
			t.Fatal(err)
		}
	}
	gone := joinToken(s, "n3")
	if _, err := s.JoinWith("n3", gone.Secret); err != nil {
		t.Fatal(err)
	}
	s.Must("DELETE", "/api/v1/tokens/"+gone.Token.ID, nil, nil)
	s.Stop()
	forgetPins(t, st)
	old := func(name core.NodeName, at time.Time) *servertest.Agent { return oldAgent(t, s, st, name, at) }
	now := time.Now()
	s.Start()
	if err := old("n1", now.Add(-24*time.Hour)).TryConnect(); err == nil {
		t.Error("a certificate of an earlier join was pinned")
	}
	if err := old("n3", now).TryConnect(); err == nil {
		t.Error("a node that was revoked is back")
	}
	n1 := old("n1", now)
	n1.Connect()
	if err := old("n1", now).TryConnect(); err == nil {
		t.Error("a second certificate of the name is let in")
	}
	if err := n1.Renew(nil, true); err != nil {
		t.Fatal(err)
	}
	if c := n1.Cert(); c.NotAfter.Sub(c.NotBefore) > 31*24*time.Hour {
		t.Errorf("its new certificate ends %v", c.NotAfter)
	}
	s.Stop() // what was known of joins is stored, though the tokens may go
	s.Start()
	old("n2", now).Connect()
}

func forgetPins(t *testing.T, st store.Store) {
	t.Helper()
	epoch, err := st.Lead(t.Context(), "test", time.Minute, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	img, err := st.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c := &core.Changes{Now: img.Now, NextJob: img.NextJob, NextNode: img.NextNode}
	for _, n := range img.Nodes {
		m := *n
		m.Pin = nil
		c.Nodes = append(c.Nodes, &m)
	}
	if err := st.Commit(t.Context(), epoch, c); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Lead(t.Context(), "test", 0, epoch, 0); err != nil {
		t.Fatal(err)
	}
}

// oldAgent has a certificate of ten years that begins an hour before at.
func oldAgent(t *testing.T, s *servertest.Server, st store.Store, name core.NodeName, at time.Time) *servertest.Agent {
	t.Helper()
	missing := func(err error) bool { return errors.Is(err, store.ErrNotFound) }
	ring, err := seal.Open(s.Cfg.SealKey(), false)
	if err != nil {
		t.Fatal(err)
	}
	a, err := ca.Open(t.Context(), st, missing, ring, s.Cfg.Cluster, ca.Lives{Node: 10 * 365 * 24 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	key, text := servertest.NewCSR(t)
	csr, _, err := ca.Request([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	cert, err := a.SignAt(csr, ca.Node{Name: name, Roles: core.Compute}, at)
	if err != nil {
		t.Fatal(err)
	}
	return s.NewAgent(name, key, string(cert))
}
