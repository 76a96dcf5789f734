package agent

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	mrand "math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"bireme.dev/bireme/internal/agent/backoff"
	"bireme.dev/bireme/internal/agent/uplink"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

// identity is the node's certificate and the authorities it trusts. Both are replaced while the agent runs.
type identity struct {
	name core.NodeName

	mu    sync.Mutex
	cert  tls.Certificate
	ca    *x509.CertPool
	trust string // SHA-256 of the file of authorities
}

// tls returns the settings of a connection to a server. Streams are upgraded HTTP/1.1, so HTTP/2 is not offered. A
// certificate that has run out is not shown: no server would talk to us then, not even to give us another.
func (id *identity) tls() *tls.Config {
	id.mu.Lock()
	defer id.mu.Unlock()
	c := &tls.Config{RootCAs: id.ca, MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"}}
	if time.Now().Before(id.cert.Leaf.NotAfter) {
		c.Certificates = []tls.Certificate{id.cert}
	}
	return c
}

func (id *identity) ended() bool {
	id.mu.Lock()
	defer id.mu.Unlock()
	return !time.Now().Before(id.cert.Leaf.NotAfter)
}

func (id *identity) leaf() *x509.Certificate {
	id.mu.Lock()
	defer id.mu.Unlock()
	return id.cert.Leaf
}

func (id *identity) trusts() string {
	id.mu.Lock()
	defer id.mu.Unlock()
	return id.trust
}

// due is when the certificate is to be renewed: when a third of its life has passed, or of that which certificates have
// now.
func (id *identity) due(rules wire.CertRules) time.Time {
	id.mu.Lock()
	defer id.mu.Unlock()
	if rules.Trust != "" && rules.Trust != id.trust {
		return time.Now()
	}
	leaf := id.cert.Leaf
	total := leaf.NotAfter.Sub(leaf.NotBefore)
	at := leaf.NotBefore.Add(total / 3)
	if rules.Life > 0 && total > 2*(rules.Life+time.Hour) { // of a server whose certificates lasted for years
		at = leaf.NotBefore
	}
	return at
}

func fileSum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

// request makes a signing request for the key the node has.
func (id *identity) request() (string, error) {
	id.mu.Lock()
	key, ok := id.cert.PrivateKey.(crypto.Signer)
	id.mu.Unlock()
	if !ok {
		return "", errors.New("the node's key cannot sign")
	}
	der, err := x509.CreateCertificateRequest(
		rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: string(id.name)}}, key)
	if err != nil {
		return "", err
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})), nil
}

// renewer keeps the node's certificate good, and the authorities it trusts those of the cluster.
type renewer struct {
	dir  string
	id   *identity
	up   *uplink.Uplink
	poke chan struct{}

	mu    sync.Mutex
	rules wire.CertRules
}

func newRenewer(dir string, id *identity, up *uplink.Uplink) *renewer {
	return &renewer{dir: dir, id: id, up: up, poke: make(chan struct{}, 1)}
}

// settle takes what certificates are to be like.
func (r *renewer) settle(rules wire.CertRules) {
	r.mu.Lock()
	changed := r.rules != rules
	r.rules = rules
	r.mu.Unlock()
	if changed {
		select {
		case r.poke <- struct{}{}:
		default:
		}
	}
}

func (r *renewer) wanted() wire.CertRules {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rules
}

// renewCertificates renews the certificate whenever that is due.
func (a *Agent) renewCertificates(ctx context.Context) error {
	r := a.certs
	leaf := r.id.leaf()
	life := leaf.NotAfter.Sub(leaf.NotBefore)
	back := backoff.Backoff{Least: 200 * time.Millisecond, Most: min(10*time.Minute, max(time.Second, life/10))}
	for {
		wait := time.Until(r.id.due(r.wanted()))
		if wait > 0 { // those that joined together do not come together
			wait += time.Duration(mrand.Int64N(int64(wait)/10 + 1))
		}
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			return nil
		case <-r.poke:
			t.Stop()
			continue
		case <-t.C:
		}
		before := r.id.trusts()
		err := r.renew(ctx)
		if err == nil && before != r.id.trusts() {
			err = r.renew(ctx) // it tells the server what we trust now
		}
		if err == nil {
			back.Reset()
			a.log.Info("certificate renewed", "ends", r.id.leaf().NotAfter.UTC().Format(time.RFC3339))
			if time.Until(r.id.due(r.wanted())) > 0 {
				continue
			}
			err = errors.New("the server gave a certificate that is due at once")
		}
		if ctx.Err() == nil {
			a.log.Warn("the certificate was not renewed", "ends", r.id.leaf().NotAfter.UTC().Format(time.RFC3339), "err", err)
		}
		if !back.Wait(ctx) {
			return nil
		}
	}
}

// renew asks for a certificate for the key the node has, and keeps it.
func (r *renewer) renew(ctx context.Context) error {
	csr, err := r.id.request()
	if err != nil {
		return err
	}
	body, err := json.Marshal(map[string]string{"node": string(r.id.name), "csr": csr, "trust": r.id.trusts()})
	if err != nil {
		return err
	}
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{
		DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			c, _, err := r.up.Dial(ctx)
			return c, err
		},
		DisableKeepAlives: true,
	}}
	var got struct{ Cert, CA string }
	if err := post(ctx, client, "https://bireme/api/v1/renew", body, &got); err != nil {
		return err
	}
	return r.keep([]byte(got.Cert), []byte(got.CA))
}

// keep writes what the server gave and uses it from now on.
func (r *renewer) keep(certPEM, caPEM []byte) error {
	keyPEM, err := os.ReadFile(filepath.Join(r.dir, keyFile))
	if err != nil {
		return err
	}
	next, err := makeIdentity(certPEM, keyPEM, caPEM)
	if err != nil {
		return fmt.Errorf("what the server gave: %w", err)
	}
	if next.name != r.id.name {
		return core.Errorf(core.Invalid, "the server gave the certificate of %s", next.name)
	}
	// The authorities last: what they are is what the server knows of us, and a node that has them must have the
	// certificate.
	if err := writeFile(filepath.Join(r.dir, certFile), certPEM, 0o600); err != nil {
		return err
	}
	if err := writeFile(filepath.Join(r.dir, caFile), caPEM, 0o644); err != nil {
		return err
	}
	r.id.mu.Lock()
	defer r.id.mu.Unlock()
	r.id.cert, r.id.ca, r.id.trust = next.cert, next.ca, next.trust
	return nil
}

func makeIdentity(certPEM, keyPEM, caPEM []byte) (*identity, error) {
	cert, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("the node's certificate: %w", err)
	}
	if cert.Leaf == nil {
		if cert.Leaf, err = x509.ParseCertificate(cert.Certificate[0]); err != nil {
			return nil, fmt.Errorf("the node's certificate: %w", err)
		}
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(bytes.TrimSpace(caPEM)) {
		return nil, core.Errorf(core.Invalid, "the cluster's CA is no certificate in PEM form")
	}
	return &identity{name: core.NodeName(cert.Leaf.Subject.CommonName), cert: cert, ca: pool, trust: fileSum(caPEM)}, nil
}
