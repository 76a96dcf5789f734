package state

import (
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
)

// TestPolicyInputs tells what may be said of QOS, projects and reservations, and how the rest is refused.
func TestPolicyInputs(t *testing.T) {
	t.Parallel()
	ann := core.Identity{User: "ann", UID: 1000}
	qos := func(f func(*core.QOS)) Input {
		q := &core.QOS{Name: "x"}
		f(q)
		return &PutQOS{By: root, QOS: q}
	}
	for name, tc := range map[string]struct {
		in   Input
		code core.Code
		why  string
	}{
		"a QOS":          {qos(func(q *core.QOS) { q.Preempt = []core.QOSName{"low"} }), "", ""},
		"a QOS of ann's": {&PutQOS{By: ann, QOS: &core.QOS{Name: "x"}}, core.Denied, "access_denied"},
		"a QOS that is there": {
			&PutQOS{By: root, QOS: &core.QOS{Name: "low"}, New: true}, core.Conflict,
			"qos_exists",
		},
		"a QOS without a name": {&PutQOS{By: root, QOS: &core.QOS{}}, core.Invalid, "invalid_name"},
		"pushes nobody": {
			qos(func(q *core.QOS) { q.Preempt = []core.QOSName{"zz"} }), core.Invalid,
			"invalid_qos",
		},
		"pushes in a circle": {
			&PutQOS{By: root, QOS: &core.QOS{Name: "low", Preempt: []core.QOSName{"high"}}},
			core.Invalid, "invalid_qos",
		},
		"pushes itself": {
			qos(func(q *core.QOS) { q.Preempt = []core.QOSName{"x"} }), core.Invalid,
			"invalid_qos",
		},
		"a strange mode":           {qos(func(q *core.QOS) { q.PreemptMode = "shoot" }), core.Invalid, "invalid_qos"},
		"a factor below zero":      {qos(func(q *core.QOS) { q.UsageFactor = new(-1.0) }), core.Invalid, "invalid_qos"},
		"a factor beyond counting": {qos(func(q *core.QOS) { q.UsageFactor = new(1e15) }), core.Invalid, "invalid_qos"},
		"a limit below zero": {
			qos(func(q *core.QOS) { q.Limits.GrpJobs = ptr(int64(-1)) }), core.Invalid,
			"invalid_qos",
		},
		"a QOS goes":                 {&DropQOS{By: root, Name: "high"}, "", ""},
		"a QOS that is not there":    {&DropQOS{By: root, Name: "zz"}, core.NotFound, "invalid_qos"},
		"a QOS that another pushes":  {&DropQOS{By: root, Name: "low"}, core.Conflict, "qos_in_use"},
		"a QOS that a project names": {&DropQOS{By: root, Name: "used"}, core.Conflict, "qos_in_use"},
		"ann drops a QOS":            {&DropQOS{By: ann, Name: "high"}, core.Denied, "access_denied"},
		"a project below itself": {
			&PutProject{By: root, Project: &core.Project{Name: "top", Parent: "mid"}},
			core.Invalid, "invalid_project",
		},
		"a project with no such QOS": {
			&PutProject{
				By:      root,
				Project: &core.Project{Name: "top", Assoc: core.Association{QOS: []core.QOSName{"zz"}}},
			}, core.Invalid,
			"invalid_qos",
		},
		"a default outside the list": {
			&PutProject{
				By:      root,
				Project: &core.Project{Name: "top", Assoc: core.Association{QOS: []core.QOSName{"low"}, DefaultQOS: "high"}},
			},
			core.Invalid, "invalid_qos",
		},
		"a member's limits": {&PutMember{
			By: root, Project: "mid", User: "ann", Role: core.RoleManager,
			Assoc: &core.Association{Priority: 3},
		}, "", ""},
		"a manager's own limits": {&PutMember{
			By: ann, Project: "mid", User: "ann", Role: core.RoleManager,
			Assoc: &core.Association{Priority: 3},
		}, core.Denied, "access_denied"},
		"a project goes":              {&DropProject{By: root, Name: "leaf"}, "", ""},
		"a project with one below":    {&DropProject{By: root, Name: "top"}, core.Conflict, "project_in_use"},
		"a project with a job":        {&DropProject{By: root, Name: "busy"}, core.Conflict, "project_in_use"},
		"somebody's default":          {&DropProject{By: root, Name: "default"}, core.Conflict, "project_in_use"},
		"a project that is not there": {&DropProject{By: root, Name: "zz"}, core.NotFound, "invalid_project"},
		"ann drops a project":         {&DropProject{By: ann, Name: "leaf"}, core.Denied, "access_denied"},
		"a reservation goes":          {&DropReservation{By: root, Name: "r"}, "", ""},
		"no such reservation":         {&DropReservation{By: root, Name: "zz"}, core.NotFound, "invalid_reservation"},
		"ann drops a reservation":     {&DropReservation{By: ann, Name: "r"}, core.Denied, "access_denied"},
		"a reservation that is there": {&PutReservation{
			By: root, New: true,
			Reservation: &core.AdvanceReservation{Name: "r", Start: 1, End: 2},
		}, core.Conflict, "reservation_exists"},
		"it ends before it starts": {&PutReservation{
			By:          root,
			Reservation: &core.AdvanceReservation{Name: "x", Start: 2, End: 1},
		}, core.Invalid, "invalid_time_value"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, Config{})
			node := coretest.Node("n1").Build()
			w.must(&Register{Node: node.Name, Hardware: node.Hardware, Host: node.Host, Roles: node.Roles})
			w.must(&EnsureUser{UID: 1000, UnixName: "ann"})
			for _, q := range []*core.QOS{{Name: "low"}, {Name: "high", Preempt: []core.QOSName{"low"}}, {Name: "used"}} {
				w.must(&PutQOS{By: root, QOS: q})
			}
			for _, p := range []*core.Project{
				{Name: "top", Assoc: core.Association{QOS: []core.QOSName{"used"}}},
				{Name: "busy"},
				{Name: "leaf"},
				{Name: "mid", Parent: "top", Members: []core.Member{{User: "ann", Role: core.RoleManager}}},
			} {
				w.must(&PutProject{By: root, Project: p})
			}
			w.must(&PutReservation{
				By: root,
				Reservation: &core.AdvanceReservation{
					Name: "r", Start: w.now, End: w.now + 1e6, Nodes: "n1",
					Users: []core.UserName{"ann"},
				},
			})
			w.must(&Submit{By: ann, Spec: coretest.Job().Set(func(s *core.Spec) {
				s.User, s.UID, s.Project, s.Hold = "ann", 1000,
					"busy", true
			}).Spec()})
			_, err := w.do(tc.in)
			if core.CodeOf(err) != tc.code || core.ReasonOf(err) != tc.why {
				t.Fatalf("got %v (%s %s), want %s %s", err, core.CodeOf(err), core.ReasonOf(err), tc.code, tc.why)
			}
			w.check()
		})
	}
}

// TestManagersKeepLimits: a manager who replaces a project changes its members and nothing that an administrator set.
func TestManagersKeepLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{})
	w.must(&EnsureUser{UID: 1000, UnixName: "ann"})
	w.must(&EnsureUser{UID: 1001, UnixName: "bob"})
	two := int64(2)
	capped := core.Association{Limits: core.Limits{MaxJobs: &two}, Priority: 7}
	w.must(&PutProject{By: root, Project: &core.Project{
		Name: "p", Shares: 3, Assoc: capped, Members: []core.Member{{User: "ann", Role: core.RoleManager, Assoc: capped}},
	}})
	w.must(&PutProject{By: core.Identity{User: "ann", UID: 1000}, Project: &core.Project{
		Name: "p", Members: []core.Member{
			{User: "bob", Role: core.RoleUser, Assoc: capped},
			{User: "ann", Role: core.RoleManager},
		},
	}})
	p, _ := w.st.rec.Project("p")
	if p.Shares != 3 || p.Assoc.Priority != 7 || p.Member("ann").Assoc.Priority != 7 ||
		p.Member("bob").Assoc.Priority != 0 {
		t.Fatalf("a manager made it %s", asJSON(t, p))
	}
	w.must(&PutMember{By: root, Project: "p", User: "bob", Role: core.RoleUser, Shares: ptr(int32(5)), Assoc: &capped})
	p, _ = w.st.rec.Project("p")
	if m := p.Member("bob"); m.Shares != 5 || *m.Assoc.Limits.MaxJobs != 2 {
		t.Fatalf("an administrator made it %s", asJSON(t, p))
	}
	w.check()
}
