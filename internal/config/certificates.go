package config

import (
	"net"
	"time"
)

// Certificates says how long certificates of the cluster's authority are good. They are renewed by themselves when a
// third of that has passed.
type Certificates struct {
	Node   Duration `yaml:"node"`
	Server Duration `yaml:"server"`
}

// Bounds of a certificate's lifetime. With less than an hour certificates are renewed all the time, and a node that is
// away for a moment drops out; a cluster on loopback, which is a trial, may have less.
const (
	leastCertificate      = time.Hour
	leastTrialCertificate = time.Second
	mostCertificate       = 2 * 365 * 24 * time.Hour
)

func defaultCertificates() Certificates {
	const life = Duration(30 * 24 * time.Hour)
	return Certificates{Node: life, Server: life}
}

func (d *decoder) checkCertificates(c *Config) {
	least := leastCertificate
	if onLoopback(c.Server.Listen) && onLoopback(c.Server.AgentListen) {
		least = leastTrialCertificate
	}
	for path, life := range map[string]Duration{
		"certificates.node":   c.Certificates.Node,
		"certificates.server": c.Certificates.Server,
	} {
		if l := life.D(); l < least || l > mostCertificate {
			d.at(path, "%s is not between %s and 730d", life, Duration(least))
		}
	}
}

// onLoopback reports whether an address to listen on can be reached from this host only. None can be reached at all.
func onLoopback(addr string) bool {
	if addr == "" {
		return true
	}
	host, _, err := net.SplitHostPort(addr)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}
