package config

import "time"

// Certificates says how long certificates of the cluster's authority are good. They are renewed by themselves when a
// third of that has passed.
type Certificates struct {
	Node   Duration `yaml:"node"`
	Server Duration `yaml:"server"`
}

func defaultCertificates() Certificates {
	const life = Duration(30 * 24 * time.Hour)
	return Certificates{Node: life, Server: life}
}

func (d *decoder) checkCertificates(c *Config) {
	for path, life := range map[string]Duration{"certificates.node": c.Certificates.Node,
		"certificates.server": c.Certificates.Server} {
		if l := life.D(); l < time.Second || l > 2*365*24*time.Hour {
			d.at(path, "%s is not between 1s and 730d", life)
		}
	}
}
