package state

import (
	"testing"

	"bireme.dev/bireme/internal/core"
)

// TestWhoMay tells who may do what to people, projects and tokens, and with which code the others are refused.
func TestWhoMay(t *testing.T) {
	t.Parallel()
	alice, bob := core.Identity{User: "alice", UID: 1000}, core.Identity{User: "bob", UID: 1001}
	project := func(members ...core.Member) *core.Project { return &core.Project{Name: "p", Members: members} }
	member := func(u core.UserName, r core.Role) core.Member { return core.Member{User: u, Role: r} }
	for name, tc := range map[string]struct {
		in   Input
		want core.Code
	}{
		"root adds a user":                {&PutUser{By: root, User: &core.User{Name: "carol"}}, ""},
		"alice adds a user":               {&PutUser{By: alice, User: &core.User{Name: "carol"}}, core.Denied},
		"a user that is there":            {&PutUser{By: root, User: &core.User{Name: "bob"}, New: true}, core.Conflict},
		"a uid that is taken":             {&PutUser{By: root, User: &core.User{Name: "carol", UID: ptr(uint32(1000))}}, core.Conflict},
		"a user without a name":           {&PutUser{By: root, User: &core.User{}}, core.Invalid},
		"alice makes a project":           {&PutProject{By: alice, Project: &core.Project{Name: "q"}}, core.Denied},
		"its manager adds a member":       {&PutProject{By: alice, Project: project(member("alice", core.RoleManager), member("bob", core.RoleUser))}, ""},
		"its manager goes above himself":  {&PutProject{By: alice, Project: project(member("bob", core.RoleAdmin))}, core.Denied},
		"a member is no manager":          {&PutProject{By: bob, Project: project()}, core.Denied},
		"a member nobody knows":           {&PutProject{By: root, Project: project(member("zoe", core.RoleUser))}, core.Invalid},
		"a role that is none":             {&PutProject{By: root, Project: project(member("bob", "king"))}, core.Invalid},
		"a parent that is not there":      {&PutProject{By: root, Project: &core.Project{Name: "q", Parent: "zz"}}, core.Invalid},
		"a project that is there":         {&PutProject{By: root, Project: project(), New: true}, core.Conflict},
		"alice's own token":               {&PutToken{By: alice, Token: &core.Token{ID: "new", Kind: "user", User: "alice"}}, ""},
		"a token for bob":                 {&PutToken{By: alice, Token: &core.Token{ID: "new", Kind: "user", User: "bob"}}, core.Denied},
		"a token for nobody":              {&PutToken{By: root, Token: &core.Token{ID: "new", Kind: "user", User: "zoe"}}, core.NotFound},
		"a join token of alice's":         {&PutToken{By: alice, Token: &core.Token{ID: "new", Kind: "join", User: "alice"}}, core.Denied},
		"somebody else's token":           {&PutToken{By: alice, Token: &core.Token{ID: "bobs", Kind: "user", User: "alice"}}, core.Conflict},
		"a join token":                    {&UseToken{ID: "join", Node: "n1"}, ""},
		"a join token for another node":   {&UseToken{ID: "join-n2", Node: "n1"}, core.Denied},
		"a join token that was used":      {&UseToken{ID: "used", Node: "n1"}, core.Conflict},
		"a join token that was revoked":   {&UseToken{ID: "revoked", Node: "n1"}, core.Unknown},
		"a join token that expired":       {&UseToken{ID: "expired", Node: "n1"}, core.Unknown},
		"a user's token to join with":     {&UseToken{ID: "bobs", Node: "n1"}, core.Unknown},
		"a uid we know":                   {&EnsureUser{UID: 1000, UnixName: "alice"}, ""},
		"a name that belongs to another":  {&EnsureUser{UID: 2000, UnixName: "alice"}, ""},
		"a uid that cannot have its name": {&EnsureUser{UID: 2001, UnixName: "bob"}, core.Conflict},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, Config{})
			for i, n := range []string{"alice", "bob"} {
				w.must(&EnsureUser{UID: uint32(1000 + i), UnixName: n})
			}
			w.must(&PutUser{By: root, User: &core.User{Name: "bob.2001"}})
			w.must(&PutProject{By: root, Project: project(member("alice", core.RoleManager), member("bob", core.RoleUser))})
			for i, tok := range []core.Token{
				{ID: "bobs", Kind: "user", User: "bob"}, {ID: "join", Kind: "join"}, {ID: "join-n2", Kind: "join", Node: "n2"},
				{ID: "used", Kind: "join", Used: epoch}, {ID: "revoked", Kind: "join", Revoked: true}, {ID: "expired", Kind: "join", Expires: epoch - 1},
			} {
				tok.Hash = core.Hash{byte(i + 1)}
				w.must(&PutToken{By: root, Token: &tok})
			}
			if _, err := w.do(tc.in); core.CodeOf(err) != tc.want {
				t.Fatalf("got %v, want %q", err, tc.want)
			}
			if use, ok := tc.in.(*UseToken); ok && tc.want == "" {
				if _, err := w.do(use); core.CodeOf(err) != core.Conflict {
					t.Fatalf("a join token worked twice: %v", err)
				}
			}
			w.check()
		})
	}
}
