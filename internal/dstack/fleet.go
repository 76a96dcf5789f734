package dstack

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
)

// Fleet is a configuration of `type: fleet` that has been read and checked.
type Fleet struct {
	File      string // for messages
	Name      string // "" when the file gives none
	Placement string
	Network   string // the hosts reach each other by their addresses in it; "": by those they are logged into at
	Hosts     []FleetHost

	env    []variable // of their agents
	all    FleetHost  // what ssh_config says for hosts that do not
	blocks int32      // of hosts that do not say
}

// FleetHost is one of ssh_config.hosts.
type FleetHost struct {
	SSHLogin
	Jump       *SSHLogin
	InternalIP string
	Blocks     int32 // core.BlocksAuto: auto

	node *yaml.Node
	path string
}

// SSHLogin says where and as whom to log in.
type SSHLogin struct {
	Hostname     string
	Port         int32
	User         string
	IdentityFile string // the private key, on the user's machine
}

// TypeOf is the type a configuration says it is; "" when it says nothing that can be read.
func TypeOf(src []byte) string {
	var head struct {
		Type string `yaml:"type"`
	}
	if yaml.Unmarshal(src, &head) != nil {
		return ""
	}
	return head.Type
}

const cloudOnly = "fleets of cloud machines are planned for 0.6; list existing hosts under ssh_config"

// fleetKeys, sshKeys, hostKeys and jumpKeys are the grammar of a fleet.
var (
	fleetKeys = map[string]readKey{
		"type":       func(*reader, *yaml.Node, string) {},
		"name":       (*reader).fleetName,
		"placement":  (*reader).placement,
		"blocks":     func(r *reader, n *yaml.Node, path string) { r.readBlocks(n, path, &r.fleet.blocks) },
		"ssh_config": (*reader).sshConfig,
		"env":        (*reader).fleetEnv,

		"nodes": refused(cloudOnly), "resources": refused(cloudOnly), "backends": refused(cloudOnly),
		"regions":            refused(cloudOnly),
		"availability_zones": refused(cloudOnly), "instance_types": refused(cloudOnly), "reservation": refused(cloudOnly),
		"spot_policy": refused(cloudOnly), "retry": refused(cloudOnly), "max_price": refused(cloudOnly),
		"idle_duration": refused(cloudOnly),
		"tags":          refused(cloudOnly), "backend_options": refused(cloudOnly),
	}
	sshKeys = map[string]readKey{
		"user":          textKey(func(r *reader) *string { return &r.fleet.all.User }),
		"port":          func(r *reader, n *yaml.Node, path string) { r.readPort(n, path, &r.fleet.all.Port) },
		"identity_file": textKey(func(r *reader) *string { return &r.fleet.all.IdentityFile }),
		"proxy_jump":    func(r *reader, n *yaml.Node, path string) { r.fleet.all.Jump = r.readJump(n, path) },
		"hosts":         (*reader).hosts,
		"network":       (*reader).network,
	}
)

// textKey reads a string into a place; null leaves it.
func textKey(to func(r *reader) *string) readKey {
	return func(r *reader, n *yaml.Node, path string) {
		if isNull(n) {
			return
		}
		if s, ok := r.text(n, path); ok {
			*to(r) = s
		}
	}
}

// ParseFleet reads a configuration. file is only a name for messages. All faults come in one error.
func ParseFleet(file string, src []byte) (*Fleet, error) {
	if len(src) > MaxSize {
		return nil, core.Errorf(core.TooLarge, "%s: the configuration exceeds %d bytes: it has %d", file, MaxSize, len(src))
	}
	r := &reader{faults: faults{file: file}, fleet: &Fleet{File: file, Placement: core.PlaceAny, blocks: 1}}
	root, err := r.document(src)
	if err != nil {
		return nil, err
	}
	r.mapping(root, "", fleetKeys)
	if len(r.list) == 0 {
		r.completeHosts(root)
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	return r.fleet, nil
}

func (r *reader) fleetName(n *yaml.Node, path string) {
	if isNull(n) {
		return
	}
	s, ok := r.text(n, path)
	if !ok {
		return
	}
	if err := CheckFleetName(s); err != nil {
		r.add(n, path, "%s", err.Error())
		return
	}
	r.fleet.Name = s
}

func (r *reader) placement(n *yaml.Node, path string) {
	if isNull(n) {
		return
	}
	switch s, ok := r.text(n, path); {
	case !ok:
	case s == core.PlaceAny || s == core.PlaceCluster:
		r.fleet.Placement = s
	default:
		r.add(n, path, "must be any or cluster, not %s", kindOf(n))
	}
}

func (r *reader) readBlocks(n *yaml.Node, path string, to *int32) {
	if isNull(n) {
		return
	}
	if n.Kind == yaml.ScalarNode && n.Value == "auto" {
		*to = core.BlocksAuto
		return
	}
	v, ok := integer(n)
	if !ok || v < 1 || v > 1<<16 {
		r.add(n, path, "must be auto or a number of blocks, at least 1, not %s", kindOf(n))
		return
	}
	*to = int32(v)
}

func (r *reader) readPort(n *yaml.Node, path string, to *int32) {
	if isNull(n) {
		return
	}
	if v, ok := r.bounded(n, path, 1, 65535); ok {
		*to = int32(v)
	}
}

func (r *reader) sshConfig(n *yaml.Node, path string) {
	if n.Kind != yaml.MappingNode {
		r.add(n, path, "must be a mapping with hosts, not %s", kindOf(n))
		return
	}
	r.mapping(n, path, sshKeys)
}

func (r *reader) readJump(n *yaml.Node, path string) *SSHLogin {
	if isNull(n) {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		r.add(n, path, "must be a mapping with hostname, user and identity_file, not %s", kindOf(n))
		return nil
	}
	j := &SSHLogin{}
	r.mapping(n, path, map[string]readKey{
		"hostname":      func(r *reader, n *yaml.Node, p string) { r.hostname(n, p, &j.Hostname) },
		"port":          func(r *reader, n *yaml.Node, p string) { r.readPort(n, p, &j.Port) },
		"user":          textKey(func(*reader) *string { return &j.User }),
		"identity_file": textKey(func(*reader) *string { return &j.IdentityFile }),
	})
	for _, need := range [][2]string{{"hostname", j.Hostname}, {"user", j.User}, {"identity_file", j.IdentityFile}} {
		if need[1] == "" && len(r.list) == 0 {
			r.add(n, path, "needs %s", need[0])
		}
	}
	return j
}

func (r *reader) hostname(n *yaml.Node, path string, to *string) {
	s, ok := r.text(n, path)
	switch {
	case !ok:
	case strings.Contains(s, "@"):
		r.add(n, path, "%q: give the user with the key user", clip(s))
	case s == "" || strings.ContainsAny(s, " \t\n/"):
		r.add(n, path, "%q is not a host name or address", clip(s))
	default:
		*to = s
	}
}

func (r *reader) hosts(n *yaml.Node, path string) {
	items, ok := r.items(n, path)
	if !ok {
		return
	}
	for i, item := range items {
		h := FleetHost{node: item, path: index(path, i)}
		switch item.Kind {
		case yaml.MappingNode:
			r.mapping(item, h.path, map[string]readKey{
				"hostname":      func(r *reader, n *yaml.Node, p string) { r.hostname(n, p, &h.Hostname) },
				"port":          func(r *reader, n *yaml.Node, p string) { r.readPort(n, p, &h.Port) },
				"user":          textKey(func(*reader) *string { return &h.User }),
				"identity_file": textKey(func(*reader) *string { return &h.IdentityFile }),
				"proxy_jump":    func(r *reader, n *yaml.Node, p string) { h.Jump = r.readJump(n, p) },
				"blocks":        func(r *reader, n *yaml.Node, p string) { r.readBlocks(n, p, &h.Blocks) },
				"internal_ip":   func(r *reader, n *yaml.Node, p string) { r.internalIP(n, p, &h.InternalIP) },
			})
			if h.Hostname == "" && len(r.list) == 0 {
				r.add(item, h.path, "needs hostname")
			}
		default:
			r.hostname(item, h.path, &h.Hostname)
		}
		r.fleet.Hosts = append(r.fleet.Hosts, h)
	}
}

func (r *reader) fleetEnv(n *yaml.Node, path string) {
	if !isNull(n) {
		r.env(n, path)
	}
}

// network reads a private network, whose bits beyond its prefix do not matter (as dstack 0.22.5).
func (r *reader) network(n *yaml.Node, path string) {
	if isNull(n) {
		return
	}
	s, ok := r.text(n, path)
	if !ok {
		return
	}
	net, err := core.PrivateNetwork(s)
	if err != nil {
		r.add(n, path, "%s", err.Error())
		return
	}
	r.fleet.Network = net.String()
}

// internalIP reads the address other hosts reach one by. As with dstack 0.22.5 it is a private one.
func (r *reader) internalIP(n *yaml.Node, path string, to *string) {
	if isNull(n) {
		return
	}
	s, ok := r.text(n, path)
	if !ok {
		return
	}
	ip, err := netip.ParseAddr(s)
	if err != nil || !ip.IsPrivate() && !ip.IsLoopback() {
		r.add(n, path, "%q is not a private address", clip(s))
		return
	}
	*to = s
}

// completeHosts gives hosts what ssh_config says for all, and looks at them as a whole.
func (r *reader) completeHosts(root *yaml.Node) {
	f := r.fleet
	if len(f.Hosts) == 0 {
		r.add(root, "ssh_config.hosts", "a fleet needs hosts")
	}
	inner := 0
	for i := range f.Hosts {
		h := &f.Hosts[i]
		if h.User == "" {
			h.User = f.all.User
		}
		if h.Port == 0 {
			h.Port = f.all.Port
		}
		if h.IdentityFile == "" {
			h.IdentityFile = f.all.IdentityFile
		}
		if h.Jump == nil {
			h.Jump = f.all.Jump
		}
		if h.Blocks == 0 {
			h.Blocks = f.blocks
		}
		if h.InternalIP != "" {
			inner++
		}
		if h.User == "" {
			r.add(h.node, h.path, "%s has no user: give it one here or in ssh_config", h.Hostname)
		}
		if h.IdentityFile == "" {
			r.add(h.node, h.path, "%s has no identity_file: give it one here or in ssh_config", h.Hostname)
		}
	}
	if inner > 0 && f.Network != "" {
		r.add(root, "ssh_config.network", "cannot be combined with internal_ip of hosts")
	}
	if inner > 0 && inner < len(f.Hosts) {
		r.add(root, "ssh_config.hosts", "internal_ip is given for all hosts or for none")
	}
}

// FleetOptions are what is given beside the file.
type FleetOptions struct {
	Env    []string                          // NAME=VALUE or NAME; wins over the file's
	Lookup func(name string) (string, bool)  // of the caller's environment
	Read   func(file string) ([]byte, error) // of a key's file
}

// Spec is the fleet as the server wants it.
func (f *Fleet) Spec(o *FleetOptions) (*client.FleetSpec, error) {
	bad := &faults{file: f.File}
	s := &client.FleetSpec{Placement: f.Placement, Network: f.Network, Keys: map[string]string{}}
	s.Env = environment(bad, f.env, o.Env, o.Lookup)
	login := func(h *FleetHost, l *SSHLogin) client.SSHLogin {
		if _, known := s.Keys[l.IdentityFile]; !known {
			text, err := o.Read(l.IdentityFile)
			if err == nil && !strings.Contains(string(text), "PRIVATE KEY") {
				err = fmt.Errorf("%s is not a private key", l.IdentityFile)
			}
			if err != nil && !slices.ContainsFunc(bad.list, func(x core.Fault) bool {
				return strings.HasSuffix(x.Message, err.Error())
			}) {
				bad.add(h.node, h.path, "identity_file: %s", err.Error())
			}
			if err == nil {
				s.Keys[l.IdentityFile] = string(text)
			}
		}
		return client.SSHLogin{Hostname: l.Hostname, Port: l.Port, User: l.User, Key: l.IdentityFile}
	}
	for i := range f.Hosts {
		h := &f.Hosts[i]
		x := client.FleetHostSpec{SSHLogin: login(h, &h.SSHLogin), InternalIP: h.InternalIP, Blocks: h.Blocks}
		if h.Jump != nil {
			j := login(h, h.Jump)
			x.Jump = &j
		}
		s.Hosts = append(s.Hosts, x)
	}
	return s, bad.err()
}
