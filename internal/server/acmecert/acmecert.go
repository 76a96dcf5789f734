// Package acmecert keeps the certificate of a listener from an ACME authority (RFC 8555), such as Let's Encrypt: it
// proves that the names are the server's by TLS-ALPN-01 (RFC 8737) on the listener itself, and renews in time.
package acmecert

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/acme"
)

// Options are what a certificate is for and who gives it.
type Options struct {
	Hosts     []string // names in the certificate
	Email     string   // whom the authority writes to; empty: nobody
	Directory string   // URL of the authority; empty: Let's Encrypt
	CA        string   // PEM file of the authority's own certificate authority; empty: the system's
	Dir       string   // folder of the account's key and the certificate
	Log       *slog.Logger
}

// Manager has the certificate.
type Manager struct {
	o Options

	mu         sync.Mutex
	cert       *tls.Certificate
	challenges map[string]*tls.Certificate // by name, while the authority asks
}

// Open reads the certificate that there is.
func Open(o Options) (*Manager, error) {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	}
	m := &Manager{o: o, challenges: map[string]*tls.Certificate{}}
	pair, err := tls.LoadX509KeyPair(m.file("cert.pem"), m.file("cert.pem"))
	if err == nil {
		m.cert = &pair
	} else if !errors.Is(err, os.ErrNotExist) {
		o.Log.Warn("the ACME certificate cannot be read; a new one is asked for", "err", err)
	}
	return m, nil
}

func (m *Manager) file(name string) string { return filepath.Join(m.o.Dir, name) }

// TLS is the configuration of the listener.
func (m *Manager) TLS() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1", acme.ALPNProto}, GetCertificate: m.get,
	}
}

func (m *Manager) get(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	name := strings.TrimSuffix(strings.ToLower(hello.ServerName), ".")
	if slices.Contains(hello.SupportedProtos, acme.ALPNProto) {
		if c := m.challenges[name]; c != nil {
			return c, nil
		}
		return nil, fmt.Errorf("no ACME challenge for %q is open", name)
	}
	if m.cert == nil {
		return nil, errors.New("there is no certificate yet; the server's log says why")
	}
	return m.cert, nil
}

// Pauses between two attempts after a failure. Authorities count failures by the hour.
const (
	firstPause = time.Minute
	maxPause   = time.Hour
)

// Run asks for the certificate, and again when two thirds of its time are over, until ctx ends.
func (m *Manager) Run(ctx context.Context) {
	pause := firstPause
	for {
		wait := m.due(time.Now())
		if wait <= 0 {
			err := m.obtain(ctx)
			if ctx.Err() != nil {
				return
			}
			if err == nil {
				m.o.Log.Info("the ACME certificate was renewed", "hosts", m.o.Hosts)
				if wait = m.due(time.Now()); wait > 0 {
					pause = firstPause
					continue
				}
				err = errors.New("the new certificate is to be renewed at once: is the clock right?")
			}
			m.o.Log.Error("no ACME certificate", "hosts", m.o.Hosts, "err", err, "again", pause)
			wait, pause = pause, min(2*pause, maxPause)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(min(wait, 24*time.Hour)):
		}
	}
}

// due is how long the certificate is good for before it is renewed.
func (m *Manager) due(now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cert == nil {
		return 0
	}
	leaf := m.cert.Leaf
	for _, h := range m.o.Hosts {
		if leaf.VerifyHostname(h) != nil {
			return 0 // the settings have changed
		}
	}
	return leaf.NotBefore.Add(leaf.NotAfter.Sub(leaf.NotBefore) * 2 / 3).Sub(now)
}

// obtain gets a new certificate and stores it.
func (m *Manager) obtain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	c, err := m.client()
	if err != nil {
		return err
	}
	account := &acme.Account{}
	if m.o.Email != "" {
		account.Contact = []string{"mailto:" + m.o.Email}
	}
	if _, err := c.Register(ctx, account, acme.AcceptTOS); err != nil && !errors.Is(err, acme.ErrAccountAlreadyExists) {
		return fmt.Errorf("account: %w", err)
	}
	order, err := c.AuthorizeOrder(ctx, acme.DomainIDs(m.o.Hosts...))
	if err != nil {
		return fmt.Errorf("order: %w", err)
	}
	for _, url := range order.AuthzURLs {
		if err := m.authorize(ctx, c, url); err != nil {
			return err
		}
	}
	if order, err = c.WaitOrder(ctx, order.URI); err != nil {
		return fmt.Errorf("order: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{DNSNames: m.o.Hosts}, key)
	if err != nil {
		return err
	}
	chain, _, err := c.CreateOrderCert(ctx, order.FinalizeURL, csr, true)
	if err != nil {
		return fmt.Errorf("certificate: %w", err)
	}
	return m.store(chain, key)
}

// client is the account at the authority, whose key is made once.
func (m *Manager) client() (*acme.Client, error) {
	c := &acme.Client{DirectoryURL: m.o.Directory, UserAgent: "bireme"}
	if m.o.CA != "" {
		text, err := os.ReadFile(m.o.CA)
		if err != nil {
			return nil, err
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s has no certificate", m.o.CA)
		}
		c.HTTPClient = &http.Client{Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
			DisableKeepAlives: true,
		}}
	}
	text, err := os.ReadFile(m.file("account.pem"))
	if err == nil {
		block, _ := pem.Decode(text)
		if block == nil {
			return nil, fmt.Errorf("%s has no key", m.file("account.pem"))
		}
		c.Key, err = x509.ParseECPrivateKey(block.Bytes)
		return c, err
	}
	if !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	c.Key = key
	block, err := keyBlock(key)
	if err != nil {
		return nil, err
	}
	return c, replace(m.file("account.pem"), block)
}

// authorize proves that a name is the server's.
func (m *Manager) authorize(ctx context.Context, c *acme.Client, url string) error {
	z, err := c.GetAuthorization(ctx, url)
	if err != nil || z.Status == acme.StatusValid {
		return err
	}
	name := z.Identifier.Value
	i := slices.IndexFunc(z.Challenges, func(x *acme.Challenge) bool { return x.Type == "tls-alpn-01" })
	if i < 0 {
		return fmt.Errorf("%s: the authority offers no tls-alpn-01", name)
	}
	cert, err := c.TLSALPN01ChallengeCert(z.Challenges[i].Token, name)
	if err != nil {
		return err
	}
	m.challenge(name, &cert)
	defer m.challenge(name, nil)
	if _, err := c.Accept(ctx, z.Challenges[i]); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if _, err := c.WaitAuthorization(ctx, z.URI); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (m *Manager) challenge(name string, cert *tls.Certificate) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if cert == nil {
		delete(m.challenges, name)
		return
	}
	m.challenges[name] = cert
}

// store keeps a certificate with its key, in one file, and uses it.
func (m *Manager) store(chain [][]byte, key *ecdsa.PrivateKey) error {
	text, err := keyBlock(key)
	if err != nil {
		return err
	}
	for _, der := range chain {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	pair, err := tls.X509KeyPair(text, text)
	if err != nil {
		return err
	}
	if err := replace(m.file("cert.pem"), text); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cert = &pair
	return nil
}

func keyBlock(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), err
}

// replace writes a file that only its owner reads, all at once.
func replace(name string, text []byte) error {
	if err := os.WriteFile(name+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}
