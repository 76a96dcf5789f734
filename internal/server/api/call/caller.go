package call

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net"
	"net/http"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/account"
	"bireme.dev/bireme/internal/core"
)

// Caller is who makes a call.
type Caller struct {
	core.Identity
	UserRecord  *core.User
	GID         uint32
	HasGID      bool
	TokenRecord *core.Token // the one the call came with; nil: none
	Until       core.Time   // when the JWT ends that the call came with; 0: it came with none
	Issued      core.Time   // when that was made
	// Actor is the administrator who acts as this user; nil: nobody does.
	Actor *core.Identity
	Trail trail
}

// PeerKey is where ConnContext leaves the kernel's word.
type PeerKey struct{}

// ConnContext notes who is at the other end of a unix socket. It is for http.Server.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	if cred := peerCred(c); cred != nil { // without it the caller is nobody
		return context.WithValue(ctx, PeerKey{}, cred)
	}
	return ctx
}

// AtSocket reports whether the kernel of this host says who calls, and nothing else: neither a token nor a node.
func AtSocket(r *http.Request, who *Caller) bool {
	return r.Context().Value(PeerKey{}) != nil && who.TokenRecord == nil && who.Until == 0 && who.Node == ""
}

// KeyUser is where a connection of the server's own SSH listener leaves whose key it was that opened it.
type KeyUser struct{}

// PeerUID is the uid at the other end of a unix socket.
func PeerUID(c net.Conn) (uint32, bool) {
	cred := peerCred(c)
	if cred == nil {
		return 0, false
	}
	return cred.Uid, true
}

// peerCred is the kernel's word for who is at the other end of a unix socket; nil: it has none.
func peerCred(c net.Conn) *unix.Ucred {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return nil
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return nil
	}
	var cred *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(
			int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil || credErr != nil {
		return nil
	}
	return cred
}

// PeerHeader is a node's word for who called through its local socket: UID:GID:NAME.
const PeerHeader = "Bireme-Peer"

// NewID makes a short random name.
func NewID() string {
	var b [8]byte
	_, err := rand.Read(b[:])
	core.Assert(err == nil, "the system's random source fails: %v", err)
	return hex.EncodeToString(b[:])
}

// NewRunID makes the id of a run: the digits of a random (version 4) UUID, which is what dstack's clients call it.
func NewRunID() string {
	id := []byte(NewID() + NewID())
	id[12] = '4'
	id[16] = "89ab"[id[16]&3]
	return string(id)
}

// AccountOf looks a name up on this host, or a uid where there is no name.
func AccountOf(name string, uid *uint32) (*account.User, error) {
	if name != "" {
		return account.ByName(name)
	}
	return account.ByUID(*uid)
}

// GroupNames names the groups of a user, none where the source does not answer.
func GroupNames(uid uint32) (names []string) {
	u, err := account.ByUID(uid)
	if err != nil {
		return nil
	}
	gids, err := account.Groups(u)
	if err != nil {
		return nil
	}
	for _, gid := range gids {
		if g, err := account.GroupByGID(gid); err == nil {
			names = append(names, g.Name)
		}
	}
	return names
}

// TokenName is what people call a token: its name, or its id where it has none.
func TokenName(t *core.Token) string {
	if t.Name != "" {
		return t.Name
	}
	return t.ID
}

func OutsideProject(t *core.Token) error {
	return core.Errorf(core.Denied, "this token (%s) is limited to project %s", TokenName(t), t.Project).
		Because("token_scope")
}
