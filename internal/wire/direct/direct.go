// Package direct makes the connections by which nodes reach the caller of a step without the server between. It is
// apart from wire because keepers, which have no use for it, would carry TLS with them.
package direct

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"math/big"
	"net"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

// dialTimeout bounds how long a node tries to reach a caller before it takes the way by the server.
const dialTimeout = 2 * time.Second

// New makes a certificate for one step and its fingerprint.
func New() (*tls.Config, string, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, "", err
	}
	now := time.Now()
	t := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(1, 0, 0)}
	der, err := x509.CreateCertificate(rand.Reader, t, t, public, private)
	if err != nil {
		return nil, "", err
	}
	print := sha256.Sum256(der)
	return &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: private}}, MinVersion: tls.VersionTLS13,
	}, hex.EncodeToString(print[:]), nil
}

// Dial reaches the caller of a step.
func Dial(ctx context.Context, d *wire.Direct, node core.NodeName) (net.Conn, error) {
	ctx, stop := context.WithTimeout(ctx, dialTimeout)
	defer stop()
	cfg := &tls.Config{
		MinVersion:         tls.VersionTLS13,
		InsecureSkipVerify: true, // the name says nothing: it is the very certificate that counts
		VerifyConnection: func(s tls.ConnectionState) error {
			print := sha256.Sum256(s.PeerCertificates[0].Raw)
			if subtle.ConstantTimeCompare([]byte(hex.EncodeToString(print[:])), []byte(d.Print)) != 1 {
				return errors.New("another certificate than the step's")
			}
			return nil
		},
	}
	var last error
	for _, addr := range d.Addrs {
		raw, err := (&net.Dialer{Timeout: dialTimeout / 2}).DialContext(ctx, "tcp", addr)
		if err != nil {
			last = err
			continue
		}
		c := Client(raw, cfg)
		if err = c.HandshakeContext(ctx); err == nil {
			if err = wire.NewConn(c).Send(wire.TypeDirectHello, wire.DirectHello{Secret: d.Secret, Node: node}); err == nil {
				return c, nil
			}
		}
		_ = raw.Close()
		last = err
	}
	return nil, last
}

// HostAddrs are this host's addresses: those that others can reach first.
func HostAddrs() []string {
	list, _ := net.InterfaceAddrs()
	return inOrder(list)
}

// inOrder keeps the order of interfaces: a machine's own come before bridges, which mean nobody elsewhere and may go
// while a step runs.
func inOrder(list []net.Addr) []string {
	var far, six, near []string
	for _, a := range list {
		ip, ok := a.(*net.IPNet)
		switch {
		case !ok || ip.IP.IsLinkLocalUnicast():
		case ip.IP.IsLoopback() && ip.IP.To4() != nil:
			near = append(near, ip.IP.String())
		case ip.IP.To4() != nil:
			far = append(far, ip.IP.String())
		case !ip.IP.IsLoopback():
			six = append(six, ip.IP.String())
		}
	}
	far = append(far, six...)
	return append(far[:min(4, len(far))], near...)
}
