package server

import (
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/acmecert"
)

// openDstackDoor listens for dstack's clients, with the administrator's certificate, one of an ACME authority, or
// without TLS; nil: not at all.
func (s *server) openDstackDoor() (*door, error) {
	set := &s.Config.Dstack
	if set.Listen == "" {
		return nil, nil
	}
	var conf *tls.Config
	switch {
	case len(set.ACMEHosts) > 0:
		m, err := acmecert.Open(acmecert.Options{
			Hosts: set.ACMEHosts, Email: set.ACMEEmail, Directory: set.ACMEDirectory, CA: set.ACMECA,
			Dir: filepath.Join(s.Config.Dir, "acme"), Log: s.Log,
		})
		if err != nil {
			return nil, core.Errorf(core.Unavailable, "dstack.acme_hosts: %v", err)
		}
		s.acme, conf = m, m.TLS()
	case set.Certificate != "":
		pair := &certFiles{cert: set.Certificate, key: set.Key}
		if _, err := pair.get(nil); err != nil {
			return nil, core.Errorf(core.Invalid, "dstack.certificate: %v", err)
		}
		conf = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: pair.get}
	}
	l, err := s.ports.tcp("dstack", set.Listen)
	if err != nil {
		return nil, core.Errorf(core.Unavailable, "the door of dstack's clients: %v", err)
	}
	return s.newDoor("dstack", l, conf), nil
}

// certFiles is a certificate that others renew: its files are read again when they have changed.
type certFiles struct {
	cert, key string

	mu      sync.Mutex
	checked time.Time
	changed [2]time.Time
	pair    *tls.Certificate
}

// recheckCert is how often the files of a certificate are looked at.
const recheckCert = 10 * time.Second

func (c *certFiles) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if c.pair != nil && now.Sub(c.checked) < recheckCert {
		return c.pair, nil
	}
	c.checked = now
	var at [2]time.Time
	for i, name := range []string{c.cert, c.key} {
		info, err := os.Stat(name)
		if err != nil {
			return c.keep(err)
		}
		at[i] = info.ModTime()
	}
	if c.pair != nil && at == c.changed {
		return c.pair, nil
	}
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil { // one of the two may have been replaced, and the other not yet
		return c.keep(err)
	}
	c.pair, c.changed = &pair, at
	return c.pair, nil
}

// keep continues with the certificate that there is.
func (c *certFiles) keep(err error) (*tls.Certificate, error) {
	if c.pair == nil {
		return nil, fmt.Errorf("%s, %s: %w", c.cert, c.key, err)
	}
	return c.pair, nil
}

// url is what clients are told to call; empty: there is no such door.
func (d *door) url() string {
	switch {
	case d == nil:
		return ""
	case d.tls:
		return "https://" + d.address()
	}
	return "http://" + d.address()
}
