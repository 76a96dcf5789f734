package acmecert

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/acme"
)

// authority is a small ACME server: it gives certificates for names whose listener, at one address, shows the
// challenge.
type authority struct {
	t        *testing.T
	url      string
	listener string
	lifetime time.Duration

	key  *ecdsa.PrivateKey
	root *x509.Certificate

	mu      sync.Mutex
	names   []string // of the one order
	proved  map[string]bool
	chain   []byte
	orders  int
	thumb   string // of the account's key
	refused string // why the last proof failed
}

func newAuthority(t *testing.T) (*authority, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	root, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{t: t, key: key, root: root, proved: map[string]bool{}, lifetime: time.Hour}
	s := httptest.NewTLSServer(http.HandlerFunc(a.serve))
	t.Cleanup(s.Close)
	a.url = s.URL
	ca := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(ca, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return a, ca
}

func (a *authority) serve(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w.Header().Set("Replay-Nonce", rand.Text())
	var in struct{ Protected, Payload string }
	payload := []byte{}
	if r.Method == "POST" {
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			a.t.Error(err)
		}
		payload, _ = base64.RawURLEncoding.DecodeString(in.Payload)
		a.account(in.Protected)
	}
	answer := func(status int, where string, body any) {
		if where != "" {
			w.Header().Set("Location", a.url+where)
		}
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(body)
	}
	name := r.URL.Query().Get("name")
	switch r.URL.Path {
	case "/dir":
		answer(200, "", map[string]string{
			"newNonce": a.url + "/nonce", "newAccount": a.url + "/account", "newOrder": a.url + "/orders",
		})
	case "/nonce":
	case "/account":
		answer(201, "/account/1", map[string]string{"status": "valid"})
	case "/orders":
		var order struct{ Identifiers []struct{ Value string } }
		if err := json.Unmarshal(payload, &order); err != nil {
			a.t.Error(err)
		}
		a.orders++
		a.names, a.proved, a.chain = nil, map[string]bool{}, nil
		for _, x := range order.Identifiers {
			a.names = append(a.names, x.Value)
		}
		answer(201, "/order", a.order())
	case "/order":
		answer(200, "/order", a.order())
	case "/authz":
		answer(200, "", a.authz(name))
	case "/challenge":
		a.prove(name)
		answer(200, "", a.authz(name)["challenges"].([]map[string]string)[0])
	case "/finalize":
		a.sign(payload)
		answer(200, "/order", a.order())
	case "/cert":
		_, _ = w.Write(a.chain)
	default:
		a.t.Errorf("asked for %s", r.URL.Path)
	}
}

// account remembers the key of who asks.
func (a *authority) account(protected string) {
	text, _ := base64.RawURLEncoding.DecodeString(protected)
	var head struct {
		JWK *struct{ Crv, Kty, X, Y string }
	}
	if err := json.Unmarshal(text, &head); err != nil || head.JWK == nil {
		return
	}
	k := head.JWK
	sum := sha256.Sum256(fmt.Appendf(nil, `{"crv":%q,"kty":%q,"x":%q,"y":%q}`, k.Crv, k.Kty, k.X, k.Y))
	a.thumb = base64.RawURLEncoding.EncodeToString(sum[:])
}

func (a *authority) order() map[string]any {
	out := map[string]any{"status": "ready", "finalize": a.url + "/finalize"}
	var list []string
	for _, n := range a.names {
		list = append(list, a.url+"/authz?name="+n)
		if !a.proved[n] {
			out["status"] = "pending"
		}
	}
	out["authorizations"] = list
	if a.chain != nil {
		out["status"], out["certificate"] = "valid", a.url+"/cert"
	}
	return out
}

func (a *authority) authz(name string) map[string]any {
	status := "pending"
	if a.proved[name] {
		status = "valid"
	} else if a.refused != "" {
		status = "invalid"
	}
	return map[string]any{
		"status": status, "identifier": map[string]string{"type": "dns", "value": name},
		"challenges": []map[string]string{
			{"type": "tls-alpn-01", "url": a.url + "/challenge?name=" + name, "token": "token-" + name, "status": status},
		},
	}
}

// prove looks for the challenge at the listener, as RFC 8737 has it.
func (a *authority) prove(name string) {
	conn, err := tls.Dial("tcp", a.listener, &tls.Config{
		ServerName: name, NextProtos: []string{acme.ALPNProto}, InsecureSkipVerify: true,
	})
	if err != nil {
		a.refused = err.Error()
		return
	}
	defer conn.Close()
	leaf := conn.ConnectionState().PeerCertificates[0]
	sum := sha256.Sum256([]byte("token-" + name + "." + a.thumb))
	for _, x := range leaf.Extensions {
		if x.Id.String() == "1.3.6.1.5.5.7.1.31" && strings.HasSuffix(string(x.Value), string(sum[:])) {
			a.proved[name] = leaf.VerifyHostname(name) == nil
		}
	}
	if !a.proved[name] {
		a.refused = "the challenge is not there"
	}
}

func (a *authority) sign(payload []byte) {
	var in struct{ CSR string }
	if err := json.Unmarshal(payload, &in); err != nil {
		a.t.Error(err)
	}
	der, _ := base64.RawURLEncoding.DecodeString(in.CSR)
	csr, err := x509.ParseCertificateRequest(der)
	if err != nil {
		a.t.Error(err)
		return
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(int64(1 + a.orders)), NotBefore: time.Now().Add(-time.Minute),
		NotAfter: time.Now().Add(a.lifetime), DNSNames: csr.DNSNames,
	}
	leaf, err := x509.CreateCertificate(rand.Reader, template, a.root, csr.PublicKey, a.key)
	if err != nil {
		a.t.Error(err)
		return
	}
	for _, der := range [][]byte{leaf, a.root.Raw} {
		a.chain = append(a.chain, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
}

// listen serves TLS with the manager's configuration.
func listen(t *testing.T, m *Manager) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{TLSConfig: m.TLS(), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	done := make(chan struct{})
	go func() { _ = s.ServeTLS(l, "", ""); close(done) }()
	t.Cleanup(func() { _ = s.Close(); <-done })
	return l.Addr().String()
}

func TestObtainAndRenew(t *testing.T) {
	t.Parallel()
	a, ca := newAuthority(t)
	hosts := []string{"bireme.test", "other.test"}
	o := Options{
		Hosts: hosts, Email: "ops@bireme.test", Directory: a.url + "/dir", CA: ca, Dir: filepath.Join(t.TempDir(), "acme"),
		Log: slog.New(slog.DiscardHandler),
	}
	m, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	a.listener = listen(t, m)
	if _, err := tls.Dial("tcp", a.listener, &tls.Config{ServerName: hosts[0], InsecureSkipVerify: true}); err == nil {
		t.Error("it serves before it has a certificate")
	}
	if err := m.obtain(t.Context()); err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(a.root)
	for _, h := range hosts {
		conn, err := tls.Dial("tcp", a.listener, &tls.Config{ServerName: h, RootCAs: pool, MinVersion: tls.VersionTLS12})
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
	}
	if wait := m.due(time.Now()); wait <= 0 || wait > 45*time.Minute {
		t.Errorf("renewed after %v", wait)
	}
	if m.due(time.Now().Add(50*time.Minute)) > 0 {
		t.Error("not renewed in the last third of its time")
	}

	// The next life of the server uses what is stored, and asks again only for other names.
	again, err := Open(o)
	if err != nil || again.cert == nil || again.due(time.Now()) <= 0 {
		t.Fatalf("%v, %+v", err, again.cert)
	}
	again.o.Hosts = append(hosts, "third.test")
	if again.due(time.Now()) > 0 {
		t.Error("a name was added, and no certificate asked for")
	}
	if info, err := os.Stat(again.file("cert.pem")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// open makes a manager of one host's certificate.
func open(t *testing.T, a *authority, ca string, log slog.Handler) *Manager {
	t.Helper()
	m, err := Open(Options{
		Hosts: []string{"bireme.test"}, Directory: a.url + "/dir", CA: ca, Dir: t.TempDir(), Log: slog.New(log),
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestRun: Run obtains the certificate without being asked, and ends with its context.
func TestRun(t *testing.T) {
	t.Parallel()
	a, ca := newAuthority(t)
	m := open(t, a, ca, slog.DiscardHandler)
	a.listener = listen(t, m)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { m.Run(ctx); close(done) }()
	for m.due(time.Now()) <= 0 {
		select {
		case <-t.Context().Done():
			t.Fatal("no certificate")
		case <-time.After(10 * time.Millisecond):
		}
	}
	cancel()
	<-done
}

// TestDueAtOnce: a new certificate that is to be renewed already, as by a clock that is wrong, is not asked for again
// at once.
func TestDueAtOnce(t *testing.T) {
	t.Parallel()
	a, ca := newAuthority(t)
	a.lifetime = time.Second
	said := make(chan string, 8)
	m := open(t, a, ca, slog.NewTextHandler(lines(said), nil))
	a.listener = listen(t, m)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { m.Run(ctx); close(done) }()
	first, second := <-said, <-said
	cancel()
	<-done
	if !strings.Contains(first, "was renewed") || !strings.Contains(second, "is the clock right?") {
		t.Errorf("%s%s", first, second)
	}
}

// lines are those that a log has written.
type lines chan string

func (l lines) Write(b []byte) (int, error) {
	select {
	case l <- string(b):
	default:
	}
	return len(b), nil
}

// TestRefusal: what the authority refuses is an error that names the host, and nothing is kept.
func TestRefusal(t *testing.T) {
	t.Parallel()
	a, ca := newAuthority(t)
	m := open(t, a, ca, slog.DiscardHandler)
	a.listener = "127.0.0.1:1" // nobody is there
	if err := m.obtain(t.Context()); err == nil || !strings.Contains(err.Error(), "bireme.test") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(m.file("cert.pem")); err == nil || m.cert != nil || len(m.challenges) > 0 {
		t.Errorf("kept: %v", m.challenges)
	}
}
