package state

import (
	"testing"

	"bireme.dev/bireme/internal/core"
)

// A deleted user leaves every project, and nothing is held back by the name.
func TestDropUser(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{})
	w.must(&PutProject{By: root, Project: &core.Project{Name: "p"}, New: true})
	w.must(&PutUser{By: root, User: &core.User{Name: "ann", Default: "p"}, New: true})
	w.must(&PutMember{By: root, Project: "p", User: "ann", Role: core.RoleManager})
	hash := core.Hash{7}
	w.must(&PutToken{By: root, Token: &core.Token{ID: "t", Kind: "user", User: "ann", Hash: hash}})
	if _, err := w.do(&DropUser{By: core.Identity{User: "ann"}, Name: "ann"}); core.CodeOf(err) != core.Denied {
		t.Errorf("a user deleted a user: %v", err)
	}
	w.must(&DropUser{By: root, Name: "ann"})
	snap := w.st.Snapshot()
	p, _ := snap.Project("p")
	if _, ok := snap.User("ann"); ok || len(p.Members) > 0 {
		t.Errorf("the user is there: %v, members %v", ok, p.Members)
	}
	if _, ok := snap.TokenByHash(hash); ok {
		t.Error("the token of a deleted user is there")
	}
	w.must(&DropProject{By: root, Name: "p"})
	if _, err := w.do(&DropUser{By: root, Name: "ann"}); core.CodeOf(err) != core.NotFound {
		t.Errorf("deleted twice: %v", err)
	}
	w.check()
}

// Ids are given once and kept over every change, also by a policy that does not name them; records of an earlier
// version get theirs by NumberPolicy.
func TestPolicyIDs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{})
	w.must(&PutUser{By: root, User: &core.User{Name: "ann"}, New: true})
	w.must(&PutProject{By: root, Project: &core.Project{
		Name: "p", Members: []core.Member{{User: "ann", Role: core.RoleUser}},
	}, New: true})
	w.must(&PutQOS{By: root, QOS: &core.QOS{Name: "normal"}})
	w.must(&PutQOS{By: root, QOS: &core.QOS{Name: "high"}})
	ids := func() (p, m, normal, high int64) {
		snap := w.st.Snapshot()
		x, _ := snap.Project("p")
		n, _ := snap.QOS("normal")
		h, _ := snap.QOS("high")
		return x.ID, x.Member("ann").ID, n.ID, h.ID
	}
	p, m, normal, high := ids()
	if p < 3 || m < 3 || p == m || normal != 1 || high != 2 {
		t.Fatalf("ids %d %d, QOS %d %d", p, m, normal, high)
	}
	w.must(&ApplyPolicy{By: root, Policy: core.Policy{
		QOS: []core.QOS{{Name: "high", Priority: 5}},
		Projects: []core.Project{{
			Name: "p", Shares: 7, Members: []core.Member{{User: "ann", Role: core.RoleManager}},
		}},
	}})
	w.must(&PutMember{By: root, Project: "p", User: "ann", Role: core.RoleUser})
	w.must(&NumberPolicy{})
	if a, b, c, d := ids(); a != p || b != m || c != normal || d != high {
		t.Errorf("ids %d %d %d %d became %d %d %d %d", p, m, normal, high, a, b, c, d)
	}
	w.check()
}
