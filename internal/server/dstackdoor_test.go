package server_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/servertest"
)

// writePair makes a certificate of a public authority, which signs itself here, and its key.
func writePair(t *testing.T) (certFile, keyFile string, pool *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(7), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, block := range map[string]*pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool = x509.NewCertPool()
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool.AddCert(cert)
	return certFile, keyFile, pool
}

// TestDstackDoor: dstack's clients are answered with the administrator's certificate, or in plain HTTP on loopback.
func TestDstackDoor(t *testing.T) {
	t.Parallel()
	cert, key, pool := writePair(t)
	for _, set := range [][]string{
		{"dstack.listen=127.0.0.1:0", "dstack.certificate=" + cert, "dstack.key=" + key},
		{"dstack.listen=127.0.0.1:0"},
	} {
		s := servertest.Start(t, set...)
		if secure := strings.HasPrefix(s.Info.Dstack, "https://"); secure != (len(set) > 1) {
			t.Errorf("%v: %s", set, s.Info.Dstack)
		}
		h := &http.Client{Transport: &http.Transport{
			DisableKeepAlives: true,
			TLSClientConfig:   &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
		}}
		resp, err := h.Get(s.Info.Dstack + "/healthcheck")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || strings.TrimSpace(string(body)) != `{"status":"running"}` {
			t.Errorf("%v: %v %s", set, err, body)
		}
	}
}

func TestDstackDoorIsNotOpenToAnybody(t *testing.T) {
	t.Parallel()
	for want, set := range map[string][]string{
		"loopback only":                   {"dstack.listen=0.0.0.0:3000"},
		"certificate and key go together": {"dstack.listen=0.0.0.0:3000", "dstack.certificate=/x"},
		"is not HOST:PORT":                {"dstack.listen=here"},
		"is not a URL that begins with https://": {
			"dstack.acme_hosts=a.example.org", "dstack.acme_directory=acme.example.org/directory",
		},
		"is not an address such as":               {"dstack.acme_hosts=a.example.org", "dstack.acme_email=the admin"},
		"has no effect without dstack.acme_hosts": {"dstack.acme_email=admin@example.org"},
		"is not a host's full name":               {"dstack.listen=0.0.0.0:443", "dstack.acme_hosts=10.0.0.1"},
		"cannot be combined with dstack.certificate": {
			"dstack.listen=0.0.0.0:443", "dstack.acme_hosts=a.example.org", "dstack.certificate=/x", "dstack.key=/y",
		},
	} {
		_, err := config.Parse("", nil, set...)
		if faults := core.FaultsOf(err); len(faults) != 1 || !strings.Contains(faults[0].Message, want) {
			t.Errorf("%v: %v %v", set, err, faults)
		}
	}
	for _, with := range []string{"dstack.plain_http=true", "dstack.acme_hosts=bireme.example.org"} {
		if _, err := config.Parse("", nil, "dstack.listen=0.0.0.0:3000", with); err != nil {
			t.Error(err)
		}
	}
}
