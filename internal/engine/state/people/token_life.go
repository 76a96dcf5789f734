package people

import (
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
)

// FindToken finds a token that a caller may change: their own, or any for an administrator.
func (d *Directory) FindToken(by core.Identity, id string) (*core.Token, error) {
	t, ok := d.t.tokens[id]
	if !ok || !by.Admin && (t.Kind != "user" || t.User != by.User) {
		return nil, core.Errorf(core.NotFound, "there is no token %.80q of yours", id).Because("invalid_token")
	}
	return t, nil
}

// Revoke ends a token, and with it those that were made with it.
func (d *Directory) Revoke(t *core.Token) { d.endToken(t, d.log.Now()) }

// endToken ends a token at a time, now or later, and with it those that were made with it.
func (d *Directory) endToken(t *core.Token, at core.Time) {
	next := *t
	if at <= d.log.Now() {
		next.Revoked, next.Ended = true, d.log.Now()
	} else {
		next.Expires = at
	}
	d.putToken(&next)
	d.endChildren(t.ID, at)
}

// endChildren ends tokens that were made with a token. A node that has joined stays: it is known by its key, not by
// its token.
func (d *Directory) endChildren(id string, at core.Time) {
	var made []*core.Token
	for _, o := range d.t.tokens {
		if o.Parent == id && !o.Revoked && o.Used == 0 && (o.Expires == 0 || o.Expires > at) {
			made = append(made, o)
		}
	}
	slices.SortFunc(made, func(a, b *core.Token) int { return strings.Compare(a.ID, b.ID) })
	for _, o := range made {
		d.endToken(o, at)
	}
}

// Rotation gives a token another secret.
type Rotation struct {
	By      core.Identity
	ID      string
	Hash    core.Hash
	Overlap core.Seconds // how long the old secret works, with the tokens that were made with it
	Expires core.Time    // the new end; 0: none
}

// Rotate applies a rotation and returns the token as it is now.
func (d *Directory) Rotate(in *Rotation) (*core.Token, error) {
	t, err := d.FindToken(in.By, in.ID)
	if err != nil {
		return nil, err
	}
	switch {
	case t.Kind != "user":
		return nil, core.Errorf(core.Invalid, "token %s is a node's: make another one with `bireme token join`",
			t.ID).Because("invalid_token")
	case t.Dead(d.log.Now()):
		return nil, core.Errorf(core.Conflict,
			"token %s was revoked or has expired; make another one with `bireme token create`", t.ID).Because("invalid_token")
	}
	next := *t
	next.Expires = in.Expires
	if in.By.Token == t.ID { // a token does not extend itself
		if in.By.Prior {
			return nil, core.Errorf(core.Denied, "the old secret of a rotated token cannot rotate tokens").Because("token_scope")
		}
		next.Expires = t.Expires
	} else if err := d.limitByParent(in.By, &next); err != nil {
		return nil, err
	}
	if made, ok := d.t.tokens[t.Parent]; ok && next.Outlives(made) {
		next.Expires = made.Expires
	}
	next.Parent = t.Parent
	next.Hash, next.Prior, next.PriorUntil, next.Rotated = in.Hash, core.Hash{}, 0, d.log.Now()
	until := d.log.Now()
	if in.Overlap > 0 {
		until = d.log.Now().Add(in.Overlap.Duration())
		next.Prior, next.PriorUntil = t.Hash, until
	}
	d.putToken(&next)
	d.endChildren(t.ID, until)
	return &next, nil
}

// TokenUse is when a token was last used.
type TokenUse struct {
	ID string
	At core.Time
}

// NoteUses records when tokens were last used. It emits no event: nobody waits for it.
func (d *Directory) NoteUses(uses []TokenUse) {
	for _, u := range uses {
		t, ok := d.t.tokens[u.ID]
		if !ok || u.At <= t.LastUsed {
			continue
		}
		next := *t
		next.LastUsed = u.At
		d.ownTokens()
		d.t.addToken(&next)
		d.noteToken(&next)
	}
}

// Purged is how many tokens were deleted, and whether there are more to delete.
type Purged struct {
	Removed int
	More    bool
}

// Purge deletes at most limit tokens that have not worked since before, except those that keep returns true for.
func (d *Directory) Purge(before core.Time, limit int, keep func(*core.Token) bool) *Purged {
	var dead []*core.Token
	for _, t := range d.t.tokens {
		if end := t.DeadSince(); end != 0 && end < before && end <= d.log.Now() && !keep(t) {
			dead = append(dead, t)
		}
	}
	sortByDeadSince(dead)
	out := &Purged{Removed: min(len(dead), limit), More: len(dead) > limit}
	for _, t := range dead[:out.Removed] {
		d.deleteToken(t)
	}
	return out
}

// CheckJoin finds a join token that a node may use.
func (d *Directory) CheckJoin(id string, node core.NodeName) (*core.Token, error) {
	t, ok := d.t.tokens[id]
	switch {
	case !ok || t.Kind != "join" || t.Revoked:
		return nil, core.Errorf(core.Unknown, "unknown join token").Because("bad_token")
	case t.Used != 0:
		return nil, core.Errorf(core.Conflict, "this join token was used already, for node %s", t.Node).Because("bad_token")
	case t.Expires != 0 && t.Expires < d.log.Now():
		return nil, core.Errorf(core.Unknown, "this join token expired at %s",
			t.Expires.Go().UTC().Format("2006-01-02T15:04:05Z")).Because("bad_token")
	case t.Node != "" && t.Node != node:
		return nil, core.Errorf(core.Denied, "this join token is for node %s", t.Node).Because("bad_token")
	}
	return t, nil
}

// MarkUsed stores that a node joined with a token.
func (d *Directory) MarkUsed(t *core.Token, node core.NodeName) *core.Token {
	used := *t
	used.Used, used.Node = d.log.Now(), node
	d.putToken(&used)
	return &used
}
