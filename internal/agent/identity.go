package agent

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"bireme.dev/bireme/internal/agent/uplink"
	"bireme.dev/bireme/internal/core"
)

// Files of an agent's identity in its directory.
const (
	keyFile  = "node.key"
	certFile = "node.crt"
	caFile   = "ca.pem"
)

// loadIdentity reads what an earlier join left in dir; os.ErrNotExist when there was none. A certificate that has run
// out is good for asking for another one.
func loadIdentity(dir string) (*identity, error) {
	var text [3][]byte
	for i, name := range []string{certFile, keyFile, caFile} {
		var err error
		if text[i], err = os.ReadFile(filepath.Join(dir, name)); err != nil {
			return nil, fmt.Errorf("the node's certificate: %w", err)
		}
	}
	id, err := makeIdentity(text[0], text[1], text[2])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return id, nil
}

func loadCA(file string) (*x509.CertPool, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("the cluster's CA: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(b) {
		return nil, core.Errorf(core.Invalid, "%s holds no certificate in PEM form", file)
	}
	return pool, nil
}

// HasJoined reports whether dir holds a certificate of the cluster whose CA is in the file ca (empty: of any).
func HasJoined(dir, ca string) bool {
	id, err := loadIdentity(dir)
	if err != nil {
		return false
	}
	if ca == "" {
		return true
	}
	pool, err := loadCA(ca)
	if err != nil {
		return false
	}
	leaf := id.cert.Leaf
	_, err = leaf.Verify(x509.VerifyOptions{
		Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		CurrentTime: leaf.NotBefore.Add(time.Second), // one that has run out is renewed
	})
	return err == nil
}

// Forget drops the certificate in dir: the node would have to join again.
func Forget(dir string) error {
	err := os.Remove(filepath.Join(dir, certFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// Join trades a one-time token for the node's certificate and keeps it in dir. ca is the file with the cluster's CA.
func Join(ctx context.Context, dir string, servers []string, name core.NodeName, token, ca string) error {
	pool, err := loadCA(ca)
	if err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	csr, err := x509.CreateCertificateRequest(
		rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: string(name)}}, key)
	if err != nil {
		return err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	body, err := json.Marshal(map[string]string{
		"token": token, "node": string(name),
		"csr": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: csr})),
	})
	if err != nil {
		return err
	}
	client := &http.Client{
		Timeout: 30 * time.Second,
		Transport: &http.Transport{
			TLSClientConfig:   &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13},
			DisableKeepAlives: true,
		},
	}
	var joined struct{ Cert, CA string }
	var errs []error
	for _, server := range servers {
		server = uplink.URL(server)
		err := post(ctx, client, server+"/api/v1/join", body, &joined)
		if err == nil {
			return errors.Join(
				writeFile(filepath.Join(dir, caFile), []byte(joined.CA), 0o644),
				writeFile(filepath.Join(dir, keyFile), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), 0o600),
				writeFile(filepath.Join(dir, certFile), []byte(joined.Cert), 0o600), // last: it makes the join count
			)
		}
		errs = append(errs, fmt.Errorf("join at %s: %w", server, err))
	}
	return errors.Join(errs...)
}

func post(ctx context.Context, client *http.Client, url string, body []byte, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return &core.Error{Code: core.Unavailable, Message: "the server does not answer", Err: err}
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return uplink.Refusal(resp)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(into); err != nil {
		return fmt.Errorf("the server's answer: %w", err)
	}
	return nil
}

// writeFile replaces a file at once, so that a reader sees the old text or the new.
func writeFile(name string, data []byte, mode os.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone after the rename
	_, err = f.Write(data)
	if err := errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return os.Rename(f.Name(), name)
}
