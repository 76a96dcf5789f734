package standin

import (
	"fmt"
	"net"

	"bireme.dev/bireme/internal/agent/docker"
	"bireme.dev/bireme/internal/wire"
)

// gangInside is where a container of several keeps what they know of each other: in memory, for a key is among it.
const gangInside = "/.bireme/job"

// gang prepares a container that is one of several of its job. In a network of its own the port of its SSH server is published.
func (s *standIn) gang(spec *docker.Spec, g *wire.Gang) {
	h := &spec.HostConfig
	h.Tmpfs = map[string]string{gangInside: "size=1m,mode=1777,exec"}
	self := g.Peers[g.Rank]
	if s.c.Host {
		return
	}
	spec.Hostname = self.Node
	port := fmt.Sprintf("%d/tcp", self.Port)
	spec.ExposedPorts = map[string]struct{}{port: {}}
	h.PortBindings = map[string][]docker.PortBinding{port: {{HostPort: fmt.Sprint(self.Port)}}}
	for _, p := range g.Peers {
		if ip := net.ParseIP(p.Addr); ip != nil && !ip.IsLoopback() && p.Node != self.Node {
			h.ExtraHosts = append(h.ExtraHosts, p.Node+":"+p.Addr)
		}
	}
}
