package state

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"bireme.dev/bireme/internal/core"
)

// tokens is a state with alice, and what a test does to their tokens.
type tokens struct {
	*testing.T
	*State
	now core.Time
}

func newTokens(t *testing.T, most int) *tokens {
	img := &Image{
		NextJob: 1, NextNode: 1, Now: core.At(time.Unix(1_700_000_000, 0)),
		Users:    []*core.User{{Name: "alice", UID: ptr(uint32(1000))}, {Name: "bob", UID: ptr(uint32(1001))}},
		Projects: []*core.Project{{Name: "p"}, {Name: "q"}},
	}
	return &tokens{t, New(Config{MaxTokens: most}, img), img.Now}
}

func (x *tokens) do(in Input, want core.Code) error {
	x.Helper()
	x.now += core.Time(time.Second / time.Microsecond)
	x.Advance(x.now)
	_, err := x.Apply(in)
	if core.CodeOf(err) != want {
		x.Errorf("%T: %q (%v), want %q", in, core.CodeOf(err), err, want)
	}
	x.Flush()
	return err
}

func token(id string, scopes ...core.Scope) *core.Token {
	return &core.Token{
		ID: id, Hash: core.Hash([]byte(fmt.Sprintf("%-32s", id))), Kind: "user", User: "alice",
		Scopes: scopes,
	}
}

var alice = core.Identity{User: "alice", UID: 1000}

func by(t *core.Token) core.Identity {
	return core.Identity{User: t.User, UID: 1000, Token: t.ID, Project: t.Project, Plain: !t.Has(core.ScopeAdmin)}
}

func TestATokenMakesNoneThatMayMoreOrLastsLonger(t *testing.T) {
	t.Parallel()
	x := newTokens(t, 0)
	end := x.now.Add(time.Hour)
	parent := token("parent", core.ScopeSubmit)
	parent.Expires = end
	x.do(&PutToken{By: alice, Token: parent}, "")
	limited := token("limited", core.ScopeSubmit, core.ScopeProject)
	limited.Project = "p"
	x.do(&PutToken{By: alice, Token: limited}, "")

	child := func(id string, change func(*core.Token), scopes ...core.Scope) *core.Token {
		c := token(id, scopes...)
		c.Expires = end
		if change != nil {
			change(c)
		}
		return c
	}
	x.do(&PutToken{By: by(parent), Token: child("a", nil, core.ScopeAdmin)}, core.Denied)
	x.do(&PutToken{By: by(parent), Token: child("b", nil)}, core.Denied) // no scopes: all of them
	x.do(&PutToken{By: by(parent), Token: child("c", func(t *core.Token) { t.Expires = 0 }, core.ScopeRead)}, core.Denied)
	x.do(&PutToken{By: by(parent), Token: child("d", func(t *core.Token) { t.Expires++ }, core.ScopeRead)}, core.Denied)
	x.do(&PutToken{By: by(limited), Token: child("e", nil, core.ScopeRead)}, core.Denied)
	x.do(&PutToken{
		By:    by(limited),
		Token: child("f", func(t *core.Token) { t.Project = "q" }, core.ScopeRead, core.ScopeProject),
	}, core.Denied)
	prior := by(parent)
	prior.Prior = true
	x.do(&PutToken{By: prior, Token: child("g", nil, core.ScopeRead)}, core.Denied)
	x.do(&RotateToken{By: prior, ID: "parent"}, core.Denied)

	// What it may make ends with it, however deep.
	x.do(&PutToken{By: by(parent), Token: child("h", nil, core.ScopeRead, core.ScopeSubmit)}, "")
	h, _ := x.Snapshot().Token("h")
	x.do(&PutToken{By: by(h), Token: child("i", nil, core.ScopeRead)}, "")
	x.do(&RotateToken{By: by(parent), ID: "parent", Hash: core.Hash{1}}, "")
	if p, _ := x.Snapshot().Token("parent"); p.Expires != end || p.Hash != (core.Hash{1}) {
		t.Errorf("rotated by itself it ends at %v instead of %v", p.Expires, end)
	}
	for _, id := range []string{"h", "i"} {
		if c, _ := x.Snapshot().Token(id); !c.Revoked {
			t.Errorf("token %s, made with the old secret, goes on: %+v", id, c)
		}
	}
	if _, ok := x.Snapshot().TokenByHash(parent.Hash); ok {
		t.Error("the old secret is still found")
	}
	x.do(&RevokeToken{By: alice, ID: "parent"}, "")
	x.do(&PutToken{By: by(parent), Token: child("j", nil, core.ScopeRead)}, core.Unknown)
}

func TestTokensHaveALimitAndAreForgotten(t *testing.T) {
	t.Parallel()
	x := newTokens(t, 3)
	for i := range 3 {
		x.do(&PutToken{By: alice, Token: token(fmt.Sprint("t", i))}, "")
	}
	if err := x.do(&PutToken{By: alice, Token: token("t3")}, core.Exhausted); !strings.Contains(err.Error(),
		"limits.tokens allows 3") {
		t.Errorf("the refusal does not name the limit: %v", err)
	}
	x.do(&PutToken{By: root, Token: token("by-root")}, "") // administrators are exempt
	x.do(&RevokeToken{By: alice, ID: "by-root"}, "")
	x.do(&RevokeToken{By: alice, ID: "t0"}, "")
	for i := range 50 { // making and revoking in turn
		id := fmt.Sprint("turn", i)
		x.do(&PutToken{By: alice, Token: token(id)}, "")
		x.do(&RevokeToken{By: alice, ID: id}, "")
	}
	if n := len(x.Snapshot().Tokens()); n > 6 {
		t.Errorf("%d tokens are kept of a user who may have 3", n)
	}
	used := &core.Token{ID: "node", Kind: "join", Used: 1, Revoked: true, Hash: core.Hash{9}}
	x.do(&PutToken{By: root, Token: used}, "")
	x.do(&PurgeTokens{Before: x.now.Add(time.Hour), Max: 2}, "")
	x.do(&PurgeTokens{Before: x.now.Add(time.Hour), Max: 100}, "")
	left := ""
	for _, k := range x.Snapshot().Tokens() {
		left += k.ID + " "
	}
	if left != "node t1 t2 " {
		t.Errorf("after the purge there are %s; want the good ones and the join token of a revoked node", left)
	}
}

func TestTokensAreChecked(t *testing.T) {
	t.Parallel()
	x := newTokens(t, 0)
	for what, change := range map[string]func(*core.Token){
		"name":                  func(t *core.Token) { t.Name = "two\nlines" },
		"a long name":           func(t *core.Token) { t.Name = strings.Repeat("x", 65) },
		"8 MiB of note":         func(t *core.Token) { t.Note = strings.Repeat("x", 8<<20) },
		"a note for a terminal": func(t *core.Token) { t.Note = "\x1b[2J" },
		"a scope that is none":  func(t *core.Token) { t.Scopes = []core.Scope{"root"} },
		"a project without":     func(t *core.Token) { t.Project = "p" },
		"no project":            func(t *core.Token) { t.Scopes = []core.Scope{core.ScopeRead, core.ScopeProject} },
		"nothing in a project":  func(t *core.Token) { t.Scopes, t.Project = []core.Scope{core.ScopeProject}, "p" },
		"an admin of a project": func(t *core.Token) {
			t.Scopes, t.Project = []core.Scope{
				core.ScopeAdmin,
				core.ScopeProject,
			}, "p"
		},
		"a project that is none": func(t *core.Token) {
			t.Scopes, t.Project = []core.Scope{core.ScopeRead, core.ScopeProject},
				"zz"
		},
	} {
		k := token("x")
		change(k)
		if err := x.do(&PutToken{By: alice, Token: k}, core.Invalid); err == nil || len(err.Error()) > 400 {
			t.Errorf("%s: %v", what, err)
		}
	}
	k := token("x", core.ScopeRead)
	k.Name, k.Note = "laptop", "für zuhause"
	x.do(&PutToken{By: alice, Token: k}, "")
	again := token("y", core.ScopeRead)
	again.Name = "laptop"
	x.do(&PutToken{By: alice, Token: again}, core.Conflict)
	x.do(&RevokeToken{By: core.Identity{User: "bob"}, ID: "x"}, core.NotFound)
	x.do(&RotateToken{By: core.Identity{User: "bob"}, ID: "x"}, core.NotFound)
	x.do(&RotateToken{By: alice, ID: "x", Hash: core.Hash{7}, Overlap: 3600}, "")
	r, ok := x.Snapshot().TokenByHash(k.Hash)
	if !ok || r.PriorUntil == 0 || r.Hash != (core.Hash{7}) || r.Name != "laptop" {
		t.Errorf("after a rotation with an overlap: %+v", r)
	}
	before := len(x.Snapshot().Tokens())
	x.do(&TokensUsed{Uses: []TokenUse{{ID: "x", At: x.now}, {ID: "gone", At: x.now}}}, "")
	if r, _ := x.Snapshot().Token("x"); r.LastUsed == 0 || len(x.Snapshot().Tokens()) != before {
		t.Errorf("its last use is not known: %+v", r)
	}
}
