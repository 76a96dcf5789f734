package state

import (
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/fleets"
	"bireme.dev/bireme/internal/engine/state/people"
)

// What can become of a node's key.
const (
	KeyPin    = "pin"    // it is the node's from now on, and no other
	KeyRenew  = "renew"  // a certificate was made for it; one that is new is the node's beside the old one
	KeyUse    = "use"    // it was used: the one before it is dropped
	KeyRevoke = "revoke" // by an administrator: neither the key nor its certificates are good any more
	KeyKeep   = "keep"   // what was found out about the joins of an older server is stored
)

// NodeKey says what becomes of the key that a node is known by. Reply: nil.
type NodeKey struct {
	By        core.Identity // of KeyRevoke
	Node      core.NodeName // KeyKeep: all
	Do        string
	Key       string
	Roles     core.NodeRole // of KeyPin
	TrustRoot bool
	Ends      core.Time // of the certificate
	Cert      string    // hash of its PEM form, for the record of a fleet's host
	CA        string    // the newest authority the node trusts; empty: as before
}

func (*NodeKey) input() {}

func (in *NodeKey) apply(s *State) (None, error) {
	if in.Do == KeyKeep {
		for n := range s.rec.Nodes() {
			if n.Pin != nil && n.Pin.Before != 0 {
				edit := s.nodes.EditRecord(n)
				edit.CommitSilently()
			}
		}
		return none, nil
	}
	n, ok := s.rec.Node(in.Node)
	if !ok {
		return none, core.Errorf(core.NotFound, "there is no node %q", in.Node).Because("invalid_node")
	}
	pin := core.NodePin{}
	if n.Pin != nil {
		pin = *n.Pin
	}
	switch in.Do {
	case KeyPin:
		if slices.Contains(pin.Gone, in.Key) || pin.Revoked && (pin.Key == in.Key || pin.Before != 0) {
			return none, people.ErrRevokedKey(n.Name)
		}
		pin = core.NodePin{
			Key: in.Key, Roles: in.Roles, TrustRoot: in.TrustRoot, Token: pin.Token, Gone: pin.Gone,
			Ends: in.Ends, CA: in.CA,
		}
	case KeyRenew:
		if pin.Revoked || slices.Contains(pin.Gone, in.Key) {
			return none, people.ErrRevokedKey(n.Name)
		}
		if pin.Key != in.Key {
			pin.Next = in.Key
		}
		pin.Ends = in.Ends
		if in.CA != "" {
			pin.CA = in.CA
		}
		in.recordCertificate(s, n)
	case KeyUse:
		if pin.Next != in.Key || pin.Revoked {
			return none, nil // somebody was quicker
		}
		pin.Key, pin.Next = pin.Next, ""
	case KeyRevoke:
		if err := people.AdminOnly(in.By, "may revoke the certificates of nodes"); err != nil {
			return none, err
		}
		pin = people.RevokePin(pin)
	}
	edit := s.nodes.Edit(n)
	edit.Node.Pin = &pin
	if in.Do == KeyRevoke {
		edit.Commit(in.By.User)
	} else {
		edit.CommitSilently()
	}
	return none, nil
}

// pin makes a key the one a node is known by. A name that has joined is taken over with a token made for it
// only, or by whoever has its key.
func (in *UseToken) pin(s *State, t *core.Token) error {
	old, known := s.rec.Node(in.Node)
	var gone []string
	if known {
		if h := s.rec.FleetHost(old); h != nil {
			return core.Errorf(core.Denied, "node %s is a host of fleet %s, which gives it its certificate: no token does",
				old.Name, old.Fleet).Because("node_of_fleet")
		}
		if p := old.Pin; p != nil {
			if slices.Contains(p.Gone, in.Key) {
				return people.ErrRevokedKey(old.Name)
			}
			if t.Node == "" && !p.Takes(in.Key) {
				return core.Errorf(core.Denied, "node %s has joined before, with another key: this token is for new names; "+
					"one that replaces the key is made by bireme token join --node %s", old.Name, old.Name).Because("node_joined")
			}
			gone = p.Gone
		}
	}
	n := &core.Node{Name: in.Node, Roles: t.Roles, TrustRoot: t.TrustRoot, Weight: 1}
	if known {
		c := *old
		n = &c
	}
	n.Pin = &core.NodePin{Key: in.Key, Roles: t.Roles, TrustRoot: t.TrustRoot, Token: t.ID, Gone: gone, Ends: in.Ends}
	if known {
		edit := s.nodes.EditRecord(n)
		edit.CommitSilently()
		return nil
	}
	s.nodes.Put(n)
	return nil
}

// recordCertificate stores which certificate the agent of a fleet's host got last.
func (in *NodeKey) recordCertificate(s *State, n *core.Node) {
	h := s.rec.FleetHost(n)
	if h == nil || in.Cert == "" || h.Cert == in.Cert {
		return
	}
	f, _ := s.rec.Fleet(n.Fleet)
	next := fleets.Clone(f)
	next.Host(h.Num).Cert = in.Cert
	s.fleets.Store(next, "")
}
