package standin

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/agent/docker"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

// gangInside is where a container of several keeps what they know of each other: in memory, for a key is among it.
const gangInside = "/.bireme/job"

// gang prepares a container that is one of several of its job. In a network of its own the port of its SSH server is
// published.
func (s *standIn) gang(spec *docker.Spec, g *wire.Gang) {
	h := &spec.HostConfig
	h.Tmpfs = map[string]string{gangInside: "size=1m,mode=1777,exec"}
	self := g.Peers[g.Rank]
	if s.c.Host {
		return
	}
	spec.Hostname = string(self.Node)
	publish(spec, int32(self.Port), ownAddr(self.Addr), fmt.Sprint(self.Port))
	for _, p := range g.Peers {
		if ip := net.ParseIP(p.Addr); ip != nil && !ip.IsLoopback() && p.Node != self.Node {
			h.ExtraHosts = append(h.ExtraHosts, string(p.Node)+":"+p.Addr)
		}
	}
}

// portTaken reports whether somebody else has the port of a container: in the words of the system, which bireme-init
// and engines pass on, or of an engine that gave it to another container itself.
func portTaken(message string) bool {
	return strings.Contains(message, unix.EADDRINUSE.Error()) || strings.Contains(message, "port is already allocated")
}

// ownAddr is the address by which other nodes reach this one, to listen there and nowhere else; empty where that is not
// an address of an interface, as behind a translation of addresses: then all of them.
func ownAddr(addr string) string {
	ip := net.ParseIP(addr)
	if ip == nil || ip.IsLoopback() {
		return ""
	}
	list, _ := net.InterfaceAddrs() // without them: all
	for _, a := range list {
		if n, ok := a.(*net.IPNet); ok && n.IP.Equal(ip) {
			return addr
		}
	}
	return ""
}

// publish has a port of the container found at an address of the node: under a number, or an empty one for any that is
// free.
func publish(spec *docker.Spec, port int32, addr, host string) {
	name := fmt.Sprintf("%d/tcp", port)
	if spec.ExposedPorts == nil {
		spec.ExposedPorts, spec.HostConfig.PortBindings = map[string]struct{}{}, map[string][]docker.PortBinding{}
	}
	spec.ExposedPorts[name] = struct{}{}
	spec.HostConfig.PortBindings[name] = []docker.PortBinding{{HostIP: addr, HostPort: host}}
}

// tellPorts leaves word of where the job's ports are found on the node. In the node's own network they are where they
// are.
func (s *standIn) tellPorts(ctx context.Context) {
	var list []core.Published
	if s.c.Host {
		for _, p := range s.c.Ports {
			list = append(list, core.Published{Port: p.Container, Host: p.Container})
		}
	} else {
		list, _ = s.engine.Ports(ctx, s.id) // an engine that is gone now is noticed elsewhere
		list = slices.DeleteFunc(list, func(x core.Published) bool {
			return !slices.ContainsFunc(s.c.Ports, func(p core.Port) bool { return p.Container == x.Port })
		})
	}
	if b, err := json.Marshal(list); err == nil && len(list) > 0 {
		s.note("ports", string(b))
	}
}
