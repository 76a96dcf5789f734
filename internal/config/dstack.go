package config

import (
	"net"
	"net/mail"
	"net/url"
	"strings"
	"time"

	"bireme.dev/bireme/internal/core"
)

// Dstack is how the server serves dstack's clients. They know no private certificate authority: those that do not come
// over loopback need a listener with a certificate of a public one.
type Dstack struct {
	// HOST:PORT for dstack's clients, beside server.listen; without a certificate it is plain HTTP on loopback
	Listen      string `yaml:"listen"`
	Certificate string `yaml:"certificate"` // file of the certificate and its chain, PEM; read again when it changes
	Key         string `yaml:"key"`         // file of its private key, PEM
	// names for which the server itself gets the certificate of that listener, in place of certificate and key: by ACME
	// with TLS-ALPN-01, so the authority must reach the listener at port 443 of each of them
	ACMEHosts []string `yaml:"acme_hosts"`
	ACMEEmail string   `yaml:"acme_email"` // whom the authority writes to
	// URL of the authority's directory; empty: Let's Encrypt. Who sets acme_hosts accepts its terms
	ACMEDirectory string `yaml:"acme_directory"`
	ACMECA        string `yaml:"acme_ca"` // PEM file that the directory is checked by; empty: the system's authorities
	// listen without TLS also on addresses that are not loopback: tokens and secrets can then be read on the way
	PlainHTTP bool `yaml:"plain_http"`
	// managers of a project see and change its secrets too, not its administrators alone
	ManagersManageSecrets bool `yaml:"managers_manage_secrets"`
	// a run that finds no free nodes within seconds fails with "no capacity", as in dstack, instead of waiting for them
	FailBusy bool `yaml:"fail_busy"`
	// images of containers that name none, of those with nvcc and of those with docker; empty: dstack's own
	BaseImage   string `yaml:"base_image"`
	DevelImage  string `yaml:"devel_image"`
	DockerImage string `yaml:"docker_image"`
	// the largest archive of files, or of changes to a repository, that is taken
	Upload Size `yaml:"upload"`
	// of all that one user has uploaded
	UploadPerUser Size     `yaml:"upload_per_user"`
	UploadKeep    Duration `yaml:"upload_keep"` // how long an upload is there after its last use
}

func defaultDstack() Dstack {
	return Dstack{
		Upload: Size(8 * core.MiB), UploadPerUser: Size(core.GiB), UploadKeep: Duration(7 * 24 * time.Hour),
	}
}

func (d *decoder) checkDstack(c *Dstack) {
	if (c.Certificate == "") != (c.Key == "") {
		d.at("dstack.certificate", "certificate and key go together")
	}
	d.checkACME(c)
	if c.Upload <= 0 || c.UploadPerUser < c.Upload {
		d.at("dstack.upload", "%s must be more than 0 and at most upload_per_user (%s)", c.Upload, c.UploadPerUser)
	}
	if c.UploadKeep < 0 {
		d.at("dstack.upload_keep", "%s: must not be negative", c.UploadKeep)
	}
	if c.Listen == "" {
		return
	}
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		d.at("dstack.listen", "%q is not HOST:PORT", c.Listen)
		return
	}
	plain := c.Certificate == "" && len(c.ACMEHosts) == 0
	if ip := net.ParseIP(host); plain && !c.PlainHTTP && host != "localhost" && !ip.IsLoopback() {
		d.at("dstack.listen", "%q: without a certificate the server listens on loopback only, unless dstack.plain_http "+
			"says otherwise", c.Listen)
	}
}

func (d *decoder) checkACME(c *Dstack) {
	if len(c.ACMEHosts) > 0 && c.Certificate != "" {
		d.at("dstack.acme_hosts", "cannot be combined with dstack.certificate: one of the two gives the certificate")
	}
	for _, h := range c.ACMEHosts {
		if net.ParseIP(h) != nil || !strings.Contains(h, ".") || strings.ContainsAny(h, "*:/[] ") {
			d.at("dstack.acme_hosts", "%q is not a host's full name, such as bireme.example.org", h)
		}
	}
	if c.ACMEDirectory != "" {
		if u, err := url.Parse(c.ACMEDirectory); err != nil || u.Scheme != "https" || u.Host == "" {
			d.at("dstack.acme_directory", "%q is not a URL that begins with https://", c.ACMEDirectory)
		}
	}
	if c.ACMEEmail != "" {
		if a, err := mail.ParseAddress(c.ACMEEmail); err != nil || a.Address != c.ACMEEmail {
			d.at("dstack.acme_email", "%q is not an address such as admin@example.org", c.ACMEEmail)
		}
	}
	for _, s := range []struct{ name, value string }{
		{"acme_email", c.ACMEEmail}, {"acme_directory", c.ACMEDirectory}, {"acme_ca", c.ACMECA},
	} {
		if s.value != "" && len(c.ACMEHosts) == 0 {
			d.at("dstack."+s.name, "has no effect without dstack.acme_hosts, which names whom the certificate is for")
		}
	}
}
