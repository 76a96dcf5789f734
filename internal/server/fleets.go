package server

import (
	"net"
	"os"
	"path/filepath"

	"bireme.dev/bireme/internal/backend/ssh"
	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/fleet"
)

// hostKeys is the setting as the login wants it.
func hostKeys(c *config.Fleets) ssh.HostKeys {
	k := ssh.HostKeys{Any: c.HostKeys == config.HostKeysOff}
	if c.HostKeys == config.HostKeysStrict {
		k.File = c.KnownHosts
	}
	return k
}

// newFleets makes the keeper of fleets. The programs it brings to hosts are those beside this one.
func (s *server) newFleets() (*fleet.Fleets, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return fleet.New(fleet.Config{
		Version: s.Version, Servers: s.agentServers(), Authority: s.authority, Drop: s.hub.Drop,
		Bundles:   &ssh.Bundles{From: filepath.Dir(self), Cache: filepath.Join(s.Config.Dir, "fleet")},
		Serve:     func(l net.Listener) error { return s.tunnels.http.ServeTLS(l, "", "") },
		HostKeys:  hostKeys(&s.Config.Fleets),
		Connected: func(n core.NodeName) bool { return s.hub.Live(n).Connected },
	}, s.engine, s.Log), nil
}
