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
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/seal"
)

// Vault keeps sealed bytes; a store is one. Sealed fails when there are none under the name; PutSealed keeps the first.
type Vault interface {
	Sealed(ctx context.Context, name string) ([]byte, error)
	PutSealed(ctx context.Context, name string, data []byte) error
}

// How long certificates are good. Nothing renews a node's yet, so it lives as long as hardware does.
const (
	authorityLife = 20 * 365 * 24 * time.Hour
	nodeLife      = 10 * 365 * 24 * time.Hour
	backdate      = time.Hour // clocks of nodes differ
)

// SealedName is what the authority lies under in the vault.
const SealedName = "ca"

// Organizational units of a node's certificate.
const (
	unitCompute   = "compute"
	unitLogin     = "login"
	unitTrustRoot = "trust-root"
)

// Authority signs certificates of one cluster.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
	now  func() time.Time
	seal *seal.Ring
}

// Open reads the authority from the vault, or makes it when there is none. missing tells whether an error of the vault
// means "none there".
func Open(ctx context.Context, v Vault, missing func(error) bool, ring *seal.Ring, cluster string) (*Authority, error) {
	data, err := v.Sealed(ctx, SealedName)
	if err != nil && !missing(err) {
		return nil, fmt.Errorf("read the certificate authority: %w", err)
	}
	if err != nil {
		made, err := makeAuthority(cluster)
		if err != nil {
			return nil, err
		}
		sealed, err := ring.Seal(SealedName, made)
		if err != nil {
			return nil, err
		}
		if err := v.PutSealed(ctx, SealedName, sealed); err != nil {
			return nil, fmt.Errorf("keep the certificate authority: %w", err)
		}
		if data, err = v.Sealed(ctx, SealedName); err != nil { // another replica may have been first
			return nil, fmt.Errorf("read the certificate authority back: %w", err)
		}
	}
	plain, err := ring.Unseal(SealedName, data)
	if err != nil {
		return nil, fmt.Errorf("the key in %s does not open this cluster's certificate authority: %w", ring.Path(), err)
	}
	a, err := parseAuthority(plain)
	if err != nil {
		return nil, err
	}
	a.seal = ring
	return a, nil
}

// Seal closes a secret under a name; only Unseal under the same name, with the same key file, opens it.
func (a *Authority) Seal(name string, plain []byte) ([]byte, error) { return a.seal.Seal(name, plain) }

// Secret makes 32 bytes for a name, always the same ones, which nobody without the authority's key can.
func (a *Authority) Secret(name string) []byte {
	der, err := a.key.Bytes()
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

// makeAuthority gives key and certificate as PEM.
func makeAuthority(cluster string) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the authority's key: %w", err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: "Bireme " + cluster},
		NotBefore: now.Add(-backdate), NotAfter: now.Add(authorityLife),
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

func parseAuthority(text []byte) (*Authority, error) {
	a := &Authority{now: time.Now}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		switch block.Type {
		case "PRIVATE KEY":
			k, err := x509.ParsePKCS8PrivateKey(block.Bytes)
			if err != nil {
				return nil, fmt.Errorf("the authority's key: %w", err)
			}
			key, ok := k.(*ecdsa.PrivateKey)
			if !ok {
				return nil, errors.New("the authority's key is not of the kind we made")
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
		return nil, errors.New("the certificate authority in the store is not whole")
	}
	return a, nil
}

// PEM is the authority's certificate, for clients and nodes.
func (a *Authority) PEM() []byte { return a.pem }

// Pool holds the authority alone.
func (a *Authority) Pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

// Server makes a certificate for the names and addresses the server is reached under.
func (a *Authority) Server(names []string) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make the server's key: %w", err)
	}
	now := a.now()
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: "biremed server"},
		NotBefore: now.Add(-backdate), NotAfter: now.Add(nodeLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else if n != "" {
			template.DNSNames = append(template.DNSNames, n)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("sign the server's certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der, a.cert.Raw}, PrivateKey: key}, nil
}

// Node says who a node's certificate speaks for.
type Node struct {
	Name      core.NodeName
	Roles     core.NodeRole
	TrustRoot bool
}

// Sign makes a certificate for a node from its signing request. What the request says of itself is ignored: only its
// key is taken.
func (a *Authority) Sign(csrPEM []byte, n Node) ([]byte, error) {
	block, _ := pem.Decode(csrPEM)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return nil, core.Errorf(core.Invalid, "csr: a PEM block CERTIFICATE REQUEST is wanted")
	}
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, core.Errorf(core.Invalid, "csr: %v", err)
	}
	if err := csr.CheckSignature(); err != nil {
		return nil, core.Errorf(core.Invalid, "csr: %v", err)
	}
	now := a.now()
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: string(n.Name), OrganizationalUnit: units(n)},
		NotBefore: now.Add(-backdate), NotAfter: now.Add(nodeLife),
		// Not to serve with: a node that joined under the name of the server's host must not pass for the server.
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, csr.PublicKey, a.key)
	if err != nil {
		return nil, fmt.Errorf("sign node %s: %w", n.Name, err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

// Issue makes a key and a certificate for a node that is brought both.
func (a *Authority) Issue(n Node) (keyPEM, certPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make the key of node %s: %w", n.Name, err)
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		return nil, nil, fmt.Errorf("make the key of node %s: %w", n.Name, err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("make the key of node %s: %w", n.Name, err)
	}
	certPEM, err = a.Sign(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: csr}), n)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), certPEM, err
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
	n.Name = core.NodeName(cert.Subject.CommonName)
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
