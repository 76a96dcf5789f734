package ca

import (
	"context"
	"crypto/tls"
	"fmt"
	"sync"
	"time"

	"bireme.dev/bireme/internal/core"
)

// The authority is replaced in two steps, each one record in the vault that is never changed, so that a server which
// dies between or within them continues where it was:
//
//	ca.1       Begin: there is a second issuer. Both are trusted; nodes get certificates of the new one, and with them
//	           both authorities to trust; the server still shows a certificate of the old one, which everybody knows.
//	ca.1.only  Finish: the old issuer is trusted no more, and the server shows a certificate of the new one.

func rotationName(num int) string { return fmt.Sprintf("%s.%d", SealedName, num) }
func finishedName(num int) string { return rotationName(num) + ".only" }

// loadRotations follows the steps that were taken.
func (a *Authority) loadRotations(ctx context.Context) error {
	issuers := []*issuer{a.root}
	known := map[string]bool{newTrust(issuers).sum: true}
	for num := 1; ; num++ {
		data, err := a.vault.Sealed(ctx, rotationName(num))
		if err != nil && a.missing(err) {
			break
		}
		if err != nil {
			return fmt.Errorf("read the certificate authority: %w", err)
		}
		plain, err := a.seal.Unseal(rotationName(num), data)
		if err != nil {
			return fmt.Errorf("the certificate authority's record %s: %w", rotationName(num), err)
		}
		next, err := parseIssuer(plain, num)
		if err != nil {
			return err
		}
		issuers = append(issuers, next)
		known[newTrust(issuers).sum] = true
		switch _, err := a.vault.Sealed(ctx, finishedName(num)); {
		case err == nil:
			issuers = issuers[len(issuers)-1:]
			known[newTrust(issuers).sum] = true
		case !a.missing(err):
			return fmt.Errorf("read the certificate authority: %w", err)
		}
	}
	t := newTrust(issuers)
	t.known = known
	a.trust.Store(t)
	a.srv.forget()
	return nil
}

// Begin makes a new issuer beside the present one.
func (a *Authority) Begin(ctx context.Context) error {
	a.steps.Lock()
	defer a.steps.Unlock()
	t := a.trust.Load()
	if len(t.issuers) > 1 {
		return core.Errorf(core.Conflict, "the certificate authority is already being replaced").Because("ca_rotating")
	}
	if _, err := a.makeIssuer(ctx, rotationName(t.nodes.num+1)); err != nil {
		return err
	}
	return a.loadRotations(ctx)
}

// Finish drops the old issuer.
func (a *Authority) Finish(ctx context.Context) error {
	a.steps.Lock()
	defer a.steps.Unlock()
	t := a.trust.Load()
	if len(t.issuers) < 2 {
		return core.Errorf(core.Conflict, "the certificate authority is not being replaced").Because("ca_not_rotating")
	}
	if err := a.put(ctx, finishedName(t.nodes.num), []byte("only")); err != nil {
		return err
	}
	return a.loadRotations(ctx)
}

// Knows reports whether a file of authorities, by its BundleSum, is or was this cluster's.
func (a *Authority) Knows(sum string) bool { return a.trust.Load().known[sum] }

// Issuer describes an issuer that is trusted.
type Issuer struct {
	Num     int       `json:"num"`
	Made    core.Time `json:"made"`
	Ends    core.Time `json:"ends"`
	Serial  string    `json:"serial"`
	Nodes   bool      `json:"signs_nodes"`
	Servers bool      `json:"signs_server"`
}

// Issuers lists those that are trusted, the oldest first.
func (a *Authority) Issuers() []Issuer {
	t := a.trust.Load()
	var out []Issuer
	for _, i := range t.issuers {
		out = append(out, Issuer{
			Num: i.num, Made: core.At(i.made), Ends: core.At(i.cert.NotAfter), Serial: fmt.Sprintf("%x", i.cert.SerialNumber),
			Nodes: i == t.nodes, Servers: i == t.server,
		})
	}
	return out
}

// serverCert is the certificate the server shows now.
type serverCert struct {
	mu    sync.Mutex
	conf  *tls.Config
	renew time.Time
}

func (s *serverCert) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conf = nil
}

// TLS returns the settings of a listener whose certificate is renewed by itself and whose trust follows the authority.
// names tells what the server is reached under.
func (a *Authority) TLS(names func() []string) *tls.Config {
	base := &tls.Config{
		// streams are upgraded HTTP/1.1 connections
		ClientAuth: tls.VerifyClientCertIfGiven, MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"},
		SessionTicketsDisabled: true, // a resumed session would outlive what its certificate was trusted for
	}
	base.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		s := &a.srv
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.conf != nil && a.now().Before(s.renew) {
			return s.conf, nil
		}
		cert, err := a.Server(names())
		if err != nil {
			return nil, err
		}
		conf := base.Clone()
		conf.GetConfigForClient = nil
		conf.Certificates, conf.ClientCAs = []tls.Certificate{cert}, a.Pool()
		s.conf, s.renew = conf, a.now().Add(a.lives.Server/3)
		return conf, nil
	}
	return base
}
