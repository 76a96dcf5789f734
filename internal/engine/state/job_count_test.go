package state

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
	"bireme.dev/bireme/internal/engine/state/admit"
)

// Without a limit on array tasks a user still gets no more than a share of all jobs, and nobody has a crontab without
// end.
func TestShareWithoutTaskLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{MaxJobs: 1000, MaxArraySize: 1001, CronJobsPerUser: 3})
	node := coretest.Node("n1").Build()
	w.must(&Register{Node: node.Name, Hardware: node.Hardware, Host: node.Host, Roles: node.Roles})
	w.must(&EnsureUser{UID: 1000, UnixName: "eve"})
	eve := core.Identity{User: "eve", UID: 1000}
	spec := func(edit func(*core.Spec)) *core.Spec {
		return coretest.Job().User("eve").Set(func(s *core.Spec) { s.UID = 1000 }).Set(edit).Spec()
	}
	array := spec(func(s *core.Spec) { s.Hold, s.Array = true, "1-201" })
	if _, err := w.do(&Submit{By: eve, Spec: array}); core.ReasonOf(err) != "array_tasks_per_user" {
		t.Errorf("an array of more than a fifth of all jobs: %v", err)
	}
	cron := spec(func(s *core.Spec) { s.Extra = &core.Extra{Kept: &core.KeptOptions{Schedule: "0 * * * *"}} })
	for range 3 {
		w.must(&Submit{By: eve, Spec: cron})
	}
	_, err := w.do(&Submit{By: eve, Spec: cron})
	if core.ReasonOf(err) != "cron_jobs_per_user" || core.CodeOf(err) != core.Exhausted {
		t.Errorf("one job more that recurs: %v", err)
	}
	w.checkPerUser()
}

// No number of users who do their worst fills what there is for all: the next one always finds a place.
func TestNobodyFillsMaxJobs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{MaxJobs: 100_000, MaxArraySize: 100_001, JobsPerUser: 50, ArrayTasksPerUser: 30_000})
	node := coretest.Node("n1").Build()
	w.must(&Register{Node: node.Name, Hardware: node.Hardware, Host: node.Host, Roles: node.Roles})
	held := func(u int, array string) *Submit {
		name := core.UserName(fmt.Sprintf("u%d", u))
		spec := coretest.Job().User(name).Set(func(s *core.Spec) {
			s.UID, s.Hold, s.Array = uint32(1000+u), true,
				array
		}).Spec()
		return &Submit{By: core.Identity{User: name, UID: uint32(1000 + u)}, Spec: spec}
	}
	for u := range 25 {
		w.must(&EnsureUser{UID: uint32(1000 + u), UnixName: fmt.Sprintf("u%d", u)})
		for size := 50_000; size > 0; size /= 2 { // as much as is taken
			for {
				_, err := w.do(held(u, fmt.Sprintf("1-%d", size)))
				if core.CodeOf(err) == core.Exhausted {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if w.st.counts.Live() >= 100_000 {
		t.Fatalf("%d jobs: it is full", w.st.counts.Live())
	}
	w.must(&EnsureUser{UID: 2000, UnixName: "victim"})
	spec := coretest.Job().User("victim").Set(func(s *core.Spec) { s.UID = 2000 }).Spec()
	id := w.must(&Submit{By: core.Identity{User: "victim", UID: 2000}, Spec: spec}).(*Submitted).ID
	w.pass()
	if j, _ := w.st.rec.Job(id); j.State != core.Running {
		t.Errorf("the victim's job is %s", j.State)
	}
	w.must(held(0, "").as(root)) // an administrator is not bound
	w.checkPerUser()
	w.check()
}

func (in *Submit) as(by core.Identity) *Submit { in.By = by; return in }

// checkPerUser compares what is counted with what there is.
func (w *world) checkPerUser() {
	w.t.Helper()
	want := map[core.UserName]admit.UserCount{}
	for j := range w.st.rec.Jobs() {
		c := want[j.Spec.User]
		c.Jobs++
		if j.Spec.Recurs() {
			c.Cron++
		}
		if j.IsArray() {
			c.Tasks += j.Array.Tasks.Len()
		}
		want[j.Spec.User] = c
	}
	if len(want) != len(w.st.counts.Users()) {
		w.t.Fatalf("%d users are counted, %d have jobs", len(w.st.counts.Users()), len(want))
	}
	for u, c := range want {
		if w.st.counts.Users()[u] != c {
			w.t.Fatalf("%s has %+v, counted %+v", u, c, w.st.counts.Users()[u])
		}
	}
}

// A job has so many steps and no more, and making one costs the same with many.
func TestStepsPerJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{StepsPerJob: 300})
	node := coretest.Node("n1").Build()
	w.must(&Register{Node: node.Name, Hardware: node.Hardware, Host: node.Host, Roles: node.Roles})
	w.must(&EnsureUser{UID: 1000, UnixName: "alice"})
	alice := core.Identity{User: "alice", UID: 1000}
	id := w.must(&Submit{By: alice, Spec: coretest.Job().Interactive().Spec()}).(*Submitted).ID
	w.pass()
	step := func() error {
		_, err := w.do(&CreateStep{
			By:   alice,
			Step: &core.Step{Job: id, Name: "s", Nodes: []core.NodeName{"n1"}, Tasks: []int32{1}},
		})
		return err
	}
	for k := range 300 {
		if err := step(); err != nil {
			t.Fatalf("step %d: %v", k, err)
		}
		if k%3 == 0 {
			w.must(&Exited{Node: "n1", Job: id, Attempt: 1, Step: fmt.Sprint(k)})
		}
	}
	if err := step(); core.ReasonOf(err) != "steps_per_job" || core.CodeOf(err) != core.Exhausted {
		t.Errorf("one too many: %v", err)
	}
	if all, live := len(w.st.rec.Steps(id)), len(w.st.rec.LiveSteps(id)); all != 300 || live != 200 {
		t.Errorf("%d steps, %d live", all, live)
	}
	for name, bad := range map[string]*core.Step{
		"no nodes":   {Job: id},
		"twice":      {Job: id, Nodes: []core.NodeName{"n1", "n1"}, Tasks: []int32{1, 1}},
		"no tasks":   {Job: id, Nodes: []core.NodeName{"n1"}},
		"a strange":  {Job: id, Nodes: []core.NodeName{"n9"}, Tasks: []int32{1}},
		"a negative": {Job: id, Nodes: []core.NodeName{"n1"}, Tasks: []int32{-1}},
	} {
		if _, err := w.do(&CreateStep{By: alice, Step: bad}); err == nil {
			t.Errorf("%s: was taken", name)
		}
	}
	w.check()
}

// Long texts count: a user has no more memory for a few jobs with much to say than for many others, and none by
// changing them afterwards.
func TestLongTextsCountAsJobs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{JobsPerUser: 20})
	node := coretest.Node("n1").Build()
	w.must(&Register{Node: node.Name, Hardware: node.Hardware, Host: node.Host, Roles: node.Roles})
	w.must(&EnsureUser{UID: 1000, UnixName: "eve"})
	eve := core.Identity{User: "eve", UID: 1000}
	held := func(args int) *Submit {
		spec := coretest.Job().User("eve").Set(func(s *core.Spec) {
			s.UID, s.Hold, s.Args = 1000, true, slices.Repeat([]string{strings.Repeat("x", 1000)}, args)
		}).Spec()
		return &Submit{By: eve, Spec: spec}
	}
	first := w.must(held(60)).(*Submitted).ID // 60,000 bytes count as 15 jobs
	_, err := w.do(held(60))
	if core.ReasonOf(err) != "jobs_per_user" || !strings.Contains(err.Error(), "count as 15") {
		t.Errorf("a second one like that: %v", err)
	}
	var small []core.JobID
	for range 4 {
		small = append(small, w.must(held(0)).(*Submitted).ID)
	}
	comment := strings.Repeat("y", 4096)
	up := &UpdateJob{By: eve, Job: small[0], Comment: &comment}
	if w.must(up); w.st.counts.Users()["eve"].More != 15 {
		t.Errorf("%+v", w.st.counts.Users()["eve"])
	}
	up.Job = small[1]
	if _, err := w.do(up); core.ReasonOf(err) != "jobs_per_user" {
		t.Errorf("a change to one that is longer: %v", err)
	}
	w.must(&Cancel{By: eve, Job: first})
	w.must(up)
	for _, id := range small {
		w.must(&Cancel{By: eve, Job: id})
	}
	if n := w.st.counts.Users(); len(n) != 0 {
		t.Errorf("when all have ended: %+v", n)
	}
	w.must(held(60))
}
