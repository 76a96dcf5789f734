package identity

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/account"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/ca"
	"bireme.dev/bireme/internal/server/pass"
)

// Identity finds out who calls, and gives nodes the certificates that show who they are.
type Identity struct {
	*call.Base
	Tokens    *Tokens
	JWT       *JWT
	Authority *ca.Authority
	Servers   []string // told to nodes that join
}

const tokenPrefix = "bm_"

// Headers of Slurm's REST API.
const (
	slurmTokenHeader = "X-Slurm-User-Token"
	slurmNameHeader  = "X-Slurm-User-Name"
)

// Identify finds out who calls.
func (a *Identity) Identify(r *http.Request) (*call.Caller, error) {
	who, err := a.identify(r)
	if err != nil || !strings.HasPrefix(r.URL.Path, "/slurm") {
		return who, err
	}
	if name := r.Header.Get(slurmNameHeader); name != "" {
		return a.actAs(r.Context(), who, name)
	}
	return who, nil
}

func (a *Identity) identify(r *http.Request) (*call.Caller, error) {
	if secret := r.Header.Get(slurmTokenHeader); secret != "" {
		return a.bySecret(r.Context(), secret)
	}
	if text := r.Header.Get("Authorization"); text != "" {
		scheme, secret, _ := strings.Cut(text, " ")
		if !strings.EqualFold(scheme, "Bearer") {
			secret = ""
		}
		return a.bySecret(r.Context(), secret)
	}
	if cred, ok := r.Context().Value(call.PeerKey{}).(*unix.Ucred); ok {
		return a.byPeer(r.Context(), &peer{
			uid: cred.Uid, gid: cred.Gid, name: func() string { return nameOf(cred.Uid) },
			trusted: true, admin: cred.Uid == 0 || int(cred.Uid) == os.Geteuid(), looks: looks(r),
		})
	}
	if name, ok := r.Context().Value(call.KeyUser{}).(core.UserName); ok {
		return a.byKey(name)
	}
	if t, ok := pass.Of(r); ok && t.Peer != nil {
		return a.byPeer(r.Context(), &peer{
			uid: t.Peer.UID, gid: t.Peer.GID, name: func() string { return t.Peer.Name }, trusted: true, admin: t.Peer.Admin,
			looks: looks(r),
		})
	} else if ok && t.User != "" {
		return a.byKey(t.User)
	}
	if n, ok, err := a.NodeOf(r); err != nil {
		return nil, err
	} else if ok {
		return a.byNode(r, n)
	}
	return nil, core.Errorf(core.Unknown, "not authenticated: send a token (bireme login), or use a local socket").
		Because("no_identity")
}

// peer is a kernel's word for who is at a socket, here or on a node.
type peer struct {
	uid, gid uint32
	name     func() string // of the account; asked at first use
	node     core.NodeName // empty: this host
	trusted  bool          // root of its machine may act for anybody
	admin    bool          // by its uid alone
	squashed bool          // root of a machine that is not trusted
	looks    bool          // the request changes nothing
}

// byNode takes a node's word for who calls.
func (a *Identity) byNode(r *http.Request, n ca.Node) (*call.Caller, error) {
	parts := strings.SplitN(r.Header.Get(call.PeerHeader), ":", 3)
	if len(parts) != 3 {
		return nil, core.Errorf(core.Unknown, "node %s did not say who calls", n.Name).Because("no_identity")
	}
	uid, err1 := strconv.ParseUint(parts[0], 10, 32)
	gid, err2 := strconv.ParseUint(parts[1], 10, 32)
	if err1 != nil || err2 != nil {
		return nil, core.Errorf(core.Invalid, "%s: %q is not UID:GID:NAME", call.PeerHeader, r.Header.Get(call.PeerHeader))
	}
	p := &peer{
		uid: uint32(uid), gid: uint32(gid), name: func() string { return parts[2] }, node: n.Name,
		trusted: n.TrustRoot, admin: uid == 0, looks: looks(r),
	}
	if !n.TrustRoot {
		distrust(p)
	}
	return a.byPeer(r.Context(), p)
}

const nobody = 65534

// distrust takes from a node's word what its root could have made up to get beyond the node's own users. Root itself is
// nobody in particular, as on an NFS server that squashes it: it could otherwise run jobs as root everywhere. Names and
// groups are those of this host, or every group and every administrator's name would be there for the asking.
func distrust(p *peer) {
	p.admin = false
	if p.uid == 0 {
		p.uid, p.gid, p.name, p.squashed = nobody, nobody, func() string { return "nobody" }, true
		return
	}
	acc, err := account.ByUID(p.uid)
	if err != nil {
		p.name = func() string { return "" }
		return
	}
	p.name = func() string { return acc.Name }
	if p.gid != acc.GID && !inGroup(acc, p.gid) {
		p.gid = acc.GID
	}
}

// inGroup reports whether this host has a user in a group.
func inGroup(u *account.User, gid uint32) bool {
	ids, err := account.Groups(u)
	return err == nil && slices.Contains(ids, gid)
}

// byPeer finds the user of a uid, making one at first use where that is allowed.
func (a *Identity) byPeer(ctx context.Context, p *peer) (*call.Caller, error) {
	snap, err := a.Snapshot()
	if err != nil {
		return nil, err
	}
	u, ok := snap.UserByUID(p.uid)
	if !ok {
		name := p.name()
		reply, err := engine.Do(ctx, a.Engine, &state.EnsureUser{UID: p.uid, UnixName: name})
		if p.admin && core.CodeOf(err) == core.Unknown {
			reply, err = a.firstAdmin(ctx, p.uid, name)
		}
		if core.CodeOf(err) == core.Unknown && p.looks {
			reply, err = guest(snap, p.uid, name, err)
		}
		if err != nil {
			return nil, err
		}
		u = reply
	}
	// A node that is not trusted speaks for accounts this host or an administrator knows, and never for root's group.
	runs := p.trusted || u.UnixName != "" && p.gid != 0 && !p.squashed
	c, err := a.callerOf(u, p.uid, p.gid, runs)
	if err != nil {
		return nil, err
	}
	c.Node, c.Untrusted, c.Admin = p.node, !p.trusted, p.admin || p.trusted && c.Admin
	return c, nil
}

// looks reports whether a request changes nothing.
func looks(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// guest is a user of the machine who is in no project, where accounting is enforced: such a user may look at what
// everybody sees, and is stored nowhere. refusal is returned for one whose name is another user's here.
func guest(snap *state.Snapshot, uid uint32, name string, refusal error) (*core.User, error) {
	if _, taken := snap.User(core.UserName(name)); taken || name == "" {
		return nil, refusal
	}
	return &core.User{Name: core.UserName(name), UnixName: name, UID: &uid, Role: core.RoleUser}, nil
}

// firstAdmin lets the administrator of the host in where accounting is enforced and nobody has been added yet.
func (a *Identity) firstAdmin(ctx context.Context, uid uint32, name string) (*core.User, error) {
	u := &core.User{Name: core.UserName(name), UnixName: name, UID: &uid, Role: core.RoleAdmin}
	_, err := engine.Do(ctx, a.Engine, &state.PutUser{By: core.Identity{User: "bireme", Admin: true}, User: u, New: true})
	if core.CodeOf(err) == core.Conflict { // another call of the same user was quicker
		return engine.Do(ctx, a.Engine, &state.EnsureUser{UID: uid, UnixName: name})
	}
	return u, err
}

// callerOf is a user as a caller, with the rights the user's record gives.
func (a *Identity) callerOf(u *core.User, uid, gid uint32, hasGID bool) (*call.Caller, error) {
	if u.Disabled {
		return nil, core.Errorf(core.Denied, "user %s is disabled", u.Name).Because("user_disabled")
	}
	return &call.Caller{
		Identity: core.Identity{User: u.Name, UID: uid, Admin: a.AdminByRecord(u)}, UserRecord: u,
		GID: gid, HasGID: hasGID,
	}, nil
}

// bySecret finds the user a secret speaks for: a token of ours, or a JWT.
func (a *Identity) bySecret(ctx context.Context, secret string) (*call.Caller, error) {
	if isJWT(secret) {
		return a.byJWT(ctx, secret)
	}
	return a.byToken(secret)
}

// byToken finds the user a token speaks for.
func (a *Identity) byToken(secret string) (*call.Caller, error) {
	snap, err := a.Snapshot()
	if err != nil {
		return nil, err
	}
	bad := core.Errorf(core.Unknown, "this token is not known, or was revoked").Because("bad_token")
	if secret == "" || len(secret) > client.MaxTakenToken {
		return nil, bad
	}
	hash := hashToken(secret)
	t, ok := snap.TokenByHash(hash)
	if !ok || t.Kind != "user" || t.Revoked || t.Hash != hash && t.PriorUntil.Go().Before(time.Now()) {
		return nil, bad
	}
	if t.Expires != 0 && t.Expires.Go().Before(time.Now()) {
		return nil, core.Errorf(core.Unknown, "this token expired at %s", t.Expires.Go().Format(time.RFC3339)).
			Because("token_expired")
	}
	u, ok := snap.User(t.User)
	if !ok {
		return nil, bad
	}
	uid, gid, hasGID := processesOf(u)
	c, err := a.callerOf(u, uid, gid, hasGID)
	if err == nil {
		a.Tokens.bearer(c, t, t.Hash != hash)
	}
	return c, err
}

// byKey finds the user whose SSH key opened the connection that the call comes by, within this process.
func (a *Identity) byKey(name core.UserName) (*call.Caller, error) {
	snap, err := a.Snapshot()
	if err != nil {
		return nil, err
	}
	u, ok := snap.User(name)
	if !ok {
		return nil, core.Errorf(core.Unknown, "there is no user %s any more", name).Because("no_identity")
	}
	uid, gid, hasGID := processesOf(u)
	return a.callerOf(u, uid, gid, hasGID)
}

// processesOf finds the uid and gid a user's processes have. A name and a uid that do not go together here are no
// account.
func processesOf(u *core.User) (uid, gid uint32, ok bool) {
	name := u.UnixName
	if name == "" && u.UID == nil {
		return nobody, nobody, false
	}
	acc, err := call.AccountOf(name, u.UID)
	if err != nil {
		if u.UID != nil {
			return *u.UID, nobody, false
		}
		return nobody, nobody, false
	}
	if u.UID != nil && acc.UID != *u.UID {
		return *u.UID, nobody, false
	}
	return acc.UID, acc.GID, true
}

// newSecret makes a token's secret.
func newSecret() (secret string, hash core.Hash) {
	var b [32]byte
	_, err := rand.Read(b[:])
	core.Assert(err == nil, "the system's random source fails: %v", err)
	secret = tokenPrefix + base64.RawURLEncoding.EncodeToString(b[:])
	return secret, hashToken(secret)
}

func hashToken(secret string) core.Hash { return sha256.Sum256([]byte(secret)) }

// nameOf returns the name of a uid on this host, or "".
func nameOf(uid uint32) string {
	acc, err := account.ByUID(uid)
	if err != nil {
		return ""
	}
	return acc.Name
}
