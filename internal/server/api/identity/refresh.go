package identity

import (
	"context"
	"crypto/ed25519"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/api/call"
)

// Refresh issues another secret to a user of a dstack client. Of the caller's own token the secret is replaced. For
// another user, which takes an administrator, a token is made, and those that were made for such clients before are
// revoked.
func (a *Tokens) Refresh(ctx context.Context, who *call.Caller, user core.UserName) (secret string, err error) {
	secret, hash := newSecret()
	if t := who.TokenRecord; t != nil && user == who.User {
		end, err := a.tokenEnd(who, 0, t.Client, time.Now())
		if err != nil {
			return "", err
		}
		who.AboutToken(t)
		_, err = engine.Do(ctx, a.Engine, &state.RotateToken{By: who.Identity, ID: t.ID, Hash: hash, Expires: end})
		return secret, err
	}
	now := time.Now()
	end, err := a.tokenEnd(who, 0, dstackClient, now)
	if err != nil {
		return "", err
	}
	snap, err := a.Snapshot()
	if err != nil {
		return "", err
	}
	t := &core.Token{
		ID: call.NewID(), Hash: hash, Kind: "user", User: user, Client: dstackClient, Created: core.At(now), Expires: end,
	}
	if who.Untrusted {
		t.Scopes = ordinaryScopes()
	}
	if user != who.User {
		who.Trail.Owner = user
	}
	if _, err := engine.Do(ctx, a.Engine, &state.PutToken{By: who.Identity, Token: t}); err != nil {
		return "", err
	}
	who.AboutToken(t)
	for _, old := range snap.TokensOf(user) {
		if old.Client != dstackClient || old.Revoked {
			continue
		}
		if _, err := engine.Do(ctx, a.Engine, &state.RevokeToken{By: who.Identity, ID: old.ID}); err != nil {
			return "", err
		}
	}
	return secret, nil
}

// dstackClient is what tokens are marked with that are made for dstack's clients.
const dstackClient = "dstack"

// KeyOf is the SSH key of a token that may do less than its user. It opens the user's own jobs that the token may
// steer, as long as the token is good and its secret the same. It is derived from the authority's key, not stored.
func KeyOf(a interface{ Secret(name string) []byte }, t *core.Token) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(a.Secret("ssh key of token " + t.ID + "\x00" + string(t.Hash[:])))
}

// PrivateKey is KeyOf under the cluster's authority.
func (a *Tokens) PrivateKey(t *core.Token) ed25519.PrivateKey { return KeyOf(a.Authority, t) }
