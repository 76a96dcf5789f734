package config

import (
	"net"
	"path/filepath"
	"strings"
)

// Audit says where the audit log goes besides the store.
type Audit struct {
	// Export is file:PATH (a JSON object a line), syslog (/dev/log), or syslog:ADDR, where ADDR is a socket's path,
	// udp:HOST:PORT or tcp:HOST:PORT of this machine; empty: nowhere else.
	Export string `yaml:"export"`
}

func (d *decoder) checkAudit(a *Audit) {
	const path = "audit.export"
	kind, rest, _ := strings.Cut(a.Export, ":")
	switch kind {
	case "":
		if a.Export != "" {
			d.at(path, "%q is neither file:PATH nor syslog[:ADDR]", a.Export)
		}
	case "file":
		if !filepath.IsAbs(rest) {
			d.at(path, "%q is not an absolute path", rest)
		}
	case "syslog":
		switch {
		case rest == "", filepath.IsAbs(rest):
		case strings.HasPrefix(rest, "udp:"), strings.HasPrefix(rest, "tcp:"):
			host, _, err := net.SplitHostPort(rest[4:])
			if err != nil {
				d.at(path, "%q is not HOST:PORT", rest[4:])
			} else if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
				d.at(path, "%q is not an address of this machine: syslog is not encrypted, so use a local daemon "+
					"that forwards it", host)
			}
		default:
			d.at(path, "%q: expected /PATH, udp:HOST:PORT or tcp:HOST:PORT", rest)
		}
	default:
		d.at(path, "%q is neither file:PATH nor syslog[:ADDR]", a.Export)
	}
}
