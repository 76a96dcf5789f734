package ca

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/seal"
)

var errNone = errors.New("none")

type vault map[string][]byte

func (v vault) Sealed(_ context.Context, name string) ([]byte, error) {
	if d, ok := v[name]; ok {
		return d, nil
	}
	return nil, errNone
}

func (v vault) PutSealed(_ context.Context, name string, data []byte) error {
	if _, ok := v[name]; !ok {
		v[name] = data
	}
	return nil
}

func missing(err error) bool { return errors.Is(err, errNone) }

func TestAuthorityIsMadeOnceAndSealed(t *testing.T) {
	t.Parallel()
	v, key := vault{}, filepath.Join(t.TempDir(), "seal.key")
	ring, err := seal.Open(key, true)
	if err != nil {
		t.Fatal(err)
	}
	a, err := Open(t.Context(), v, missing, ring, "c", Lives{})
	if err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(key); err != nil || st.Mode().Perm() != 0o600 {
		t.Fatalf("key file: %v %v", st, err)
	}
	if block, _ := pem.Decode(v["ca"]); block != nil {
		t.Fatal("the store holds the authority in the clear")
	}
	b, err := Open(t.Context(), v, missing, ring, "c", Lives{})
	if err != nil || string(a.PEM()) != string(b.PEM()) {
		t.Fatalf("second start made another authority (%v)", err)
	}
	// Another key file must not open it, and must not replace it.
	other, err := seal.Open(filepath.Join(t.TempDir(), "other"), true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), v, missing, other, "c", Lives{}); err == nil {
		t.Fatal("opened without the key file")
	}
}

func TestNodeCertificate(t *testing.T) {
	t.Parallel()
	ring, err := seal.Open(filepath.Join(t.TempDir(), "seal.key"), true)
	if err != nil {
		t.Fatal(err)
	}
	a, err := Open(t.Context(), vault{}, missing, ring, "c", Lives{})
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		t.Fatal(err)
	}
	want := Node{Name: "n1", Roles: core.Compute | core.Login, TrustRoot: true}
	csr, sum, err := Request(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
	if err != nil {
		t.Fatal(err)
	}
	want.Key = sum
	text, _, err := a.Sign(csr, want)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cert.Verify(
		x509.VerifyOptions{Roots: a.Pool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Fatal(err)
	}
	if got, ok := NodeOf(cert); !ok || got != want {
		t.Fatalf("got %+v", got)
	}
	srv, err := a.Server([]string{"localhost", "127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(srv.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: a.Pool(), DNSName: "127.0.0.1"}); err != nil {
		t.Fatal(err)
	}
	if _, ok := NodeOf(leaf); ok {
		t.Fatal("the server's certificate passes for a node's")
	}
	for _, bad := range []string{"", "x", "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE " +
		"REQUEST-----\n"} {
		if _, _, err := Request([]byte(bad)); core.CodeOf(err) != core.Invalid {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
