package call

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state"
)

// streamSet holds the open streams with what entitles their callers to them. A stream ends as soon as that is gone.
type streamSet struct {
	mu  sync.Mutex
	all map[*openStream]struct{}
}

// openStream is one stream and the rights it was opened with.
type openStream struct {
	user  core.UserName
	admin bool          // by the user's record
	token *core.Token   // nil: it came by a socket
	node  core.NodeName // whose word for the user it was, if any
	key   string        // that the node was known by
	jwt   core.UserName // whose JWT it came with; empty: with none
	made  core.Time     // when that was made
	end   context.CancelCauseFunc
	timer *time.Timer // ends it when the token expires
}

// streamEnd is why a stream was ended.
type streamEnd struct{ Text string }

func (e *streamEnd) Error() string { return e.Text }

// Open enters a stream. The context ends with the caller's rights; leave must be called at the stream's end.
func (s *streamSet) Open(ctx context.Context, who *Caller, admin bool, key string) (_ context.Context, leave func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	o := &openStream{user: who.User, admin: admin, token: who.TokenRecord, node: who.Node, key: key, end: cancel}
	if who.Until != 0 {
		o.jwt, o.made = who.User, who.Issued
		if who.Actor != nil {
			o.jwt = who.Actor.User
		}
	}
	end := who.Until
	if t := who.TokenRecord; t != nil && t.Expires != 0 && (end == 0 || t.Expires < end) {
		end = t.Expires
	}
	if end != 0 {
		o.timer = time.AfterFunc(time.Until(end.Go()), func() { cancel(&streamEnd{"the token expired"}) })
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[*openStream]struct{}{}
	}
	s.all[o] = struct{}{}
	return ctx, func() {
		s.mu.Lock()
		delete(s.all, o)
		s.mu.Unlock()
		if o.timer != nil {
			o.timer.Stop()
		}
		cancel(nil)
	}
}

// Count is how many streams are open.
func (s *streamSet) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all)
}

// check ends the streams whose rights are gone.
func (s *streamSet) check(why func(*openStream) string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for o := range s.all {
		if text := why(o); text != "" {
			o.end(&streamEnd{text})
		}
	}
}

// CheckStreams follows changes of users, tokens, nodes and settings.
func (a *Base) CheckStreams(snap *state.Snapshot) {
	a.Open.check(func(o *openStream) string {
		u, ok := snap.User(o.user)
		if o.token != nil {
			if t, known := snap.TokenByHash(o.token.Hash); !known || t.Revoked {
				return "the token was revoked"
			}
		}
		if o.jwt != "" {
			if of, known := snap.User(o.jwt); known && of.NoJWTs != 0 && o.made.Go().Unix() <= of.NoJWTs.Go().Unix() {
				return "the JWT was revoked"
			}
		}
		switch {
		case ok && u.Disabled:
			return "the user is disabled"
		case ok && a.AdminByRecord(u) != o.admin:
			return "the user's rights have changed"
		case o.node != "" && keyRevoked(snap, o):
			return "the node's key was revoked"
		}
		return ""
	})
}

// keyRevoked reports whether the key of the node a stream came by was revoked. One that was renewed is no reason to end
// it.
func keyRevoked(snap *state.Snapshot, o *openStream) bool {
	n, ok := snap.Node(o.node)
	return !ok || n.Pin != nil && (n.Pin.Revoked || o.key != "" && slices.Contains(n.Pin.Gone, o.key))
}

// KeyOf is the key a node is known by at present.
func (a *Base) KeyOf(name core.NodeName) string {
	if name == "" {
		return ""
	}
	if n, ok := a.Engine.Snapshot().Node(name); ok && n.Pin != nil {
		return n.Pin.Key
	}
	return ""
}

// AdminByRecord reports whether a user's record or the settings make an administrator of it.
func (a *Base) AdminByRecord(u *core.User) bool {
	return u.Role == core.RoleAdmin || u.UnixName != "" && slices.Contains(a.Settings().Admins, u.UnixName)
}

// EndOf is why a stream was ended, or nil when its caller left.
func EndOf(ctx context.Context) *streamEnd {
	var e *streamEnd
	if errors.As(context.Cause(ctx), &e) {
		return e
	}
	return nil
}
