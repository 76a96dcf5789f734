package config

import (
	"net/netip"
	"strings"

	"bireme.dev/bireme/internal/dstack/config/tree"
)

// fleetReader reads fleets.
type fleetReader struct{ runReader }

func (r fleetReader) fleet(f *fields) *Fleet {
	out := &Fleet{
		Type: KindFleet, Name: f.optText("name"), Placement: f.word("placement", "any", "cluster"),
		Blocks: Blocks{Count: 1}, Nodes: opt(f, "nodes", r.fleetNodes), Reservation: f.optText("reservation"),
		Resources: opt(f, "resources", r.resources), Backends: optItems(f, "backends", r.backend),
		Regions: f.optTexts("regions"), AvailabilityZones: f.optTexts("availability_zones"),
		InstanceTypes: f.optTexts("instance_types"), SpotPolicy: f.word("spot_policy", spotPolicies...),
		Retry: opt(f, "retry", r.retry), MaxPrice: opt(f, "max_price", r.above(0)),
		IdleDuration: opt(f, "idle_duration", r.idle), Tags: r.tags(f), BackendOptions: r.backendOptions(f),
		SSH: opt(f, "ssh_config", r.sshConfig), Env: r.env(f),
	}
	if n, p := f.get("blocks"); n != nil {
		out.Blocks, _ = r.blocks(n, p)
	}
	if !r.request && f.on("env") && !f.given("ssh_config") {
		f.failAt("env", "is for fleets of SSH hosts only")
	}
	return out
}

func (r fleetReader) blocks(n *tree.Node, p *path) (Blocks, bool) {
	if n.Form == tree.Text && n.Text == "auto" {
		return Blocks{Auto: true}, true
	}
	v, ok := n.Whole()
	if !ok || v < 1 || v > anyInt {
		r.fail(n, p, typeValue, "must be auto or a number from 1 on, not %s", n.Describe())
		return Blocks{}, false
	}
	return Blocks{Count: int(v)}, true
}

// fleetNodes reads N, a..b, a.., ..b and {min, target, max}.
func (r fleetReader) fleetNodes(n *tree.Node, p *path) (out FleetNodes, ok bool) {
	if n.Form == tree.Mapping {
		return r.nodesMapping(n, p)
	}
	v, ok := r.counts(n, p)
	if !ok {
		return out, false
	}
	out.Min = int(Value(v.Min))
	out.Target = out.Min
	if v.Max != nil {
		most := int(*v.Max)
		out.Max = &most
	}
	if out.Min < 0 {
		r.fail(n, p, typeValue, "must not be negative")
		return out, false
	}
	return out, true
}

func (r fleetReader) nodesMapping(n *tree.Node, p *path) (out FleetNodes, ok bool) {
	f := &fields{r: r.reader, n: n, p: p}
	before := len(r.faults)
	out.Min = Value(opt(f, "min", r.bounded(0, anyInt)))
	out.Target = out.Min
	if t := opt(f, "target", r.bounded(0, anyInt)); t != nil {
		out.Target = *t
	}
	out.Max = opt(f, "max", r.bounded(0, anyInt))
	f.done()
	switch {
	case len(r.faults) > before:
		return out, false
	case out.Target < out.Min:
		f.failAt("target", "must not be less than min")
	case out.Max != nil && *out.Max < out.Min:
		f.failAt("max", "must not be less than min")
	case out.Max != nil && *out.Max < out.Target:
		f.failAt("max", "must not be less than target")
	default:
		return out, true
	}
	return out, false
}

func (r fleetReader) sshConfig(n *tree.Node, p *path) (out SSHConfig, ok bool) {
	f := r.mapping(n, p, "a mapping with hosts")
	if f == nil {
		return out, false
	}
	out = SSHConfig{
		User: f.optText("user"), Port: opt(f, "port", r.bounded(-anyInt, anyInt)), IdentityFile: f.optText("identity_file"),
		SSHKey: opt(f, "ssh_key", r.sshKey), ProxyJump: opt(f, "proxy_jump", r.sshProxy),
		Hosts: items(f, "hosts", r.sshHost), Network: opt(f, "network", r.network),
	}
	f.need("hosts")
	f.done()
	if out.Network != nil {
		for i := range out.Hosts {
			if out.Hosts[i].InternalIP != nil {
				f.failAt("network", "cannot be combined with internal_ip of hosts")
				break
			}
		}
	}
	return out, true
}

func (r fleetReader) sshHost(n *tree.Node, p *path) (h SSHHost, ok bool) {
	if n.Form != tree.Mapping {
		h.Hostname, ok = r.text(n, p)
		h.Short = true
		return h, ok
	}
	f := &fields{r: r.reader, n: n, p: p}
	h = SSHHost{
		Hostname: f.needText("hostname"), Port: opt(f, "port", r.bounded(-anyInt, anyInt)), User: f.optText("user"),
		IdentityFile: f.optText("identity_file"), ProxyJump: opt(f, "proxy_jump", r.sshProxy),
		InternalIP: opt(f, "internal_ip", r.privateIP), SSHKey: opt(f, "ssh_key", r.sshKey),
		Blocks: opt(f, "blocks", r.blocks),
	}
	f.done()
	return h, true
}

func (r fleetReader) sshProxy(n *tree.Node, p *path) (out SSHProxy, ok bool) {
	f := r.mapping(n, p, "a mapping with hostname, user and identity_file")
	if f == nil {
		return out, false
	}
	out = SSHProxy{
		Hostname: f.needText("hostname"), Port: opt(f, "port", r.bounded(-anyInt, anyInt)), User: f.needText("user"),
		IdentityFile: f.needText("identity_file"), SSHKey: opt(f, "ssh_key", r.sshKey),
	}
	f.done()
	return out, true
}

func (r fleetReader) sshKey(n *tree.Node, p *path) (k SSHKey, ok bool) {
	f := r.mapping(n, p, "a mapping with public and private")
	if f == nil {
		return k, false
	}
	k = SSHKey{Public: f.needText("public"), Private: f.optText("private")}
	f.done()
	return k, true
}

func (r fleetReader) privateIP(n *tree.Node, p *path) (string, bool) {
	s, ok := r.text(n, p)
	if !ok {
		return "", false
	}
	a, err := netip.ParseAddr(s)
	if err != nil {
		r.fail(n, p, typeValue, "%s is not an IP address", tree.Quote(s))
		return "", false
	}
	if !isPrivate(a) {
		r.fail(n, p, typeValue, "%s is not a private address", s)
		return "", false
	}
	return s, true
}

func (r fleetReader) network(n *tree.Node, p *path) (string, bool) {
	s, ok := r.text(n, p)
	if !ok {
		return "", false
	}
	text := s
	if !strings.Contains(text, "/") {
		if a, err := netip.ParseAddr(text); err == nil {
			text = netip.PrefixFrom(a, a.BitLen()).String()
		}
	}
	pre, err := netip.ParsePrefix(text)
	if err != nil {
		r.fail(n, p, typeValue, "%s is not a network such as 10.0.0.0/24", tree.Quote(s))
		return "", false
	}
	if !isPrivate(pre.Masked().Addr()) || !isPrivate(lastOf(pre)) {
		r.fail(n, p, typeValue, "%s is not a private network", s)
		return "", false
	}
	return s, true
}

// reserved are the networks beside those of net/netip that no public host is in, as IANA lists them.
var reserved = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("240.0.0.0/4"), netip.MustParsePrefix("2001:db8::/32"),
}

// lastOf is the last address of a network.
func lastOf(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().AsSlice()
	for i := p.Bits(); i < 8*len(b); i++ {
		b[i/8] |= 1 << (7 - i%8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

func isPrivate(a netip.Addr) bool {
	for _, p := range reserved {
		if p.Contains(a) {
			return true
		}
	}
	return a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsUnspecified()
}
