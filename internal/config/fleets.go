package config

import (
	"path/filepath"
	"slices"
	"strings"
)

// Fleets says how the hosts of SSH fleets are come by.
type Fleets struct {
	// HostKeys is what host keys are taken for: accept-new (the first one that a host shows is kept, another one later is
	// refused), strict (only those in KnownHosts), off (any).
	HostKeys   string `yaml:"host_keys"`
	KnownHosts string `yaml:"known_hosts"` // file in the form of ssh's, on the server
}

func defaultFleets() Fleets {
	return Fleets{HostKeys: HostKeysNew, KnownHosts: "/etc/ssh/ssh_known_hosts"}
}

// Ways to judge host keys.
const (
	HostKeysNew    = "accept-new"
	HostKeysStrict = "strict"
	HostKeysOff    = "off"
)

func (d *decoder) checkFleets(c *Config) {
	if ways := []string{HostKeysNew, HostKeysStrict, HostKeysOff}; !slices.Contains(ways, c.Fleets.HostKeys) {
		d.at("fleets.host_keys", "%q: expected one of %s", c.Fleets.HostKeys, strings.Join(ways, ", "))
	}
	if !filepath.IsAbs(c.Fleets.KnownHosts) {
		d.at("fleets.known_hosts", "%q is not an absolute path", c.Fleets.KnownHosts)
	}
}
