package state

import (
	"math"
	"slices"
	"testing"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
	"bireme.dev/bireme/internal/engine/state/ranking"
	"bireme.dev/bireme/internal/policy"
	"bireme.dev/bireme/internal/sched"
)

// rankWorld is a world with two users, one node of four CPUs and weights.
func rankWorld(t *testing.T, p Priority, parts ...core.Partition) *world {
	t.Helper()
	return chargeWorld(t, p, Charges{}, parts...)
}

func chargeWorld(t *testing.T, p Priority, c Charges, parts ...core.Partition) *world {
	t.Helper()
	w := newWorld(t, Config{Priority: &p, Charges: c, Partitions: parts})
	for i, name := range []string{"alice", "bob"} {
		w.must(&EnsureUser{UID: uint32(1000 + i), UnixName: name})
	}
	n := coretest.Node("n1").Build()
	w.must(&Register{Node: n.Name, Hardware: n.Hardware, Host: n.Host, Roles: n.Roles})
	return w
}

func (w *world) submitAs(user core.UserName, b *coretest.JobBuilder) core.JobID {
	w.t.Helper()
	uid := map[core.UserName]uint32{"alice": 1000, "bob": 1001}[user]
	spec := b.User(user).Set(func(s *core.Spec) { s.UID = uid }).Spec()
	return w.must(&Submit{By: core.Identity{User: user, UID: uid}, Spec: spec}).(*Submitted).ID
}

func (w *world) priority(id core.JobID) uint32 {
	w.t.Helper()
	j, ok := w.st.rec.Job(id)
	if !ok {
		w.t.Fatalf("there is no job %d", id)
	}
	return j.Priority
}

func (w *world) end(id core.JobID) {
	w.t.Helper()
	j, _ := w.st.rec.Job(id)
	w.must(&Exited{Node: "n1", Job: id, Attempt: j.Attempt, Step: "batch", JobDone: true})
}

// settle ticks until no slice of a calculation is left.
func (w *world) settle() {
	w.t.Helper()
	for n := 0; w.st.NextWake() != 0 && w.st.NextWake() <= w.now; n++ {
		if n > 1000 {
			w.t.Fatal("the calculation has no end")
		}
		w.must(&Tick{})
	}
	w.samePlan(w.st.All())
}

func all(cpus int32) *coretest.JobBuilder { return coretest.Job().Tasks(1).CPUs(cpus).Time(time.Hour) }

func TestAgeAndPartition(t *testing.T) {
	t.Parallel()
	day := core.Time(24 * 3600 * 1e6)
	w := rankWorld(t, Priority{Config: policy.Config{Weights: policy.Weights{Age: 1000, Partition: 100}}},
		core.Partition{Name: "main", Nodes: "ALL", Default: true},
		core.Partition{Name: "quick", Nodes: "ALL", PriorityFactor: 10})
	w.submitAs("alice", all(4).Time(720*time.Hour))
	w.pass()
	old := w.submitAs("alice", all(4))
	if got := w.priority(old); got != 10 {
		t.Errorf("a new job in main: %d", got)
	}
	w.advance(epoch + day)
	w.settle()
	quick := w.submitAs("bob", all(4).Partition("quick"))
	if a, b := w.priority(old), w.priority(quick); a != 152 || b != 100 {
		t.Errorf("a day of age against a better partition: %d and %d", a, b)
	}
	held := w.submitAs("bob", all(4).Set(func(s *core.Spec) { s.Hold = true }))
	fixed := w.submitAs("bob", all(4))
	w.must(&UpdateJob{By: root, Job: fixed, Priority: ptr(uint32(7))})
	w.advance(epoch + 20*day)
	w.settle()
	if got := []uint32{w.priority(old), w.priority(quick), w.priority(held), w.priority(fixed)}; !slices.Equal(got,
		[]uint32{1010, 1100, 0, 7}) {
		t.Errorf("after the most age counts: %v", got)
	}
	w.must(&UpdateJob{By: root, Job: held, Hold: ptr(false)})
	if got := w.priority(held); got != 10 {
		t.Errorf("age counts from the release: %d", got)
	}
	w.must(&UpdateJob{By: root, Job: old, Nice: ptr(int32(500))})
	if got := w.priority(old); got != 510 {
		t.Errorf("nice: %d", got)
	}
	w.restart()
	w.settle()
	if got := []uint32{w.priority(old), w.priority(quick), w.priority(fixed)}; !slices.Equal(got, []uint32{510, 1100, 7}) {
		t.Errorf("after a restart: %v", got)
	}
}

func TestFairShareOrdersTheQueue(t *testing.T) {
	t.Parallel()
	w := chargeWorld(t, Priority{Config: policy.Config{Weights: policy.Weights{FairShare: 1000}}},
		Charges{HalfLife: 7 * 24 * 3600})
	first := w.submitAs("alice", all(4))
	w.pass()
	a, b := w.submitAs("alice", all(4)), w.submitAs("bob", all(4))
	w.advance(epoch.Add(30 * time.Minute))
	w.settle()
	check := func(when string) {
		t.Helper()
		if w.priority(a) != 500 || w.priority(b) != 1000 {
			t.Fatalf("%s: alice has %d, bob %d", when, w.priority(a), w.priority(b))
		}
	}
	check("while alice's job runs")
	w.restart()
	w.settle()
	check("after a restart")
	w.end(first)
	if got := w.pass(); len(got) != 1 || got[0].ID != b {
		t.Fatalf("started: %v", got)
	}
	w.restart()
	w.advance(w.now.Add(20 * time.Minute))
	w.settle()
	if got := w.priority(a); got != 500 {
		t.Errorf("bob has used less: alice has %d", got)
	}
	w.advance(w.now.Add(20 * time.Minute))
	w.settle()
	if got := w.priority(a); got != 1000 {
		t.Errorf("bob has used more: alice has %d", got)
	}
}

func TestUsageIsConserved(t *testing.T) {
	t.Parallel()
	for _, restarts := range []bool{false, true} {
		w := chargeWorld(t, Priority{Config: policy.Config{Weights: policy.Weights{FairShare: 1}}},
			Charges{Billing: map[core.PartitionName][]policy.Weight{"main": {{Name: "cpu", Per: 2}, {Name: "node", Per: 1}}}})
		go100 := func() {
			w.advance(w.now.Add(100 * time.Second))
			if restarts {
				w.restart()
			}
		}
		x, y := w.submitAs("alice", all(1)), w.submitAs("alice", all(2))
		go100() // nobody pays for waiting
		w.pass()
		go100()
		w.end(x)
		go100()
		w.must(&Suspend{By: root, Job: y})
		go100()
		w.must(&Suspend{By: root, Job: y, Resume: true})
		go100()
		w.must(&Requeue{By: root, Job: y})
		go100()
		j, _ := w.st.rec.Job(y)
		w.must(&NodeDone{Node: "n1", Job: y, Attempt: j.Attempt})
		w.pass()
		go100()
		w.end(y)
		go100()
		// x: 3 a second for 100 s; y: 5 a second for 300 s of its first attempt and 100 s of its second.
		var got float64
		for _, m := range w.st.rec.Usage().List() {
			if got += w.st.rec.Usage().Decay.Read(m, w.now).All.Raw; m.All.RawRate != 0 {
				t.Errorf("a rate of %d is left", m.All.RawRate)
			}
		}
		if math.Abs(got-(3*100+5*400)) > 1e-6 {
			t.Errorf("with restarts %v: %v", restarts, got)
		}
	}
}

func TestRecalculationGoesInSlices(t *testing.T) {
	t.Parallel()
	w := rankWorld(t, Priority{Config: policy.Config{Weights: policy.Weights{Age: 1_000_000}}, Period: 60})
	w.settle()
	n := 2*ranking.JobsPerSlice + 10
	w.batching = true
	for range n {
		w.submitAs("alice", all(4))
	}
	w.batching = false
	w.flush(nil)
	w.now = w.now.Add(time.Hour)
	w.st.Advance(w.now)
	var told []int
	for w.st.NextWake() <= w.now {
		if _, err := w.st.Apply(&Tick{}); err != nil {
			t.Fatal(err)
		}
		fresh := w.st.PlannerChanges()
		c := w.st.Flush()
		if len(c.Jobs) != 0 || !c.Empty() {
			t.Fatal("what can be worked out is written")
		}
		w.p.Apply(sched.Changes{Jobs: fresh.Jobs})
		told = append(told, len(fresh.Jobs))
	}
	if !slices.Equal(told, []int{ranking.JobsPerSlice, ranking.JobsPerSlice, 10}) {
		t.Errorf("slices of %v", told)
	}
	if at := w.st.NextWake(); at != w.now.Add(time.Minute) {
		t.Errorf("the next calculation is at %d, now is %d", at, w.now)
	}
	w.samePlan(w.st.All())
}

func TestSharesAreForAdministrators(t *testing.T) {
	t.Parallel()
	w := rankWorld(t, Priority{Config: policy.Config{Weights: policy.Weights{FairShare: 100}}})
	alice := core.Identity{User: "alice", UID: 1000}
	members := []core.Member{{User: "alice", Role: core.RoleManager}}
	w.must(&PutProject{By: root, Project: &core.Project{Name: "p", Shares: 3, Members: members}})
	w.must(&PutProject{By: alice, Project: &core.Project{Name: "p", Shares: 300, Members: members}})
	if got := w.st.people.ProjectsByName()["p"].Shares; got != 3 {
		t.Errorf("a manager gave the project %d shares", got)
	}
	if _, err := w.do(&PutProject{
		By:      root,
		Project: &core.Project{Name: "p", Shares: -1},
	}); core.CodeOf(err) != core.Invalid {
		t.Errorf("shares below zero: %v", err)
	}
	// A circle of parents, from before they were refused, does no harm.
	w.must(&PutProject{By: root, Project: &core.Project{Name: "q", Parent: "p"}})
	w.st.putProjectRecord(&core.Project{Name: "p", Parent: "q", Members: members})
	w.advance(w.now.Add(time.Hour))
	w.settle()
	if f, ok := w.st.rec.Ranking().Tree.Factor("p", "alice"); !ok || f <= 0 {
		t.Errorf("alice has %v, %v", f, ok)
	}
}
