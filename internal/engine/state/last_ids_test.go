package state

import (
	"testing"

	"bireme.dev/bireme/internal/core"
)

// TestIDsOfDeletedRecords: a new reservation, QOS, project or member never has the id of a deleted one, also after a
// restart, also where the deleted one was the newest, and where an earlier build had given its id.
func TestIDsOfDeletedRecords(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{})
	w.must(&PutUser{By: root, User: &core.User{Name: "alice"}})
	w.must(&PutUser{By: root, User: &core.User{Name: "bob"}})
	w.must(&PutProject{By: root, Project: &core.Project{Name: "kept"}})
	n := &core.Node{Name: "n1", Hardware: core.Hardware{CPUs: 4, Memory: core.GiB}, Roles: core.Compute}
	w.must(&Register{Node: n.Name, Hardware: n.Hardware, Roles: n.Roles})
	kinds := []struct {
		name   string
		create func() int64
		drop   Input
	}{
		{"reservation", func() int64 {
			r := &core.AdvanceReservation{
				Name: "r", Start: w.now + 3600e6, End: w.now + 7200e6, Nodes: "n1", Users: []core.UserName{"alice"},
			}
			w.must(&PutReservation{By: root, Reservation: r, New: true})
			r, _ = w.st.rec.Reservation("r")
			return r.ID
		}, &DropReservation{By: root, Name: "r"}},
		{"QOS", func() int64 {
			w.must(&PutQOS{By: root, QOS: &core.QOS{Name: "q"}})
			return w.st.rec.QOSByName()["q"].ID
		}, &DropQOS{By: root, Name: "q"}},
		{"project", func() int64 {
			w.must(&PutProject{By: root, Project: &core.Project{Name: "p"}})
			return w.st.people.ProjectsByName()["p"].ID
		}, &DropProject{By: root, Name: "p"}},
		{"member", func() int64 {
			w.must(&PutMember{By: root, Project: "kept", User: "bob", Role: core.RoleUser})
			return w.st.people.ProjectsByName()["kept"].Member("bob").ID
		}, &PutMember{By: root, Project: "kept", User: "bob", Role: core.RoleNone}},
	}
	for _, k := range kinds {
		seen := map[int64]bool{}
		for round := range 4 {
			id := k.create()
			if id <= 0 || seen[id] {
				t.Errorf("round %d: the id of the new %s is %d; deleted ones had %v", round, k.name, id, seen)
			}
			seen[id] = true
			if round == 2 { // an earlier build wrote the records and nothing of the ids given
				w.disk.lastIDs = core.LastIDs{}
				w.restart()
			}
			w.must(k.drop)
			if round > 0 {
				w.restart()
			}
		}
	}
	w.check()
}
