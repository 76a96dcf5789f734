package state

import (
	"reflect"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
)

// TestWhoMay tells who may do what to people, projects and tokens, and with which code the others are refused.
func TestWhoMay(t *testing.T) {
	t.Parallel()
	alice, bob := core.Identity{User: "alice", UID: 1000}, core.Identity{User: "bob", UID: 1001}
	project := func(members ...core.Member) *core.Project { return &core.Project{Name: "p", Members: members} }
	member := func(u core.UserName, r core.Role) core.Member { return core.Member{User: u, Role: r} }
	run := func(by core.Identity, in core.ProjectName, strict bool) *Submit {
		spec := coretest.Job().Set(func(s *core.Spec) { s.User, s.UID, s.Project, s.Hold = by.User, by.UID, in, true }).Spec()
		return &Submit{By: by, Spec: spec, Strict: strict}
	}
	for name, tc := range map[string]struct {
		in   Input
		want core.Code
	}{
		"bob runs in his project": {run(bob, "p", true), ""},
		"bob runs in another's":   {run(bob, "own", true), core.Denied},
		"bob runs in none":        {run(bob, "q", true), core.NotFound},
		"bob names any account":   {run(bob, "q", false), ""},
		"root adds a user":        {&PutUser{By: root, User: &core.User{Name: "carol"}}, ""},
		"alice adds a user":       {&PutUser{By: alice, User: &core.User{Name: "carol"}}, core.Denied},
		"root disables alice": {&PutUser{
			By:   root,
			User: &core.User{Name: "alice", UID: ptr(uint32(1000)), Disabled: true},
		}, ""},
		"a default that is not there": {&PutUser{By: root, User: &core.User{Name: "carol", Default: "zz"}}, core.Invalid},
		"root disables himself": {
			&PutUser{By: root, User: &core.User{Name: root.User, Disabled: true}},
			core.Conflict,
		},
		"an admin disables uid 0": {&PutUser{
			By:   core.Identity{User: "alice", UID: 1000, Admin: true},
			User: &core.User{Name: "root", UID: ptr(uint32(0)), Disabled: true},
		}, core.Conflict},
		"a user that is there": {&PutUser{By: root, User: &core.User{Name: "bob"}, New: true}, core.Conflict},
		"a uid that is taken": {
			&PutUser{By: root, User: &core.User{Name: "carol", UID: ptr(uint32(1000))}},
			core.Conflict,
		},
		"a user without a name": {&PutUser{By: root, User: &core.User{}}, core.Invalid},
		"alice makes a project": {&PutProject{By: alice, Project: &core.Project{Name: "q"}}, core.Denied},
		"its manager adds a member": {&PutProject{
			By:      alice,
			Project: project(member("alice", core.RoleManager), member("bob", core.RoleUser)),
		}, ""},
		"its manager goes above himself": {
			&PutProject{By: alice, Project: project(member("bob", core.RoleAdmin))},
			core.Denied,
		},
		"a member is no manager": {&PutProject{By: bob, Project: project()}, core.Denied},
		"a member nobody knows": {
			&PutProject{By: root, Project: project(member("zoe", core.RoleUser))},
			core.Invalid,
		},
		"a role that is none": {&PutProject{By: root, Project: project(member("bob", "king"))}, core.Invalid},
		"a parent that is not there": {
			&PutProject{By: root, Project: &core.Project{Name: "q", Parent: "zz"}},
			core.Invalid,
		},
		"a project that is there":   {&PutProject{By: root, Project: project(), New: true}, core.Conflict},
		"its manager takes bob out": {&PutMember{By: alice, Project: "p", User: "bob"}, ""},
		"its manager makes another": {&PutMember{By: alice, Project: "p", User: "bob", Role: core.RoleManager}, ""},
		"its manager makes one above": {
			&PutMember{By: alice, Project: "p", User: "bob", Role: core.RoleAdmin},
			core.Denied,
		},
		"a member makes himself manager": {
			&PutMember{By: bob, Project: "p", User: "bob", Role: core.RoleManager},
			core.Denied,
		},
		"a member of no project": {
			&PutMember{By: root, Project: "q", User: "bob", Role: core.RoleUser},
			core.NotFound,
		},
		"a member who is nobody": {
			&PutMember{By: root, Project: "p", User: "zoe", Role: core.RoleUser},
			core.Invalid,
		},
		"a member with a strange role": {&PutMember{By: root, Project: "p", User: "bob", Role: "king"}, core.Invalid},
		"alice's own token": {
			&PutToken{By: alice, Token: &core.Token{ID: "new", Kind: "user", User: "alice"}},
			"",
		},
		"a token for bob": {
			&PutToken{By: alice, Token: &core.Token{ID: "new", Kind: "user", User: "bob"}},
			core.Denied,
		},
		"a token for nobody": {
			&PutToken{By: root, Token: &core.Token{ID: "new", Kind: "user", User: "zoe"}},
			core.NotFound,
		},
		"a join token of alice's": {
			&PutToken{By: alice, Token: &core.Token{ID: "new", Kind: "join", User: "alice"}},
			core.Denied,
		},
		"somebody else's token": {
			&PutToken{By: alice, Token: &core.Token{ID: "bobs", Kind: "user", User: "alice"}},
			core.Conflict,
		},
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
			node := coretest.Node("n1").Build()
			w.must(&Register{Node: node.Name, Hardware: node.Hardware, Host: node.Host, Roles: node.Roles})
			for i, n := range []string{"alice", "bob"} {
				w.must(&EnsureUser{UID: uint32(1000 + i), UnixName: n})
			}
			w.must(&PutUser{By: root, User: &core.User{Name: "bob.2001"}})
			w.must(&PutProject{By: root, Project: project(member("alice", core.RoleManager), member("bob", core.RoleUser))})
			w.must(&PutProject{
				By:      root,
				Project: &core.Project{Name: "own", Members: []core.Member{member("alice", core.RoleUser)}},
			})
			for i, tok := range []core.Token{
				{ID: "bobs", Kind: "user", User: "bob"},
				{ID: "join", Kind: "join"},
				{ID: "join-n2", Kind: "join", Node: "n2"},
				{ID: "used", Kind: "join", Used: epoch},
				{ID: "revoked", Kind: "join", Revoked: true},
				{ID: "expired", Kind: "join", Expires: epoch - 1},
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

// Members change one by one: two changes that were thought of at the same time both hold.
func TestMembers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{})
	for i, n := range []string{"alice", "bob", "carol"} {
		w.must(&EnsureUser{UID: uint32(1000 + i), UnixName: n})
	}
	w.must(&PutProject{
		By:      root,
		Project: &core.Project{Name: "p", Members: []core.Member{{User: "alice", Role: core.RoleAdmin}}},
	})
	w.must(&PutMember{By: root, Project: "p", User: "bob", Role: core.RoleManager})
	carol := &PutMember{By: core.Identity{User: "bob", UID: 1001}, Project: "p", User: "carol", Role: core.RoleUser}
	w.must(carol) // also where somebody is above the manager
	seq := w.st.Snapshot().Seq()
	w.must(carol)
	if now := w.st.Snapshot().Seq(); now != seq {
		t.Errorf("the same again made %d events", now-seq)
	}
	if _, err := w.do(&PutMember{By: carol.By, Project: "p", User: "alice"}); core.CodeOf(err) != core.Denied {
		t.Errorf("a manager took an administrator out: %v", err)
	}
	w.must(&PutMember{By: root, Project: "p", User: "bob"})
	p, _ := w.st.Snapshot().Project("p")
	if want := []core.Member{
		{User: "alice", ID: p.Member("alice").ID, Role: core.RoleAdmin},
		{User: "carol", ID: p.Member("carol").ID, Role: core.RoleUser},
	}; !reflect.DeepEqual(p.Members, want) {
		t.Errorf("members %v, want %v", p.Members, want)
	}
	w.check()
}

// What a job asks for is bounded before the writer works on it.
func TestBounds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{MaxKillGrace: 60})
	n := coretest.Node("n1").Build()
	w.must(&Register{Node: n.Name, Hardware: n.Hardware, Host: n.Host, Roles: n.Roles})
	w.must(&EnsureUser{UID: 1000, UnixName: "alice"})
	for _, tc := range []struct {
		reason string
		x      core.Extra
	}{
		{"kill_grace", core.Extra{KillGrace: 61}},
		{"invalid_node", core.Extra{NodeList: "n[1-1000000000]"}},
		{"time_limit", core.Extra{Deadline: epoch - 1}},
		{"invalid_switches", core.Extra{Switches: coretest.Switches("few")}},
		{"", core.Extra{KillGrace: 60}},
	} {
		reason, x := tc.reason, tc.x
		spec := &core.Spec{Kind: core.Batch, Name: "x", User: "alice", UID: 1000, Extra: &x}
		if _, err := w.do(&Submit{By: core.Identity{User: "alice", UID: 1000}, Spec: spec}); core.ReasonOf(err) != reason {
			t.Errorf("%+v: %v, want %q", x, err, reason)
		}
	}
}
