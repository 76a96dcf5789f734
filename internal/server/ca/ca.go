package ca

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/seal"
)

// Vault keeps sealed bytes; a store is one. Sealed fails when there are none under the name; PutSealed keeps the first.
type Vault interface {
	Sealed(ctx context.Context, name string) ([]byte, error)
	PutSealed(ctx context.Context, name string, data []byte) error
}

// Defaults of Lives, and what is not a setting.
const (
	authorityLife = 20 * 365 * 24 * time.Hour
	defaultLife   = 30 * 24 * time.Hour
	maxBackdate   = time.Hour // clocks of nodes differ
)

// Lives are how long certificates are good. They are renewed when a third of that has passed.
type Lives struct {
	Node   time.Duration
	Server time.Duration
}

// SealedName is what the authority lies under in the vault.
const SealedName = "ca"

// Organizational units of a node's certificate.
const (
	unitCompute   = "compute"
	unitLogin     = "login"
	unitTrustRoot = "trust-root"
)

// Authority signs certificates of one cluster. While its key is being replaced it has two issuers: see Begin and
// Finish.
type Authority struct {
	vault   Vault
	missing func(error) bool
	cluster string
	lives   Lives
	now     func() time.Time
	seal    *seal.Ring
	root    *issuer // the first there was; secrets are derived from its key, whoever signs now

	trust atomic.Pointer[trust]
	steps sync.Mutex // held by Begin and Finish
	srv   serverCert
}

// issuer is a key that signs and its certificate.
type issuer struct {
	num  int // in the order they were made
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
	made time.Time
}

// trust is which issuers are good. nodes signs nodes' certificates; server signs the server's own.
type trust struct {
	issuers       []*issuer
	nodes, server *issuer
	pem           []byte
	sum           string
	pool          *x509.CertPool
	known         map[string]bool // sums of what was to be trusted at any time
}

func newTrust(issuers []*issuer) *trust {
	t := &trust{issuers: issuers, server: issuers[0], nodes: issuers[len(issuers)-1], pool: x509.NewCertPool()}
	for _, i := range issuers {
		t.pem = append(t.pem, i.pem...)
		t.pool.AddCert(i.cert)
	}
	t.sum = BundleSum(t.pem)
	return t
}

// BundleSum names a file of authorities.
func BundleSum(pem []byte) string {
	s := sha256.Sum256(pem)
	return hex.EncodeToString(s[:])
}

// KeySum names a public key, given as a certificate or a signing request holds it.
func KeySum(spki []byte) string {
	s := sha256.Sum256(spki)
	return hex.EncodeToString(s[:])
}

// Open reads the authority from the vault, or makes it when there is none. missing reports whether an error of the
// vault means "none there".
func Open(ctx context.Context, v Vault, missing func(error) bool, ring *seal.Ring, cluster string, lives Lives) (
	*Authority, error,
) {
	a := &Authority{vault: v, missing: missing, cluster: cluster, lives: lives, now: time.Now, seal: ring}
	if a.lives.Node <= 0 {
		a.lives.Node = defaultLife
	}
	if a.lives.Server <= 0 {
		a.lives.Server = defaultLife
	}
	data, err := v.Sealed(ctx, SealedName)
	if err != nil && !missing(err) {
		return nil, fmt.Errorf("read the certificate authority: %w", err)
	}
	if err != nil {
		if data, err = a.makeIssuer(ctx, SealedName); err != nil {
			return nil, err
		}
	}
	plain, err := ring.Unseal(SealedName, data)
	if err != nil {
		return nil, fmt.Errorf("the key in %s does not open this cluster's certificate authority: %w", ring.Path(), err)
	}
	if a.root, err = parseIssuer(plain, 0); err != nil {
		return nil, err
	}
	return a, a.loadRotations(ctx)
}

// makeIssuer makes and stores a key with its certificate, and gives what is stored then: another replica may have been
// first.
func (a *Authority) makeIssuer(ctx context.Context, name string) ([]byte, error) {
	made, err := makeAuthority(a.cluster)
	if err != nil {
		return nil, err
	}
	if err := a.put(ctx, name, made); err != nil {
		return nil, err
	}
	data, err := a.vault.Sealed(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("read the certificate authority back: %w", err)
	}
	return data, nil
}

// put stores a secret under the key that is the present one until it is stored: whoever reseals finds it then.
func (a *Authority) put(ctx context.Context, name string, plain []byte) error {
	defer a.seal.Hold()()
	sealed, err := a.seal.Seal(name, plain)
	if err != nil {
		return err
	}
	if err := a.vault.PutSealed(ctx, name, sealed); err != nil {
		return fmt.Errorf("keep the certificate authority: %w", err)
	}
	return nil
}

// Seal closes a secret under a name; only Unseal under the same name, with the same key file, opens it.
func (a *Authority) Seal(name string, plain []byte) ([]byte, error) { return a.seal.Seal(name, plain) }

// Secret makes 32 bytes for a name, always the same ones, which nobody without the authority's key can.
func (a *Authority) Secret(name string) []byte {
	der, err := a.root.key.Bytes()
	if err != nil {
		panic(err) // a key of P-256 that signs has its bytes
	}
	mac := hmac.New(sha256.New, der)
	mac.Write([]byte("bireme secret\x00" + name))
	return mac.Sum(nil)
}

// Unseal opens what Seal closed.
func (a *Authority) Unseal(name string, sealed []byte) ([]byte, error) {
	return a.seal.Unseal(name, sealed)
}

// makeAuthority returns key and certificate as PEM.
func makeAuthority(cluster string) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the authority's key: %w", err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: "Bireme " + cluster},
		NotBefore: now.Add(-maxBackdate), NotAfter: now.Add(authorityLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("make the authority's certificate: %w", err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode the authority's key: %w", err)
	}
	return append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...), nil
}

func parseIssuer(text []byte, num int) (*issuer, error) {
	a := &issuer{num: num}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		switch block.Type {
		case "PRIVATE KEY":
			k, err := x509.ParsePKCS8PrivateKey(block.Bytes)
			if err != nil {
				return nil, fmt.Errorf("the authority's key: %w", err)
			}
			key, ok := k.(*ecdsa.PrivateKey)
			if !ok {
				return nil, errors.New("the authority's key has an unexpected type")
			}
			a.key = key
		case "CERTIFICATE":
			cert, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				return nil, fmt.Errorf("the authority's certificate: %w", err)
			}
			a.cert, a.pem = cert, pem.EncodeToMemory(block)
		}
	}
	if a.key == nil || a.cert == nil {
		return nil, errors.New("the certificate authority in the store is incomplete")
	}
	a.made = a.cert.NotBefore.Add(maxBackdate)
	return a, nil
}

// PEM is what clients and nodes are to trust: one certificate, or two while the authority is being replaced.
func (a *Authority) PEM() []byte { return a.trust.Load().pem }

// Sum names what PEM gives.
func (a *Authority) Sum() string { return a.trust.Load().sum }

// Pool holds what PEM gives.
func (a *Authority) Pool() *x509.CertPool { return a.trust.Load().pool }

// Life is how long a node's certificate is good.
func (a *Authority) Life() time.Duration { return a.lives.Node }

// backdate is how long before its making a certificate begins. A short life has a short one: a third of what is between
// beginning and end is when it is renewed.
func backdate(life time.Duration) time.Duration { return min(maxBackdate, life/3) }

// Server makes a certificate for the names and addresses the server is reached under.
func (a *Authority) Server(names []string) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make the server's key: %w", err)
	}
	now, life, by := a.now(), a.lives.Server, a.trust.Load().server
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: "biremed server"},
		NotBefore: now.Add(-backdate(life)), NotAfter: now.Add(life),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else if n != "" {
			template.DNSNames = append(template.DNSNames, n)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.cert, &key.PublicKey, by.key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("sign the server's certificate: %w", err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der, by.cert.Raw}, PrivateKey: key, Leaf: leaf}, nil
}

// unitServer is in the certificate that a server shows another one.
const unitServer = "server"

// Between makes a certificate that a server shows another server of the cluster. It is no node's.
func (a *Authority) Between() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make the server's key: %w", err)
	}
	now, life, by := a.now(), a.lives.Server, a.trust.Load().server
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: "biremed server", OrganizationalUnit: []string{unitServer}},
		NotBefore: now.Add(-backdate(life)), NotAfter: now.Add(life),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, by.cert, &key.PublicKey, by.key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("sign the server's certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// IsServer reports whether a verified certificate is a server's for other servers.
func IsServer(cert *x509.Certificate) bool {
	return slices.Equal(cert.Subject.OrganizationalUnit, []string{unitServer})
}

// Node says who a node's certificate speaks for.
type Node struct {
	Name      core.NodeName
	Roles     core.NodeRole
	TrustRoot bool
	Key       string // KeySum of the key that was shown
}

// Request reads a node's signing request. Its signature is not checked: Sign does that.
func Request(csrPEM []byte) (csr *x509.CertificateRequest, key string, err error) {
	block, _ := pem.Decode(csrPEM)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return nil, "", core.Errorf(core.Invalid, "csr: expected a PEM block CERTIFICATE REQUEST")
	}
	if csr, err = x509.ParseCertificateRequest(block.Bytes); err != nil {
		return nil, "", core.Errorf(core.Invalid, "csr: %v", err)
	}
	switch csr.PublicKeyAlgorithm {
	case x509.ECDSA, x509.Ed25519:
	default: // large keys of other kinds cost more to check than they are worth
		return nil, "", core.Errorf(core.Invalid, "csr: a key of type %v: expected ECDSA or Ed25519", csr.PublicKeyAlgorithm)
	}
	return csr, KeySum(csr.RawSubjectPublicKeyInfo), nil
}

// Sign makes a certificate for a node from its signing request. What the request says of itself is ignored: only its
// key is taken.
func (a *Authority) Sign(csr *x509.CertificateRequest, n Node) (certPEM []byte, ends time.Time, err error) {
	now := a.now()
	certPEM, err = a.SignAt(csr, n, now)
	return certPEM, now.Add(a.lives.Node), err
}

// SignAt is Sign at another time.
func (a *Authority) SignAt(csr *x509.CertificateRequest, n Node, now time.Time) ([]byte, error) {
	if err := csr.CheckSignature(); err != nil {
		return nil, core.Errorf(core.Invalid, "csr: %v", err)
	}
	life, by := a.lives.Node, a.trust.Load().nodes
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: string(n.Name), OrganizationalUnit: units(n)},
		NotBefore: now.Add(-backdate(life)), NotAfter: now.Add(life),
		// Not to serve with: a node that joined under the name of the server's host must not pass for the server.
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.cert, csr.PublicKey, by.key)
	if err != nil {
		return nil, fmt.Errorf("sign node %s: %w", n.Name, err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

// Issued is a key with its certificate, for a node that is brought both.
type Issued struct {
	Key, Cert []byte // PEM
	Sum       string // KeySum of the key
	Ends      time.Time
}

// Issue makes a key and a certificate.
func (a *Authority) Issue(n Node) (*Issued, error) {
	out := &Issued{}
	err := func() error {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return err
		}
		der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
		if err != nil {
			return err
		}
		csr, err := x509.ParseCertificateRequest(der)
		if err != nil {
			return err
		}
		pkcs, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			return err
		}
		out.Key, out.Sum = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs}),
			KeySum(csr.RawSubjectPublicKeyInfo)
		out.Cert, out.Ends, err = a.Sign(csr, n)
		return err
	}()
	if err != nil {
		return nil, fmt.Errorf("make the key of node %s: %w", n.Name, err)
	}
	return out, nil
}

func units(n Node) []string {
	var u []string
	if n.Roles&core.Compute != 0 {
		u = append(u, unitCompute)
	}
	if n.Roles&core.Login != 0 {
		u = append(u, unitLogin)
	}
	if n.TrustRoot {
		u = append(u, unitTrustRoot)
	}
	return u
}

// NodeOf reads who a verified certificate speaks for; ok is false for one that is not a node's.
func NodeOf(cert *x509.Certificate) (n Node, ok bool) {
	n.Name, n.Key = core.NodeName(cert.Subject.CommonName), KeySum(cert.RawSubjectPublicKeyInfo)
	for _, u := range cert.Subject.OrganizationalUnit {
		switch u {
		case unitCompute:
			n.Roles |= core.Compute
		case unitLogin:
			n.Roles |= core.Login
		case unitTrustRoot:
			n.TrustRoot = true
		}
	}
	return n, n.Name != "" && n.Roles != 0
}

func serial() *big.Int {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	core.Assert(err == nil, "the system's random source fails: %v", err)
	return n
}
