package agent

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
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

	"go.uber.org/goleak"

	"bireme.dev/bireme/internal/agent/hardware"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patienceOfTests = 20 * time.Second

// authority is a CA for tests.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pem  []byte
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test CA"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{key, cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

// sign makes a certificate for a public key.
func (a *authority) sign(t testing.TB, name string, pub any) []byte {
	t.Helper()
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour),
		NotAfter:  time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, a.cert, pub, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func (a *authority) server(t testing.TB, h http.Handler) *httptest.Server {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	s := httptest.NewUnstartedServer(h)
	s.TLS = &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{a.sign(t, "server", &key.PublicKey)}, PrivateKey: key}},
		ClientCAs:    pool, ClientAuth: tls.VerifyClientCertIfGiven,
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// fakeServer is a server's side: it takes joins and agents' streams, and lets a test drive them.
type fakeServer struct {
	*httptest.Server
	t        testing.TB
	ca       *authority
	sessions chan *peer   // one for each control stream, after its hello was read
	streams  chan *peer   // srun streams
	api      http.Handler // everything else
	deaf     sync.Map     // "deaf": no streams are taken
}

// peer is one end of a stream in a test.
type peer struct {
	t     testing.TB
	hello wire.NodeHello
	*wire.Conn
	frames chan wire.Frame
	path   string
}

func newFakeServer(t testing.TB) *fakeServer {
	t.Helper()
	f := &fakeServer{t: t, ca: newAuthority(t), sessions: make(chan *peer, 8), streams: make(chan *peer, 8)}
	f.Server = f.ca.server(t, http.HandlerFunc(f.serve))
	return f
}

func (f *fakeServer) serve(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/api/v1/join":
		f.join(w, r)
	case r.Header.Get("Upgrade") == "" && f.api != nil:
		f.api.ServeHTTP(w, r)
	case strings.HasPrefix(r.Header.Get("Upgrade"), "bireme-") && len(r.TLS.PeerCertificates) > 0:
		if _, deaf := f.deaf.Load("deaf"); deaf {
			http.Error(w, "not now", http.StatusServiceUnavailable)
			return
		}
		c, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " +
			r.Header.Get("Upgrade") + "\r\n\r\n")
		rw.Flush()
		f.stream(c, r.URL.Path)
	default:
		http.Error(w, "no", http.StatusForbidden)
	}
}

func (f *fakeServer) stream(c net.Conn, path string) {
	p := &peer{t: f.t, Conn: wire.NewConn(c), frames: make(chan wire.Frame, 4096), path: path}
	defer close(p.frames)
	defer c.Close()
	if path == wire.PathAgent {
		hello, err := p.Next()
		if err != nil || hello.Decode(&p.hello) != nil {
			return
		}
		f.sessions <- p
	} else {
		f.streams <- p
	}
	for {
		fr, err := p.Next()
		if err != nil {
			return
		}
		p.frames <- fr
	}
}

func (f *fakeServer) join(w http.ResponseWriter, r *http.Request) {
	var q struct{ Token, Node, CSR string }
	if json.NewDecoder(r.Body).Decode(&q) != nil || q.Token != "once" {
		w.WriteHeader(http.StatusForbidden)
		json.NewEncoder(w).Encode(map[string]any{"error": core.Errorf(core.Denied, "this token does not work")})
		return
	}
	block, _ := pem.Decode([]byte(q.CSR))
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.ca.sign(f.t, q.Node, csr.PublicKey)})
	json.NewEncoder(w).Encode(map[string]any{"cert": string(cert), "ca": string(f.ca.pem), "servers": []string{f.URL}})
}

// session waits for an agent and welcomes it.
func (f *fakeServer) session(w wire.Welcome) *peer {
	f.t.Helper()
	p := take(f.t, f.sessions, "an agent")
	w.Protocol = wire.AgentProtocol
	if w.Heartbeat == 0 {
		w.Heartbeat = time.Minute
	}
	p.send(wire.TypeWelcome, w)
	return p
}

func take[T any](t testing.TB, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patienceOfTests):
		t.Fatalf("waited in vain for %s", what)
		panic("not reached")
	}
}

func (p *peer) send(t wire.Type, header any, payload ...[]byte) {
	p.t.Helper()
	if err := p.Send(t, header, payload...); err != nil {
		p.t.Fatalf("send frame of type %d: %v", t, err)
	}
}

// want waits for a frame of a type, skipping others, and decodes it.
func (p *peer) want(t wire.Type, into any) wire.Frame {
	p.t.Helper()
	deadline := time.After(patienceOfTests)
	for {
		select {
		case f, open := <-p.frames:
			if !open {
				p.t.Fatalf("the stream ended before a frame of type %d", t)
			}
			if f.Type != t {
				continue
			}
			if err := f.Decode(into); err != nil {
				p.t.Fatal(err)
			}
			return f
		case <-deadline:
			p.t.Fatalf("waited in vain for a frame of type %d", t)
		}
	}
}

// fakeKeeper listens where the agent looks for its keeper.
type fakeKeeper struct {
	t     testing.TB
	spec  KeeperSpec
	conns chan *peer
	mu    sync.Mutex
	hello wire.KeeperHello
	l     net.Listener
	done  chan struct{}
}

func newFakeKeeper(t testing.TB, dir string) *fakeKeeper {
	t.Helper()
	k := &fakeKeeper{t: t, conns: make(chan *peer, 8), spec: KeeperSpec{
		Program: "/nonexistent/bireme-step", Dir: filepath.Join(dir, "keeper"), Socket: filepath.Join(dir, "k.sock"),
		Log: filepath.Join(dir, "keeper.log"),
	}}
	k.start(wire.KeeperHello{Version: 1, Instance: "one", Containment: wire.Weak})
	t.Cleanup(k.stop)
	return k
}

// start begins a keeper that knows what h says.
func (k *fakeKeeper) start(h wire.KeeperHello) {
	k.t.Helper()
	l, err := net.Listen("unix", k.spec.Socket)
	if err != nil {
		k.t.Fatal(err)
	}
	k.l, k.hello, k.done = l, h, make(chan struct{})
	go func() {
		defer close(k.done)
		var wg sync.WaitGroup
		defer wg.Wait()
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { k.serve(c) })
		}
	}()
}

func (k *fakeKeeper) serve(c net.Conn) {
	p := &peer{t: k.t, Conn: wire.NewConn(c), frames: make(chan wire.Frame, 4096)}
	defer close(p.frames)
	defer c.Close()
	if f, err := p.Next(); err != nil || f.Type != wire.TypeHello {
		return
	}
	k.mu.Lock()
	h := k.hello
	k.mu.Unlock()
	if p.Send(wire.TypeKeeperHello, h) != nil {
		return
	}
	k.conns <- p
	for {
		f, err := p.Next()
		if err != nil {
			return
		}
		p.frames <- f
	}
}

func (k *fakeKeeper) stop() {
	k.l.Close()
	select {
	case p := <-k.conns: // one nobody took
		p.Close()
	default:
	}
	<-k.done
}

// startAgent runs a joined agent until the test ends, or the returned function is called.
func startAgent(t testing.TB, s *fakeServer, k *fakeKeeper, dir string) func() {
	t.Helper()
	ca := filepath.Join(dir, "given-ca.pem")
	if err := os.WriteFile(ca, s.ca.pem, 0o644); err != nil {
		t.Fatal(err)
	}
	if !HasJoined(dir, ca) {
		if err := Join(t.Context(), dir, []string{s.URL}, "n1", "once", ca); err != nil {
			t.Fatal(err)
		}
	}
	a, err := New(t.Context(), Options{
		Dir: dir, Servers: []string{s.URL}, Version: "test", Keeper: k.spec, BootID: "boot-1",
		Override: hardware.Override{CPUs: 2, Memory: core.GiB, NoDetect: true},
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	var once sync.Once
	stop := func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("agent: %v", err)
			}
		})
	}
	t.Cleanup(stop)
	return stop
}

// shortDir is a directory whose name leaves room for sockets.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "bireme")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
