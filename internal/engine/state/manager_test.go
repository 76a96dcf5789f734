package state

import (
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
)

// A manager of a project steers what its members run and writes nothing into it: the job runs as its owner, with the
// owner's files.
func TestManagersSteerButDoNotWrite(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{})
	node := coretest.Node("n1").CPUs(1).Build()
	w.must(&Register{Node: node.Name, Hardware: node.Hardware, Host: node.Host, Roles: node.Roles})
	for i, n := range []string{"alice", "bob"} {
		w.must(&EnsureUser{UID: uint32(1000 + i), UnixName: n})
	}
	w.must(&PutProject{
		By: root,
		Project: &core.Project{
			Name:    "p",
			Members: []core.Member{{User: "alice", Role: core.RoleManager}, {User: "bob", Role: core.RoleUser}},
		},
	})
	alice, bob := core.Identity{User: "alice", UID: 1000}, core.Identity{User: "bob", UID: 1001}
	spec := coretest.Job().User("bob").Set(func(s *core.Spec) { s.UID, s.Project = 1001, "p" }).Spec()
	id := w.must(&Submit{By: bob, Spec: spec}).(*Submitted).ID
	dependency := coretest.Dependency("afterok:1")
	text, number, seconds := "/home/alice/x", int32(7), core.Seconds(60)
	moment, project, partition, qos := epoch, core.ProjectName("p"), core.ListPartitions("main"), core.QOSName("q")
	for name, in := range map[string]*UpdateJob{
		"stdout":     {Spec: core.SpecChange{PaperChange: core.PaperChange{Stdout: &text}}},
		"stdin":      {Spec: core.SpecChange{PaperChange: core.PaperChange{Stdin: &text}}},
		"stderr":     {Spec: core.SpecChange{PaperChange: core.PaperChange{Stderr: &text}}},
		"mail":       {Spec: core.SpecChange{PaperChange: core.PaperChange{MailUser: &text}}},
		"wckey":      {Spec: core.SpecChange{PaperChange: core.PaperChange{WCKey: &text}}},
		"nodes":      {Spec: core.SpecChange{AskChange: core.AskChange{NodeList: &text}}},
		"tasks":      {Spec: core.SpecChange{AskChange: core.AskChange{Tasks: &number}}},
		"project":    {Spec: core.SpecChange{AskChange: core.AskChange{Project: &project}}},
		"throttle":   {Spec: core.SpecChange{Throttle: &number}},
		"name":       {Name: &text},
		"comment":    {Comment: &text},
		"dependency": {Dependency: &dependency},
		"time":       {TimeLimit: &seconds},
		"partition":  {Partition: &partition},
		"qos":        {QOS: &qos},
		"site":       {Site: &number},
		"run":        {Run: &number},
		"checkpoint": {Checkpoint: &moment},
		"begin":      {Wish: core.WishChange{Begin: &moment}},
		"with hold":  {Hold: new(bool), Comment: &text},
	} {
		in.By, in.Job = alice, id
		if _, err := w.do(in); core.CodeOf(err) != core.Denied {
			t.Errorf("%s: %v", name, err)
		}
	}
	yes, no, low, nice := true, false, uint32(1), int32(100)
	for name, in := range map[string]*UpdateJob{
		"hold": {Hold: &yes}, "release": {Hold: &no}, "priority": {Priority: &low},
		"nice": {Nice: &nice},
	} {
		in.By, in.Job = alice, id
		if _, err := w.do(in); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.must(&UpdateJob{By: bob, Job: id, Comment: &text}) // it is their own job
	w.must(&UpdateJob{By: root, Job: id, Name: &text})
	w.must(&Cancel{By: alice, Job: id})
	w.check()
}

// A manager who writes a project again leaves its administrators as they are.
func TestManagersTakeNoRoleAboveTheirOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{})
	for i, n := range []string{"alice", "bob"} {
		w.must(&EnsureUser{UID: uint32(1000 + i), UnixName: n})
	}
	alice, chief := core.Member{User: "alice", Role: core.RoleManager}, core.Member{User: "bob", Role: core.RoleAdmin}
	p := &core.Project{Name: "p", Members: []core.Member{alice, chief}}
	w.must(&PutProject{By: root, Project: p})
	by := core.Identity{User: "alice", UID: 1000}
	for _, list := range [][]core.Member{{alice}, {alice, {User: "bob", Role: core.RoleUser}}} {
		in := &PutProject{By: by, Project: &core.Project{Name: "p", Members: list}}
		if _, err := w.do(in); core.CodeOf(err) != core.Denied {
			t.Errorf("%v: %v", list, err)
		}
	}
}
