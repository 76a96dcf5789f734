package state

import (
	"fmt"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
)

// fleetOf makes a fleet as a user would ask for it.
func fleetOf(name string, hosts ...string) *core.Fleet {
	f := &core.Fleet{Name: name, Keys: []core.FleetKey{{Fingerprint: "SHA256:k", Sealed: "AA=="}}}
	for _, h := range hosts {
		f.Hosts = append(f.Hosts, core.FleetHost{Login: core.SSHLogin{Host: h, User: "ubuntu", Key: "SHA256:k"}})
	}
	return f
}

// join has the agent of a fleet's node register.
func join(w *world, name core.NodeName, fleet string) {
	w.t.Helper()
	n := coretest.Node(name).Build()
	w.must(&Register{Node: n.Name, Hardware: n.Hardware, Host: n.Host, Roles: n.Roles, Fleet: fleet})
}

func fleetLine(w *world, name string) string {
	f, ok := w.st.rec.Fleet(name)
	if !ok {
		return "none"
	}
	var out []string
	for i := range f.Hosts {
		h := &f.Hosts[i]
		s := fmt.Sprintf("%s=%s", h.Node, h.Login.Host)
		if h.Leaving {
			s += "(leaves)"
		}
		if h.Cause != "" {
			s += "(" + h.Cause + ")"
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

func wantFleet(t *testing.T, w *world, name, want string) {
	t.Helper()
	if got := fleetLine(w, name); got != want {
		t.Fatalf("fleet %s is %q, want %q", name, got, want)
	}
	w.check()
}

// TestFleetInPlace: hosts come, change and go in place, keep their numbers, and leave neither node nor key behind.
func TestFleetInPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{})
	plan := w.must(&PutFleet{By: root, Fleet: fleetOf("lab", "a", "b"), Dry: true}).(*core.FleetPlan)
	if plan.Action != "create" || len(plan.Added) != 2 {
		t.Fatalf("plan %+v", plan)
	}
	wantFleet(t, w, "lab", "none")
	w.must(&PutFleet{By: root, Fleet: fleetOf("lab", "a", "b")})
	wantFleet(t, w, "lab", "lab-0=a lab-1=b")
	if n, ok := w.st.rec.Node("lab-1"); !ok || !n.Flags.Has(core.NodeUnknown) || n.Fleet != "lab" {
		t.Fatalf("node lab-1: %+v", n)
	}
	key, cause := "ssh-ed25519 AAAA", "connection refused"
	w.must(&FleetNews{Fleet: "lab", Num: 1, HostKey: &key, Cause: &cause})
	wantFleet(t, w, "lab", "lab-0=a lab-1=b(connection refused)")

	if plan = w.must(&PutFleet{By: root, Fleet: fleetOf("lab", "b", "a")}).(*core.FleetPlan); plan.Action != "none" {
		t.Fatalf("another order is no change: %+v", plan)
	}
	next := fleetOf("lab", "b", "c")
	next.Hosts[0].Login.User = "root"
	plan = w.must(&PutFleet{By: root, Fleet: next}).(*core.FleetPlan)
	if plan.Action != "update" || len(plan.Added) != 1 || len(plan.Removed) != 1 || len(plan.Changed) != 1 ||
		plan.Changed[0] != "b:22: user root" {
		t.Fatalf("plan %+v", plan)
	}
	wantFleet(t, w, "lab", "lab-1=b(connection refused) lab-2=c lab-0=a(leaves)")
	stays, told := `its files stay: "no route"`, ""
	w.onFlush = func(c *core.Changes) {
		for _, e := range c.Events {
			if e.Node == "lab-0" {
				told += string(e.Data)
			}
		}
	}
	w.must(&FleetNews{Fleet: "lab", Num: 0, Gone: true, Cause: &stays})
	w.onFlush = nil
	if told != `{"gone":true,"reason":"its files stay: \"no route\""}` {
		t.Errorf("of the host that left it is told: %s", told)
	}
	wantFleet(t, w, "lab", "lab-1=b(connection refused) lab-2=c")
	if _, ok := w.st.rec.Node("lab-0"); ok {
		t.Fatal("node lab-0 is still there")
	}
	if f, _ := w.st.rec.Fleet("lab"); f.Host(1).HostKey != key {
		t.Fatal("the host key was lost")
	}
	w.must(&TrustFleet{By: root, Name: "lab", Hosts: []int32{1}})
	if f, _ := w.st.rec.Fleet("lab"); f.Host(1).HostKey != "" {
		t.Fatal("the host key was kept")
	}
	w.must(&DropFleet{By: root, Name: "lab"})
	wantFleet(t, w, "lab", "lab-1=b(leaves)(connection refused) lab-2=c(leaves)")
	w.must(&FleetNews{Fleet: "lab", Num: 2, Gone: true})
	w.must(&FleetNews{Fleet: "lab", Num: 1, Gone: true})
	wantFleet(t, w, "lab", "none")
	for range w.st.rec.Nodes() {
		t.Fatal("a node is left")
	}
}

// TestFleetUnderJobs: a host with a job leaves only by force, and the job then starts elsewhere once it is known to
// have ended.
func TestFleetUnderJobs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{})
	w.must(&PutUser{By: root, User: &core.User{Name: "alice"}})
	w.must(&PutFleet{By: root, Fleet: fleetOf("lab", "a", "b")})
	join(w, "lab-0", "lab")
	spec := coretest.Job().CPUs(1).Spec()
	spec.Requeue = true
	id := w.must(&Submit{By: root, Spec: spec}).(*Submitted).ID
	if started := w.pass(); len(started) != 1 {
		t.Fatalf("started %v", started)
	}
	_, err := w.do(&DropFleet{By: root, Name: "lab", Hosts: []int32{0}})
	if core.CodeOf(err) != core.Conflict || !strings.Contains(err.Error(), fmt.Sprintf("job %d runs there", id)) {
		t.Fatalf("got %v", err)
	}
	w.must(&DropFleet{By: root, Name: "lab", Hosts: []int32{0}, Force: true})
	w.must(&FleetNews{Fleet: "lab", Num: 0, Gone: true})
	wantFleet(t, w, "lab", "lab-1=b")
	j, _ := w.st.rec.Job(id)
	if j == nil || j.State != core.Pending {
		t.Fatalf("the job is %+v", j)
	}
	join(w, "lab-1", "lab")
	if started := w.pass(); len(started) != 1 {
		t.Fatalf("started %v", started)
	}
	w.check()
}

// TestFleetComesAgain: a name that went may come again within one batch.
func TestFleetComesAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{})
	w.must(&PutUser{By: root, User: &core.User{Name: "alice"}})
	w.must(&PutFleet{By: root, Fleet: fleetOf("lab", "a")})
	join(w, "lab-0", "lab")
	w.batching = true
	w.must(&DropFleet{By: root, Name: "lab"})
	w.must(&FleetNews{Fleet: "lab", Num: 0, Gone: true})
	w.must(&PutFleet{By: root, Fleet: fleetOf("lab", "a")})
	join(w, "lab-0", "lab")
	w.batching = false
	w.flush(nil)
	w.must(&Submit{By: root, Spec: coretest.Job().CPUs(1).Spec()})
	if started := w.pass(); len(started) != 1 {
		t.Fatalf("started %v", started)
	}
	w.check()
}

// TestFleetRefusals: what is wrong is told, and nothing changes.
func TestFleetRefusals(t *testing.T) {
	t.Parallel()
	ann := core.Identity{User: "ann", UID: 1000}
	twice := fleetOf("new", "x", "x")
	for name, tc := range map[string]struct {
		in   Input
		code core.Code
		want string
	}{
		"ann makes one":        {&PutFleet{By: ann, Fleet: fleetOf("new", "x")}, core.Denied, "administrator"},
		"ann deletes one":      {&DropFleet{By: ann, Name: "lab"}, core.Denied, "administrator"},
		"ann trusts one":       {&TrustFleet{By: ann, Name: "lab"}, core.Denied, "administrator"},
		"another fleet's host": {&PutFleet{By: root, Fleet: fleetOf("new", "a")}, core.Conflict, "a:22 is in fleet lab"},
		"a host twice":         {&PutFleet{By: root, Fleet: twice}, core.Conflict, "x:22 is listed twice"},
		"a node's name": {
			&PutFleet{By: root, Fleet: fleetOf("n", "x", "y")}, core.Conflict,
			"its node would be n-1",
		},
		"no such fleet":          {&DropFleet{By: root, Name: "lap"}, core.NotFound, "lab"},
		"no such host":           {&DropFleet{By: root, Name: "lab", Hosts: []int32{7}}, core.NotFound, "no instance 7"},
		"one that is leaving":    {&PutFleet{By: root, Fleet: fleetOf("going", "g")}, core.Conflict, "being deleted"},
		"a host that is leaving": {&PutFleet{By: root, Fleet: fleetOf("lab", "a", "b")}, core.Conflict, "being removed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, Config{})
			w.must(&PutFleet{By: root, Fleet: fleetOf("lab", "a", "b")})
			w.must(&DropFleet{By: root, Name: "lab", Hosts: []int32{1}})
			w.must(&PutFleet{By: root, Fleet: fleetOf("going", "g")})
			w.must(&DropFleet{By: root, Name: "going"})
			join(w, "n-1", "")
			_, err := w.do(tc.in)
			if core.CodeOf(err) != tc.code || !strings.Contains(fmt.Sprint(err), tc.want) {
				t.Fatalf("got %v, want %s with %q", err, tc.code, tc.want)
			}
			w.check()
		})
	}
}

// TestFleetOfAProject: its members see it, its managers may delete it and forget its host keys, others are told that it
// is not there; the project stays while it has one.
func TestFleetOfAProject(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{})
	w.must(&PutProject{By: root, Project: &core.Project{Name: "physics"}, New: true})
	who := map[string]core.Identity{}
	for i, name := range []string{"ann", "bob", "eve"} {
		uid := uint32(1000 + i)
		w.must(&PutUser{By: root, User: &core.User{Name: core.UserName(name), UID: &uid, Role: core.RoleUser}, New: true})
		who[name] = core.Identity{User: core.UserName(name), UID: uid}
	}
	w.must(&PutMember{By: root, Project: "physics", User: "ann", Role: core.RoleManager})
	w.must(&PutMember{By: root, Project: "physics", User: "bob", Role: core.RoleUser})
	f := fleetOf("lab", "a", "b")
	f.Project = "phisics"
	if _, err := w.do(&PutFleet{By: root, Fleet: f}); core.CodeOf(err) != core.Invalid ||
		!strings.Contains(err.Error(), "did you mean physics") {
		t.Fatalf("no such project: %v", err)
	}
	f = fleetOf("lab", "a", "b")
	f.Project = "physics"
	w.must(&PutFleet{By: root, Fleet: f})
	w.must(&PutFleet{By: root, Fleet: fleetOf("lab", "a", "b", "c")}) // it stays in its project
	for name, tc := range map[string]struct {
		seen bool
		code core.Code
		want string
	}{
		"ann": {true, "", ""},
		"bob": {true, core.Denied, "only a manager of project physics or an administrator"},
		"eve": {false, core.NotFound, "there is no fleet"},
	} {
		got, _ := w.st.rec.Fleet("lab")
		if seen := got.SeenBy(who[name], w.st.rec.Role(who[name].User, got.Project)); seen != tc.seen {
			t.Errorf("%s sees it: %t", name, seen)
		}
		if _, err := w.do(&TrustFleet{By: who[name], Name: "lab"}); core.CodeOf(err) != tc.code || err != nil &&
			!strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s trusts its hosts: %v", name, err)
		}
		if _, err := w.do(&PutFleet{By: who[name], Fleet: fleetOf("lab", "a")}); core.CodeOf(err) != core.Denied {
			t.Errorf("%s changes it: %v", name, err)
		}
	}
	if _, err := w.do(&DropProject{By: root, Name: "physics"}); core.CodeOf(err) != core.Conflict ||
		!strings.Contains(err.Error(), "fleet lab belongs to it") {
		t.Errorf("the project goes: %v", err)
	}
	w.must(&DropFleet{By: who["ann"], Name: "lab"})
	wantFleet(t, w, "lab", "lab-0=a(leaves) lab-1=b(leaves) lab-2=c(leaves)")
}
