package identity

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/ca"
)

// Tokens shows, makes and revokes tokens, and knows when each was last used.
type Tokens struct {
	*call.Base
	Authority *ca.Authority
	uses      tokenUses
}

// bearer limits a caller to what the token allows.
func (a *Tokens) bearer(c *call.Caller, t *core.Token, prior bool) {
	c.TokenRecord, c.Token, c.Project, c.Prior = t, t.ID, t.Project, prior
	if !t.Has(core.ScopeAdmin) {
		c.Admin, c.Plain = false, true
	}
	a.uses.note(t.ID, time.Now())
}

// List lists tokens: everybody their own, administrators all. Secrets are not kept.
func (a *Tokens) List(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	page, err := call.ParsePage(r.URL.Query())
	if err != nil {
		return nil, err
	}
	snap, err := a.Snapshot()
	if err != nil {
		return nil, err
	}
	var list []*core.Token
	if who.Admin {
		list = snap.Tokens()
	} else {
		list = snap.TokensOf(who.User)
	}
	out := &client.TokenList{Tokens: make([]core.Token, 0, min(len(list), page.Limit+1))}
	for _, t := range list { // by their ids
		if t.ID > page.After && len(out.Tokens) <= page.Limit {
			out.Tokens = append(out.Tokens, a.showToken(t))
		}
	}
	out.Tokens, out.Page = call.Cut(page, out.Tokens, func(t *core.Token) string { return t.ID })
	return out, nil
}

// showToken is a token as others may see it.
func (a *Tokens) showToken(t *core.Token) core.Token {
	c := *t
	c.Prior = core.Hash{}
	c.LastUsed = max(c.LastUsed, a.uses.last(t.ID))
	return c
}

// Create makes a token. Its secret is in the answer and nowhere else.
func (a *Tokens) Create(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	var in client.NewToken
	if err := call.Decode(r, &in); err != nil {
		return nil, err
	}
	now := time.Now()
	if in.User != "" && in.User != who.User {
		who.Trail.Owner = in.User
	}
	if in.Name != "" { // a token that is refused has no id
		who.About("token", "("+in.Name+")")
	}
	t := &core.Token{ID: call.NewID(), Kind: in.Kind, Note: in.Note, Name: in.Name, Created: core.At(now)}
	var err error
	switch in.Kind {
	case "", "user":
		t.Kind, t.User = "user", in.User
		if t.User == "" {
			t.User = who.User
		}
		if err = a.userToken(t, &in, who); err == nil {
			t.Expires, err = a.tokenEnd(who, in.TTL, in.Client, now)
		}
	case "join":
		err = joinToken(t, &in, now)
	default:
		err = core.Errorf(core.Invalid, "kind: %.80q: expected user or join", in.Kind)
	}
	if err == nil {
		t.Expires, err = endByJWT(who, t.Expires, in.TTL != 0)
	}
	if err != nil {
		return nil, err
	}
	secret, hash := newSecret()
	t.Hash = hash
	if _, err := engine.Do(r.Context(), a.Engine, &state.PutToken{By: who.Identity, Token: t}); err != nil {
		return nil, err
	}
	who.AboutToken(t)
	return &client.NewTokenMade{Token: a.showToken(t), Secret: secret, CA: string(a.Authority.PEM())}, nil
}

// userToken takes over what a request says of rights. Where it says nothing, the token may do what the one that asks
// may.
func (a *Tokens) userToken(t *core.Token, in *client.NewToken, who *call.Caller) error {
	if in.Client != "" && in.Client != "dstack" {
		return core.Errorf(core.Invalid, "client: %.80q: expected dstack", in.Client)
	}
	if in.Node != "" || in.Roles != 0 || in.TrustRoot {
		return core.Errorf(core.Invalid, "node, roles and trust_root are for tokens with which nodes join")
	}
	if in.Scopes != nil && len(in.Scopes) == 0 { // without rights is not meant to be with every right
		return core.Errorf(core.Invalid,
			"scopes: the list is empty: name read, submit, admin or project, or leave scopes out for every right")
	}
	t.Client, t.Project = in.Client, in.Project
	t.Scopes = slices.Compact(slices.Sorted(slices.Values(in.Scopes)))
	if p := who.TokenRecord; p != nil {
		if len(t.Scopes) == 0 {
			t.Scopes = slices.Clone(p.Scopes)
		}
		if t.Project == "" {
			t.Project = p.Project
		}
	}
	if len(t.Scopes) == 0 && (t.Project != "" || who.Untrusted) {
		t.Scopes = ordinaryScopes()
	}
	if t.Project != "" && !slices.Contains(t.Scopes, core.ScopeProject) {
		t.Scopes = append(t.Scopes, core.ScopeProject)
	}
	return nil
}

// ordinaryScopes are those of a token with no more than an ordinary user's rights.
func ordinaryScopes() []core.Scope { return []core.Scope{core.ScopeRead, core.ScopeSubmit} }

func joinToken(t *core.Token, in *client.NewToken, now time.Time) error {
	if len(in.Scopes) > 0 || in.Project != "" || in.Client != "" || in.User != "" {
		return core.Errorf(core.Invalid, "user, scopes, project and client are for tokens of users")
	}
	if in.Node != "" && !ValidNode(in.Node) {
		return core.Errorf(core.Invalid, "node: %.80q is not a node's name", in.Node).Because("invalid_node")
	}
	t.Node, t.Roles, t.TrustRoot = in.Node, in.Roles, in.TrustRoot
	if t.Roles == 0 {
		t.Roles = core.Compute
	}
	if in.TTL == 0 {
		in.TTL = core.Seconds(24 * time.Hour / time.Second)
	}
	if in.TTL > 0 && in.TTL < maxTTL {
		t.Expires = core.At(now.Add(in.TTL.Duration()))
	}
	return nil
}

// maxTTL is what counts as without end; times beyond it do not fit into a core.Time.
const maxTTL = core.Seconds(100 * 365 * 24 * 3600)

// tokenEnd is when a user's token ends that is made or rotated now. One made by another token without saying when
// ends with that one at the latest.
func (a *Tokens) tokenEnd(who *call.Caller, ttl core.Seconds, client string, now time.Time) (core.Time, error) {
	set := &a.Settings().Tokens
	most := core.Seconds(set.MaxLifetime.D() / time.Second)
	asked := ttl != 0
	if !asked {
		ttl = core.Seconds(set.Default(client == "dstack") / time.Second)
	}
	switch {
	case ttl < 0:
		return 0, core.Errorf(core.Invalid, "ttl: %d must not be negative", ttl)
	case ttl == 0 || ttl > maxTTL:
		ttl = core.Forever
	}
	if asked && most > 0 && ttl > most && !who.Admin {
		return 0, core.Errorf(core.Denied, "ttl: tokens last at most %s (tokens.max_lifetime)", set.MaxLifetime).
			Because("token_lifetime")
	}
	end := core.Time(0)
	if ttl < core.Forever {
		end = core.At(now.Add(ttl.Duration()))
	}
	if p := who.TokenRecord; p != nil && !asked && p.Expires != 0 && (end == 0 || end > p.Expires) {
		end = p.Expires
	}
	return end, nil
}

// endByJWT bounds the end of a token, 0: none, that is made or rotated by a call with a JWT: whoever has that for half
// an hour would have it forever.
func endByJWT(who *call.Caller, end core.Time, asked bool) (core.Time, error) {
	switch {
	case who.Until == 0 || end != 0 && end <= who.Until:
		return end, nil
	case asked:
		return 0, core.Errorf(core.Denied, "a JWT cannot create a token that is valid longer than itself: this one "+
			"expires at %s", who.Until.Go().UTC().Format("2006-01-02T15:04:05Z")).Because("token_scope")
	}
	return who.Until, nil
}

// oneToken finds the token of an id, or of a name among the caller's own.
func (a *Tokens) oneToken(r *http.Request, who *call.Caller) (*core.Token, error) {
	snap, err := a.Snapshot()
	if err != nil {
		return nil, err
	}
	id := r.PathValue("id")
	t, ok := snap.Token(id)
	if ok && !who.Admin && (t.Kind != "user" || t.User != who.User) {
		return nil, noToken(id)
	}
	if !ok {
		for _, o := range snap.TokensOf(who.User) {
			if o.Name == id && (t == nil || !o.Dead(core.At(time.Now()))) { // a name may be used again once its token is dead
				t, ok = o, true
			}
		}
	}
	if !ok {
		return nil, noToken(id)
	}
	if p := who.TokenRecord; p != nil && p.ID != t.ID && (!p.Has(core.ScopeSubmit) || p.Project != "") {
		return nil, core.Errorf(core.Denied, "this token (%s) has scope %s: it may rotate and revoke itself and no other",
			call.TokenName(p), p.ScopeText()).Because("token_scope")
	}
	return t, nil
}

func noToken(id string) error {
	return core.Errorf(core.NotFound, "there is no token %.80q of yours", id).Because("invalid_token")
}

// Rotate replaces the secret of a token, with the same name and rights.
func (a *Tokens) Rotate(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	var in client.RotateToken
	if err := call.Decode(r, &in); err != nil {
		return nil, err
	}
	if in.Overlap < 0 || in.Overlap > maxOverlap {
		return nil, core.Errorf(core.Invalid, "overlap: %d seconds are not between 0 and %d", in.Overlap, maxOverlap)
	}
	t, err := a.oneToken(r, who)
	if err != nil {
		return nil, err
	}
	end, err := a.tokenEnd(who, in.TTL, t.Client, time.Now())
	if err == nil && who.Token == t.ID { // it keeps its end
		_, err = endByJWT(who, t.Expires, true)
	} else if err == nil {
		end, err = endByJWT(who, end, in.TTL != 0)
	}
	if err != nil {
		return nil, err
	}
	who.AboutToken(t)
	secret, hash := newSecret()
	reply, err := engine.Do(r.Context(), a.Engine,
		&state.RotateToken{By: who.Identity, ID: t.ID, Hash: hash, Overlap: in.Overlap, Expires: end})
	if err != nil {
		return nil, err
	}
	return &client.NewTokenMade{Token: a.showToken(reply), Secret: secret, CA: string(a.Authority.PEM())}, nil
}

// maxOverlap is the longest two secrets of a token work side by side.
const maxOverlap = core.Seconds(30 * 24 * 3600)

func (a *Tokens) Revoke(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	t, err := a.oneToken(r, who)
	if err != nil {
		return nil, err
	}
	who.AboutToken(t)
	if _, err := engine.Do(r.Context(), a.Engine, &state.RevokeToken{By: who.Identity, ID: t.ID}); err != nil {
		return nil, err
	}
	return call.OK{}, nil
}

// tokenUses remembers when tokens were last used. The state is told now and then, many at once: a use costs no commit.
type tokenUses struct {
	mu sync.RWMutex
	at map[string]*tokenUse
}

type tokenUse struct {
	at    atomic.Int64 // core.Time
	saved atomic.Int64 // the last that the state was told
}

func (u *tokenUses) note(id string, now time.Time) {
	u.mu.RLock()
	use := u.at[id]
	u.mu.RUnlock()
	if use == nil {
		u.mu.Lock()
		if use = u.at[id]; use == nil {
			use = &tokenUse{}
			if u.at == nil {
				u.at = map[string]*tokenUse{}
			}
			u.at[id] = use
		}
		u.mu.Unlock()
	}
	use.at.Store(int64(core.At(now)))
}

func (u *tokenUses) last(id string) core.Time {
	u.mu.RLock()
	defer u.mu.RUnlock()
	if use := u.at[id]; use != nil {
		return core.Time(use.at.Load())
	}
	return 0
}

// take returns the uses that the state has not been told, and forgets tokens that are gone.
func (u *tokenUses) take(snap *state.Snapshot) []state.TokenUse {
	u.mu.Lock()
	defer u.mu.Unlock()
	var out []state.TokenUse
	for id, use := range u.at {
		if _, ok := snap.Token(id); !ok {
			delete(u.at, id)
			continue
		}
		if at := use.at.Load(); at != use.saved.Load() {
			use.saved.Store(at)
			out = append(out, state.TokenUse{ID: id, At: core.Time(at)})
		}
	}
	slices.SortFunc(out, func(a, b state.TokenUse) int { // recordings are the same every time
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	return out
}

// Tokens are looked after this often: last uses are written, and what is past its time is forgotten.
const tokenEvery = time.Hour

// KeepTokens writes last uses and forgets tokens that have not worked for keep (0: none), until ctx ends and once
// more then.
func (a *Tokens) KeepTokens(ctx context.Context, keep time.Duration) error {
	tick := time.NewTicker(tokenEvery)
	defer tick.Stop()
	a.purgeTokens(ctx, keep)
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			a.saveUses(last)
			return nil
		case <-tick.C:
			a.saveUses(ctx)
			a.purgeTokens(ctx, keep)
		}
	}
}

func (a *Tokens) saveUses(ctx context.Context) {
	snap := a.Engine.Snapshot()
	if snap == nil || a.Engine.ReadOnly() != "" {
		return
	}
	for batch := range slices.Chunk(a.uses.take(snap), 1000) {
		if _, err := engine.Do(ctx, a.Engine, &state.TokensUsed{Uses: batch}); err != nil {
			a.Log.Warn("write when tokens were last used", "err", err)
			return
		}
	}
}

func (a *Tokens) purgeTokens(ctx context.Context, keep time.Duration) {
	for more := keep > 0; more && ctx.Err() == nil && a.Engine.ReadOnly() == ""; {
		reply, err := engine.Do(ctx, a.Engine, &state.PurgeTokens{Before: core.At(time.Now().Add(-keep)), Max: 500})
		if err != nil {
			a.Log.Warn("forget tokens that work no more", "err", err)
			return
		}
		more = reply.More
	}
}
