package identity

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"net/http"
	"time"

	"bireme.dev/bireme/internal/backend/ssh"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/ca"
	"bireme.dev/bireme/internal/server/pass"
)

// NodeOf returns the node whose certificate the connection has. A certificate of ours is not enough: its key must be
// the one the node is known by. What the node may do is in that record, too.
func (a *Identity) NodeOf(r *http.Request) (ca.Node, bool, error) {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return ca.Node{}, false, nil
	}
	leaf := r.TLS.VerifiedChains[0][0]
	n, ok := ca.NodeOf(leaf)
	if t, passed := pass.Of(r); passed && t.Node != nil {
		n, ok, leaf = ca.Node{Name: t.Node.Name, Key: t.Node.Key}, true, nil
	}
	if !ok {
		return n, false, nil
	}
	snap, err := a.Snapshot()
	if err != nil {
		return n, false, err
	}
	node, known := snap.Node(n.Name)
	if !known {
		return n, false, core.Errorf(core.Denied, "node %s is not known here: it joins with a token (bireme token join)",
			n.Name).Because("unknown_node")
	}
	pin := node.Pin
	if pin == nil || pin.Before != 0 {
		if pin, err = a.pinFirst(r.Context(), snap, node, n, leaf); err != nil {
			return n, false, err
		}
	}
	switch {
	case pin.Revoked:
		return n, false, core.Errorf(core.Denied, "the certificate of node %s was revoked", n.Name).Because("revoked_node")
	case !pin.Takes(n.Key):
		return n, false, core.Errorf(
			core.Denied, "the certificate of node %s has another key than the one the node joined with last", n.Name).
			Because("revoked_node")
	case n.Key == pin.Next:
		if _, err := engine.Do(r.Context(), a.Engine,
			&state.NodeKey{Node: n.Name, Do: state.KeyUse, Key: n.Key}); err != nil {
			return n, false, err
		}
	}
	n.Roles, n.TrustRoot = pin.Roles, pin.TrustRoot
	return n, true, nil
}

// What certificates of a server that pinned no keys are known by: they lasted ten years, and began an hour before their
// node's token was spent.
const (
	beforeLife     = 9 * 365 * 24 * time.Hour
	beforeBackdate = time.Hour
	beforeSlack    = 2 * time.Minute
)

// pinFirst takes over a node that joined a server which pinned no keys: the first time it comes with the certificate
// of its last join, or of its fleet, its key is pinned.
func (a *Identity) pinFirst(ctx context.Context, snap *state.Snapshot, node *core.Node, n ca.Node,
	leaf *x509.Certificate,
) (*core.NodePin, error) {
	pin := node.Pin
	old := leaf != nil && leaf.NotAfter.Sub(leaf.NotBefore) > beforeLife
	if h := snap.FleetHost(node); h != nil {
		old = old && h.Cert == certSum(leaf)
	} else {
		old = old && pin != nil && !pin.Revoked && leaf.NotBefore.Add(beforeBackdate).Sub(pin.Before.Go()).Abs() < beforeSlack
	}
	if !old {
		return nil, core.Errorf(core.Denied,
			"the certificate of node %s was revoked, or is not of its last join: it joins again with a token "+
				"made for it (bireme token join --node %s)", n.Name, n.Name).Because("revoked_node")
	}
	in := &state.NodeKey{
		Node: n.Name, Do: state.KeyPin, Key: n.Key, Roles: n.Roles, TrustRoot: n.TrustRoot,
		Ends: core.At(leaf.NotAfter),
	}
	if _, err := engine.Do(ctx, a.Engine, in); err != nil {
		return nil, err
	}
	a.Log.Info("the key of a node that joined an older server is pinned", "node", n.Name)
	if now, ok := a.Engine.Snapshot().Node(n.Name); ok && now.Pin != nil {
		return now.Pin, nil
	}
	return nil, core.Errorf(core.Denied, "node %s is not known here any more", n.Name).Because("unknown_node")
}

// Join trades a one-time token for a certificate. The token is spent only when the certificate can be made.
func (a *Identity) Join(_ http.ResponseWriter, r *http.Request, by *call.Caller) (any, error) {
	var in client.Join
	if err := call.Decode(r, &in); err != nil {
		return nil, err
	}
	by.About("node", string(in.Node))
	if !ValidNode(in.Node) {
		return nil, core.Errorf(core.Invalid, "node: %q is not a node's name", in.Node).Because("invalid_node")
	}
	snap, err := a.Snapshot()
	if err != nil {
		return nil, err
	}
	t, ok := snap.TokenByHash(hashToken(in.Token))
	if !ok || t.Kind != "join" {
		return nil, core.Errorf(core.Unknown, "unknown join token").Because("bad_token")
	}
	csr, key, err := ca.Request([]byte(in.CSR))
	if err != nil {
		return nil, err
	}
	cert, ends, err := a.Authority.Sign(csr, ca.Node{Name: in.Node, Roles: t.Roles, TrustRoot: t.TrustRoot})
	if err != nil {
		return nil, err
	}
	if _, err := engine.Do(r.Context(), a.Engine,
		&state.UseToken{ID: t.ID, Node: in.Node, Key: key, Ends: core.At(ends)}); err != nil {
		return nil, err
	}
	a.Log.Info("node joined", "node", in.Node, "token", t.ID)
	return a.joinedBy(cert), nil
}

func (a *Identity) joinedBy(cert []byte) *client.Joined {
	return &client.Joined{Cert: string(cert), CA: string(a.Authority.PEM()), Servers: a.Servers}
}

// Renew issues another certificate to a node. Whoever signs a request with the key that the node is known by gets one
// for that key, which is of use to nobody else; so a node may also come back after its certificate has run out. A new
// key is taken from a connection with the present certificate only. What comes through a node's socket is shown with
// that certificate, too, but is a user's: it says so by PeerHeader, which agents never send for themselves.
func (a *Identity) Renew(_ http.ResponseWriter, r *http.Request, by *call.Caller) (any, error) {
	var in client.Renew
	if err := call.Decode(r, &in); err != nil {
		return nil, err
	}
	by.About("node", string(in.Node))
	if len(r.Header.Values(call.PeerHeader)) > 0 {
		return nil, core.Errorf(core.Denied,
			"only the agent of node %q renews its certificate, not the users of the node's socket", in.Node).
			Because("access_denied")
	}
	csr, key, err := ca.Request([]byte(in.CSR))
	if err != nil {
		return nil, err
	}
	who, shown, err := a.NodeOf(r) // it may pin the key of an old certificate
	if err != nil {
		return nil, err
	}
	snap, err := a.Snapshot()
	if err != nil {
		return nil, err
	}
	node, known := snap.Node(in.Node)
	switch {
	case !known || node.Pin == nil || node.Pin.Before != 0:
		return nil, core.Errorf(core.Denied, "node %q has not joined: it does so with a token (bireme token join)", in.Node).
			Because("unknown_node")
	case node.Pin.Revoked:
		return nil, core.Errorf(core.Denied, "the certificate of node %s was revoked", in.Node).Because("revoked_node")
	case !node.Pin.Takes(key) && !(shown && who.Name == in.Node):
		return nil, core.Errorf(core.Denied, "this is not the key that node %s joined with last", in.Node).
			Because("revoked_node")
	}
	cert, ends, err := a.Authority.Sign(csr, ca.Node{Name: in.Node, Roles: node.Pin.Roles, TrustRoot: node.Pin.TrustRoot})
	if err != nil {
		return nil, err
	}
	news := &state.NodeKey{Node: in.Node, Do: state.KeyRenew, Key: key, Ends: core.At(ends), Cert: ssh.Sum(cert)}
	if in.Trust == a.Authority.Sum() {
		news.CA = in.Trust
	}
	if _, err := engine.Do(r.Context(), a.Engine, news); err != nil {
		return nil, err
	}
	a.Log.Debug("certificate renewed", "node", in.Node, "ends", ends)
	return a.joinedBy(cert), nil
}

// ValidNode keeps names to what host lists and file names bear.
func ValidNode(n core.NodeName) bool {
	if n == "" || len(n) > 64 || n[0] == '-' || n[0] == '.' {
		return false
	}
	for _, c := range n {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.':
		default:
			return false
		}
	}
	return true
}

// certSum names a certificate as its fleet does: by the hash of its PEM form.
func certSum(c *x509.Certificate) string {
	s := sha256.Sum256(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}))
	return hex.EncodeToString(s[:])
}
