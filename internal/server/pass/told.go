package pass

import (
	"encoding/json"
	"net/http"
	"os"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/account"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/ca"
)

// Told is what a server says of a caller whom it has seen. One of them is set.
type Told struct {
	Peer *Peer         `json:"peer,omitempty"` // at a socket of the server's host
	Node *Node         `json:"node,omitempty"` // with a node's certificate, which was verified
	User core.UserName `json:"user,omitempty"` // by the SSH listener
}

// Peer is the kernel's word.
type Peer struct {
	UID   uint32 `json:"uid"`
	GID   uint32 `json:"gid"`
	Name  string `json:"name,omitempty"`
	Admin bool   `json:"admin,omitempty"`
}

// Node is what a node's certificate says.
type Node struct {
	Name core.NodeName `json:"name"`
	Key  string        `json:"key"`
}

// told is what is to be said of a call; nil: nothing was seen, and a token may say it all.
func told(r *http.Request) *Told {
	if cred, ok := r.Context().Value(call.PeerKey{}).(*unix.Ucred); ok {
		p := &Peer{UID: cred.Uid, GID: cred.Gid, Admin: cred.Uid == 0 || int(cred.Uid) == os.Geteuid()}
		if u, err := account.ByUID(cred.Uid); err == nil {
			p.Name = u.Name
		}
		return &Told{Peer: p}
	}
	if name, ok := r.Context().Value(call.KeyUser{}).(core.UserName); ok {
		return &Told{User: name}
	}
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		if n, ok := ca.NodeOf(r.TLS.VerifiedChains[0][0]); ok {
			return &Told{Node: &Node{Name: n.Name, Key: n.Key}}
		}
	}
	return nil
}

// Of reads what another server says of a caller. Only the certificate of a server is believed.
func Of(r *http.Request) (*Told, bool) {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 || !ca.IsServer(r.TLS.VerifiedChains[0][0]) {
		return nil, false
	}
	t := new(Told)
	if text := r.Header.Get(Header); text != "" && json.Unmarshal([]byte(text), t) != nil {
		return nil, false
	}
	return t, true
}
