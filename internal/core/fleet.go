package core

import (
	"fmt"
	"net/netip"
	"strings"
)

// Fleet is a pool of nodes and how they are come by: here, hosts that are reached by SSH.
type Fleet struct {
	Name string `json:"name"`
	// whose members see it, whose managers may delete it and whose jobs alone run on it; empty: it is everybody's
	Project   ProjectName `json:"project,omitempty"`
	By        UserName    `json:"by,omitempty"` // who made it
	Created   Time        `json:"created"`
	Placement string      `json:"placement,omitempty"` // PlaceAny (or empty), PlaceCluster
	Network   string      `json:"network,omitempty"`   // hosts reach each other by their addresses in it
	Env       FleetEnv    `json:"env,omitzero"`
	Hosts     []FleetHost `json:"hosts,omitempty"`
	Next      int32       `json:"next,omitempty"` // number of the next host: none is used twice
	Keys      []FleetKey  `json:"keys,omitempty"`
	Leaving   bool        `json:"leaving,omitempty"` // it goes with the last of its hosts
	// Spec is what a client of dstack sent for it, as JSON, without keys and variables; empty: it was made by others.
	Spec string `json:"spec,omitempty"`
}

// Where the nodes of a fleet are, as seen from each other.
const (
	PlaceAny     = "any"
	PlaceCluster = "cluster" // joined well enough for jobs on several of them
)

// BlocksAuto splits a host into as many blocks as there can be.
const BlocksAuto = -1

// FleetHost is a host of a fleet and the node it is. What it takes to reach it is the user's word; the rest was found
// out.
type FleetHost struct {
	Num    int32    `json:"num"`
	Node   NodeName `json:"node"`
	Login  SSHLogin `json:"login"`
	Jump   SSHLogin `json:"jump,omitzero"`    // it is reached through; no Host: directly
	Addr   string   `json:"addr,omitempty"`   // other nodes reach it by; empty: Login.Host
	Blocks int32    `json:"blocks,omitempty"` // 0: one

	HostKey string `json:"host_key,omitempty"` // it first showed, in the form of known_hosts
	JumpKey string `json:"jump_key,omitempty"` // of the host it is reached through
	Peer    string `json:"peer,omitempty"`     // address it was reached at, if directly
	Cert    string `json:"cert,omitempty"`     // hash of the certificate its agent has; no other is let in
	Runs    string `json:"runs,omitempty"`     // what its agent was last started with
	Cause   string `json:"cause,omitempty"`    // why it cannot be used; empty: it can, or nobody has tried
	Since   Time   `json:"since,omitempty"`    // of Cause
	Leaving bool   `json:"leaving,omitempty"`  // its agent is to be removed, and then it goes
}

// FleetEnv is the environment of a fleet's agents.
type FleetEnv struct {
	Names  []string `json:"names,omitempty"`
	Sealed string   `json:"sealed,omitempty"` // base64; the same text for the same variables
}

// PrivateNetwork reads a network that is not reachable from everywhere. Bits beyond its prefix do not matter.
func PrivateNetwork(text string) (netip.Prefix, error) {
	net, err := netip.ParsePrefix(text)
	if err != nil {
		return net, fmt.Errorf("%q is not a network; expected ADDRESS/BITS", text)
	}
	net = net.Masked()
	last := net.Addr().AsSlice()
	for i := net.Bits(); i < 8*len(last); i++ {
		last[i/8] |= 0x80 >> (i % 8)
	}
	end, _ := netip.AddrFromSlice(last) // of the length it had
	for _, ip := range []netip.Addr{net.Addr(), end} {
		if !ip.IsPrivate() && !ip.IsLoopback() {
			return net, fmt.Errorf("%q is not a private network", text)
		}
	}
	return net, nil
}

// SSHLogin says where and as whom to log in.
type SSHLogin struct {
	Host string `json:"host,omitempty"`
	Port int32  `json:"port,omitempty"` // 0: 22
	User string `json:"user,omitempty"`
	Key  string `json:"key,omitempty"` // fingerprint of one of the fleet's keys
}

// At is where the login is: HOST:PORT.
func (l *SSHLogin) At() string {
	port := l.Port
	if port == 0 {
		port = 22
	}
	if strings.Contains(l.Host, ":") {
		return fmt.Sprintf("[%s]:%d", l.Host, port)
	}
	return fmt.Sprintf("%s:%d", l.Host, port)
}

// FleetKey is a private key, sealed by the server.
type FleetKey struct {
	Fingerprint string `json:"fingerprint"` // SHA256:…
	Public      string `json:"public"`      // in the form of authorized_keys
	Sealed      string `json:"sealed"`      // base64
}

// Place tells two hosts apart: behind different jump hosts the same address is different hosts.
func (h *FleetHost) Place() string {
	if h.Jump.Host == "" {
		return h.Login.At()
	}
	return h.Login.At() + " through " + h.Jump.At()
}

// Host finds a host by number; nil if there is none.
func (f *Fleet) Host(num int32) *FleetHost {
	for i := range f.Hosts {
		if f.Hosts[i].Num == num {
			return &f.Hosts[i]
		}
	}
	return nil
}

// NodeOf names the node of a host.
func (f *Fleet) NodeOf(num int32) NodeName { return NodeName(fmt.Sprintf("%s-%d", f.Name, num)) }

// SeenBy reports whether somebody with a role in its project, or an administrator, gets to see a fleet.
func (f *Fleet) SeenBy(by Identity, in Role) bool {
	return by.Admin || f.Project == "" || in != RoleNone
}

// FleetPlan is what applying a fleet does, or would.
type FleetPlan struct {
	Action  string   `json:"action"`            // "create", "update", "none"
	Added   []string `json:"added,omitempty"`   // hosts
	Removed []string `json:"removed,omitempty"` // "
	Changed []string `json:"changed,omitempty"` // " with what changes
}

// Split works out how many blocks a node of this hardware has that should have so many (BlocksAuto: as many as can be).
// As in dstack, its CPUs and its GPUs of each kind must divide.
func (h *Hardware) Split(want int32) (int32, error) {
	gpus := int64(0)
	for _, g := range h.Gres {
		if g.Name == "gpu" {
			gpus += g.Count
		}
	}
	n := max(1, want)
	if want == BlocksAuto {
		if n = h.CPUs; gpus > 0 {
			n = int32(min(int64(n), gpus))
		}
	}
	bad := n < 1 || h.CPUs%n != 0
	what := fmt.Sprintf("%d CPUs", h.CPUs)
	for _, g := range h.Gres {
		if g.Name == "gpu" {
			bad = bad || g.Count%int64(n) != 0
			what += fmt.Sprintf(" and %d GPUs", g.Count)
		}
	}
	if bad {
		return 0, Errorf(Conflict, "%s cannot be divided into %d equal blocks", what, n).Because("invalid_blocks")
	}
	return n, nil
}
