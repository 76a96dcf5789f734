package client

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
)

// insecureScheme is plain HTTP by whoever asks for it by name.
const insecureScheme = "http+insecure"

// endpoint is one place where a server listens.
type endpoint struct {
	text  string // as the user wrote it
	base  string // scheme and host for requests
	http  *http.Client
	caSum string            // of the file of authorities, if one was named
	once  http.RoundTripper // for a call whose answer is read to its end at once
}

func newEndpoint(text, ca string) (*endpoint, error) {
	dialer := &net.Dialer{Timeout: 5 * time.Second}
	t := &http.Transport{DialContext: dialer.DialContext, MaxIdleConnsPerHost: 32, DisableCompression: true}
	e := &endpoint{text: text, http: &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}}
	if path, ok := strings.CutPrefix(text, "unix:"); ok {
		path = strings.TrimPrefix(path, "//")
		e.base = "http://bireme"
		e.http.Transport = &socketTrip{dialer: dialer, path: path}
		e.once = &socketTrip{dialer: dialer, path: path, plain: true}
		return e, nil
	}
	e.once = t
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || !slices.Contains([]string{"http", "https", insecureScheme}, u.Scheme) {
		return nil, fmt.Errorf("server %q: want https://HOST:PORT or unix:PATH", text)
	}
	switch u.Scheme {
	case "http":
		return nil, fmt.Errorf("server %q: nobody can tell who answers there, and whoever does would get scripts, "+
			"environments and tokens: "+
			"use https://%s with the cluster's CA (BIREME_CA), or %s://%[2]s if only a proxy of your own can be there", text,
			u.Host, insecureScheme)
	case insecureScheme:
		u.Scheme = "http"
	}
	e.base = strings.TrimRight(u.Scheme+"://"+u.Host+u.Path, "/")
	if u.Scheme == "https" {
		t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
		if ca != "" {
			pem, err := os.ReadFile(ca)
			if err != nil {
				return nil, fmt.Errorf("read the CA to trust: %w", err)
			}
			pool := x509.NewCertPool()
			if !pool.AppendCertsFromPEM(pem) {
				return nil, fmt.Errorf("%s holds no certificate in PEM", ca)
			}
			t.TLSClientConfig.RootCAs, e.caSum = pool, fileSum(pem)
		}
	}
	return e, nil
}

func isCertError(err error) bool {
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	var verify *tls.CertificateVerificationError
	return errors.As(err, &unknown) || errors.As(err, &host) || errors.As(err, &invalid) || errors.As(err, &verify)
}
