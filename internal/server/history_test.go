package server_test

import (
	"testing"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/servertest"
)

// oldJob is a job that ran elsewhere.
func oldJob(id core.JobID, user core.UserName) *core.Job {
	return &core.Job{
		ID: id, SpecID: id, State: core.Completed, Attempt: 1, Submit: 100e6, Start: 200e6, End: 260e6, Steps: 1,
		Spec:  &core.Spec{Name: "old", User: user, UID: 1234, Project: "lab"},
		Alloc: &core.Alloc{Partition: "p", Nodes: []core.NodeAlloc{{Node: "gone1", CPUs: 2, Done: true}}},
	}
}

// TestHistoryIsTakenOver: jobs of another system are found under their ids, new ones get ids above them, and usage
// counts once; all of it may be sent again, and is there after a restart.
func TestHistoryIsTakenOver(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	s.Must("POST", "/api/v1/projects", core.Project{Name: "lab"}, nil)
	s.Must("POST", "/api/v1/users", core.User{Name: "ann", Default: "lab"}, nil)
	in := client.TakeHistory{
		Jobs: []*core.Job{oldJob(1000, "ann"), oldJob(1002, "ann")}, NextJob: 1500,
		Steps: []*core.Step{{
			Job: 1000, Attempt: 1, Name: "s", State: core.Failed, Nodes: []core.NodeName{"gone1"}, Tasks: []int32{2},
			Start: 210e6, End: 220e6, Exit: core.Exit{Code: 3},
		}},
		Spent:  []core.Spent{{Project: "lab", User: "ann", At: core.At(time.Now()), Raw: 1e6}},
		DryRun: true,
	}
	send := func(taken, same, spent int) {
		t.Helper()
		var out client.HistoryTaken
		s.Must("POST", "/api/v1/history", in, &out)
		if out.Taken != taken || out.Same != same || out.Spent != spent || out.HalfLife == 0 || len(out.Conflicts) > 0 {
			t.Errorf("got %+v, want %d, %d, %d", out, taken, same, spent)
		}
	}
	found := func() (jobs client.JobList, steps client.StepList) {
		s.Must("GET", "/api/v1/jobs?history=1&id=1000", nil, &jobs)
		if len(jobs.Jobs) > 0 {
			s.Must("GET", "/api/v1/jobs/1000/steps", nil, &steps)
		}
		return jobs, steps
	}
	send(2, 0, 0)
	if jobs, _ := found(); len(jobs.Jobs) != 0 {
		t.Error("a dry run took jobs over")
	}
	in.DryRun = false
	send(2, 0, 1)
	check := func() {
		t.Helper()
		jobs, steps := found()
		if len(jobs.Jobs) != 1 || jobs.Jobs[0].State != core.Completed || jobs.Jobs[0].Spec.Name != "old" ||
			len(steps.Steps) != 1 || steps.Steps[0].Exit.Code != 3 {
			t.Fatalf("%+v %+v", jobs, steps)
		}
	}
	check()
	s.Stop()
	s.Start()
	check()
	in.Jobs = append(in.Jobs, oldJob(1001, "ann")) // a newer dump
	send(1, 2, 0)
	var made client.Submitted
	s.Must("POST", "/api/v1/jobs", client.Submit{Spec: core.Spec{Name: "new"}, Script: "#!/bin/sh\n"}, &made)
	if made.ID < 1500 {
		t.Errorf("a new job got id %d", made.ID)
	}
}

// TestHistoryIsRefused: nothing of a call is done where a part of it is wrong.
func TestHistoryIsRefused(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	bob := s.Token(core.User{Name: "bob"})
	var made client.Submitted
	s.Must("POST", "/api/v1/jobs", client.Submit{Spec: core.Spec{Name: "here"}, Script: "#!/bin/sh\n"}, &made)
	live, twice, runs, other := oldJob(5000, "ann"), oldJob(5001, "ann"), oldJob(5002, "ann"), oldJob(made.ID, "ann")
	live.Flags, runs.State, twice.SpecID = core.Completing, core.Running, 7
	array := oldJob(5003, "ann")
	array.Array = &core.ArrayRef{Base: 1<<63 - 2}
	good := oldJob(6000, "ann")
	for _, c := range []struct {
		what, token string
		in          client.TakeHistory
		want        int
	}{
		{"a user", bob, client.TakeHistory{Jobs: []*core.Job{good}}, 403},
		{"not clean", "", client.TakeHistory{Jobs: []*core.Job{good, live}}, 400},
		{"running", "", client.TakeHistory{Jobs: []*core.Job{good, runs}}, 400},
		{"another's spec", "", client.TakeHistory{Jobs: []*core.Job{good, twice}}, 400},
		{"an array without end", "", client.TakeHistory{Jobs: []*core.Job{good, array}}, 400},
		{"no spec", "", client.TakeHistory{Jobs: []*core.Job{good, {ID: 5}}}, 400},
		{"a step that runs", "", client.TakeHistory{Jobs: []*core.Job{good}, Steps: []*core.Step{{Job: 6000}}}, 400},
		{
			"usage of no project", "",
			client.TakeHistory{
				Jobs: []*core.Job{good}, Spent: []core.Spent{{Project: "x", User: "a"}},
			},
			400,
		},
		{"ids without end", "", client.TakeHistory{Jobs: []*core.Job{good}, NextJob: 1 << 60}, 400},
		{"too many", "", client.TakeHistory{Known: make([]client.KnownJob, client.MaxHistory+1)}, 400},
	} {
		if status, err := s.Call("POST", "/api/v1/history", c.token, c.in, nil); status != c.want {
			t.Errorf("%s: %d (%v), want %d", c.what, status, err, c.want)
		}
	}
	var out client.HistoryTaken
	s.Must("POST", "/api/v1/history", client.TakeHistory{Jobs: []*core.Job{good, other}}, &out)
	if len(out.Conflicts) != 1 || out.Conflicts[0].ID != made.ID {
		t.Errorf("%+v", out)
	}
	var jobs client.JobList
	s.Must("GET", "/api/v1/jobs?history=1&id=6000", nil, &jobs)
	if len(jobs.Jobs) != 0 {
		t.Error("a part of a refused call was done")
	}
}
