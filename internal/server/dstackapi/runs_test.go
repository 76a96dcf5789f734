package dstackapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/wire"
	"bireme.dev/bireme/internal/server/dstackapi/dstackapitest"
	"bireme.dev/bireme/internal/server/servertest"
	agent "bireme.dev/bireme/internal/wire"
)

const project = "/api/project/main/"

// spec is a description as a client sends it, with what the test changes.
func spec(name string, changes ...string) map[string]any {
	c := map[string]any{
		"type": "task", "commands": []string{"echo hi"}, "image": "lab/base:1",
		"resources": map[string]any{"cpu": 1, "memory": "1GB..", "disk": "1GB.."},
	}
	if name != "" {
		c["name"] = name
	}
	for _, x := range changes {
		var more map[string]any
		if err := json.Unmarshal([]byte(x), &more); err != nil {
			panic(err)
		}
		for k, v := range more {
			c[k] = v
		}
	}
	out := map[string]any{"configuration": c, "configuration_path": "x.dstack.yml"}
	if name != "" {
		out["run_name"] = name
	}
	return out
}

// cluster is a server with a project, a user of it, and a node that runs what it is told.
func cluster(t *testing.T, set ...string) (*servertest.Server, *dstackapitest.Caller, *servertest.Agent) {
	t.Helper()
	s := servertest.Start(t, set...)
	admin := dstackapitest.New(t, s, "ada", core.RoleAdmin)
	admin.Get("/api/projects/create", map[string]any{"project_name": "main"}, nil)
	a := s.Join("n1", core.Compute, false)
	a.Connect()
	return s, admin, a
}

// apply plans and applies, as the CLI does.
func apply(c *dstackapitest.Caller, spec map[string]any, force bool) wire.Run {
	c.T.Helper()
	var plan wire.RunPlan
	c.Get(project+"runs/get_plan", map[string]any{"run_spec": spec, "max_offers": 3}, &plan)
	var run wire.Run
	c.Get(project+"runs/apply", map[string]any{
		"plan": map[string]any{"run_spec": plan.RunSpec, "current_resource": plan.CurrentResource}, "force": force,
	}, &run)
	return run
}

func get(c *dstackapitest.Caller, name string) (run wire.Run) {
	c.T.Helper()
	c.Get(project+"runs/get", map[string]any{"run_name": name}, &run)
	return run
}

// awaitRun waits until a run has a status.
func awaitRun(s *servertest.Server, c *dstackapitest.Caller, name, status string) (run wire.Run) {
	c.T.Helper()
	s.Await(name+" to be "+status, func() bool { run = get(c, name); return run.Status == status })
	return run
}

// TestRunFromPlanToDelete: a run is planned, submitted, stopped, replaced and deleted with the answers of dstack.
func TestRunFromPlanToDelete(t *testing.T) {
	t.Parallel()
	s, ada, node := cluster(t)
	end := func(run wire.Run) {
		key := node.AwaitLaunch(core.JobID(run.BiremeJob), 1, agent.BatchStep)
		node.AwaitKill(key)
		node.End(key, func(x *agent.Exited) { x.Signal = 15 })
	}
	var plan wire.RunPlan
	ada.Get(project+"runs/get_plan", map[string]any{"run_spec": spec("one"), "max_offers": 3}, &plan)
	if plan.Action != wire.ActionCreate || plan.CurrentResource != nil || len(plan.JobPlans) != 1 ||
		plan.JobPlans[0].TotalOffers == 0 || plan.JobPlans[0].Offers[0].Availability != wire.OfferIdle ||
		plan.JobPlans[0].JobSpec.AppSpecs == nil {
		t.Fatalf("%+v", plan)
	}
	body := map[string]any{"plan": map[string]any{"run_spec": plan.RunSpec, "current_resource": nil}, "force": false}
	var run, twice wire.Run
	ada.Get(project+"runs/apply", body, &run)
	ada.Get(project+"runs/apply", body, &twice) // its answer was lost
	if run.ID == "" || run.ID != twice.ID || !wire.IsUUID(run.ID) {
		t.Fatalf("%s and %s", run.ID, twice.ID)
	}
	run = awaitRun(s, ada, "one", wire.RunRunning)
	if run.Jobs[0].Submissions[0].JobProvisioningData == nil || run.User != "ada" || run.Fleet == nil {
		t.Fatalf("%+v", run)
	}
	var byID wire.Run
	ada.Get(project+"runs/get", map[string]any{"id": run.ID}, &byID)
	if byID.ID != run.ID {
		t.Fatalf("by id: %+v", byID)
	}

	// The same again changes nothing; another priority is an update; other commands are not.
	ada.Get(project+"runs/get_plan", map[string]any{"run_spec": spec("one")}, &plan)
	if plan.Action != wire.ActionUpdate || plan.CurrentResource == nil ||
		!slices.Equal(plan.CurrentResource.RunSpec, plan.EffectiveRunSpec) {
		t.Fatalf("%s\n%s\n%s", plan.Action, plan.CurrentResource.RunSpec, plan.EffectiveRunSpec)
	}
	if up := apply(ada, spec("one", `{"priority": 7}`), false); up.DeploymentNum != 1 || up.ID != run.ID {
		t.Fatalf("%+v", up)
	}
	if j := s.Job(core.JobID(run.BiremeJob)); j.Spec.More().RunPriority != 7 {
		t.Fatalf("priority %d", j.Spec.More().RunPriority)
	}
	ada.Get(project+"runs/get_plan", map[string]any{"run_spec": spec("one", `{"commands": ["ls"]}`)}, &plan)
	if plan.Action != wire.ActionCreate || plan.CurrentResource == nil {
		t.Fatalf("%+v", plan)
	}
	ada.Refused(project+"runs/apply", map[string]any{
		"plan": map[string]any{"run_spec": plan.RunSpec, "current_resource": plan.CurrentResource}, "force": false,
	}, 400, "cannot change in place: commands")
	ada.Refused(project+"runs/delete", map[string]any{"runs_names": []string{"one"}}, 400,
		"Cannot delete active runs: ['one']")

	ada.Get(project+"runs/stop", map[string]any{"runs_names": []string{"one", "nobody"}, "abort": false}, nil)
	if mid := get(ada, "one"); mid.Status != wire.RunTerminating || mid.LatestJobSubmission.Status != wire.JobTerminating {
		t.Fatalf("%+v", mid)
	}
	end(run)
	run = awaitRun(s, ada, "one", wire.RunTerminated)
	if sub := run.LatestJobSubmission; sub.StatusMessage != "stopped" || *sub.TerminationReason != "terminated_by_user" ||
		*run.TerminationReason != "stopped_by_user" || sub.FinishedAt == nil {
		t.Fatalf("%+v", sub)
	}
	// A finished one is replaced: the name leads to the new run, the old one shows as deleted.
	next := apply(ada, spec("one"), false)
	if next.ID == run.ID {
		t.Fatal("the old run came back")
	}
	var list []wire.Run
	ada.Get("/api/runs/list", map[string]any{"project_name": "main"}, &list)
	if len(list) != 2 || list[0].ID != next.ID || list[0].Deleted || list[1].ID != run.ID || !list[1].Deleted {
		t.Fatalf("%+v", list)
	}
	ada.Get("/api/runs/list", map[string]any{
		"limit": 1, "prev_submitted_at": list[0].SubmittedAt, "prev_run_id": list[0].ID,
	}, &list)
	if len(list) != 1 || list[0].ID != run.ID {
		t.Fatalf("second page: %+v", list)
	}
	ada.Get("/api/runs/list", map[string]any{"only_active": true, "job_submissions_limit": 1}, &list)
	if len(list) != 1 || list[0].ID != next.ID || len(list[0].Jobs[0].Submissions) != 1 {
		t.Fatalf("active: %+v", list)
	}
	ada.Get(project+"runs/stop", map[string]any{"runs_names": []string{"one"}, "abort": true}, nil)
	end(next)
	if over := awaitRun(s, ada, "one", wire.RunTerminated); over.LatestJobSubmission.Status != wire.JobAborted {
		t.Fatalf("%+v", over.LatestJobSubmission)
	}
	ada.Get(project+"runs/delete", map[string]any{"runs_names": []string{"one", "nobody"}}, nil)
	ada.Refused(project+"runs/get", `{"run_name":"one"}`, 400, `"Run not found","code":"resource_not_exists"`)
	ada.Get(project+"runs/get", map[string]any{"id": next.ID}, &byID)
	if !byID.Deleted {
		t.Fatal("it is not deleted")
	}
	for leave, want := range map[bool]int{false: 2, true: 1} { // native listings: the first "one" was never deleted
		jobs, err := s.Client().Briefs(t.Context(), client.JobsQuery{History: true, LeaveDeleted: leave})
		if err != nil || len(jobs.Jobs) != want {
			t.Fatalf("leave deleted %v: %+v, %v", leave, jobs, err)
		}
	}
	if anew := apply(ada, spec("one"), false); anew.ID == run.ID || anew.ID == next.ID {
		t.Fatal("a deleted run came back")
	}
}

// TestRunsThatCannotStart: what no node could hold fails at once and says why; what is busy waits.
func TestRunsThatCannotStart(t *testing.T) {
	t.Parallel()
	s, ada, _ := cluster(t)
	for name, x := range map[string]struct{ change, message, text string }{
		"vast": {
			`{"resources": {"cpu": 5000, "memory": "1GB..", "disk": "1GB.."}}`, "no capacity", "n1 has 4 of 5000 CPUs",
		},
		"gpus":    {`{"resources": {"gpu": "H100:2", "memory": "1TB.."}}`, "no capacity", " memory, 0 of 2 such GPUs"},
		"nowhere": {`{"fleets": ["elsewhere"]}`, "no fleets", "No matching fleet found"},
		"nosuch":  {`{"fleets": ["elsewhere"]}`, "no fleets", "n1 is in none of the fleets"},
		"cloudy":  {`{"backends": ["aws"]}`, "no fleets", "backend_aws"},
	} {
		run := apply(ada, spec(name, x.change), false)
		sub := run.LatestJobSubmission
		if run.Status != wire.RunFailed || *run.TerminationReason != "job_failed" || sub.Status != wire.JobFailed ||
			sub.StatusMessage != x.message || *sub.TerminationReason != "failed_to_start_due_to_no_capacity" ||
			!strings.Contains(*sub.TerminationReasonMessage, x.text) {
			t.Errorf("%s: %s %+v", name, run.Status, sub)
		}
	}
	for name, change := range map[string]string{
		"patient":  `{"resources": {"cpu": 5000, "memory": "1GB..", "disk": "1GB.."}, `,
		"homeless": `{"fleets": ["elsewhere"], `,
	} {
		run := apply(ada, spec(name, change+`"retry": {"on_events": ["no-capacity"], "duration": "1h"}}`), false)
		if run.Status != wire.RunSubmitted || run.LatestJobSubmission.Status != wire.JobSubmitted {
			t.Errorf("%s is tried again: %s %+v", name, run.Status, run.LatestJobSubmission)
		}
		ada.Get(project+"runs/stop", map[string]any{"runs_names": []string{name}, "abort": false}, nil)
	}
	big := spec("", `{"resources": {"cpu": 4, "memory": "1GB..", "disk": "1GB.."}}`)
	first, second := apply(ada, big, false), apply(ada, big, false)
	if first.ID == second.ID {
		t.Fatal("two runs without a name are one")
	}
	var names struct {
		RunName string `json:"run_name"`
	}
	if err := json.Unmarshal(second.RunSpec, &names); err != nil || strings.Count(names.RunName, "-") != 2 {
		t.Fatalf("%v %q", err, names.RunName)
	}
	s.Await("the second to be queued", func() bool {
		run := get(ada, names.RunName)
		return run.Status == wire.RunSubmitted && run.StatusMessage == "queued"
	})
}

// TestOutputOfRuns: logs come in pages, by submission, and the end of a run with its exit status.
func TestOutputOfRuns(t *testing.T) {
	t.Parallel()
	s, ada, node := cluster(t)
	run := apply(ada, spec("talker"), false)
	id := core.JobID(run.BiremeJob)
	s.AwaitState(id, core.Running)
	key := node.AwaitLaunch(id, 1, agent.BatchStep)
	text := strings.Repeat("a line of output\n", 1000)
	node.Send(agent.TypeLogChunk, agent.LogChunk{Key: key, End: true}, []byte(text))
	node.End(key, func(x *agent.Exited) { x.LogSize, x.ExitCode = int64(len(text)), 7 })
	run = awaitRun(s, ada, "talker", wire.RunFailed)
	sub := run.LatestJobSubmission
	if sub.ExitStatus == nil || *sub.ExitStatus != 7 || sub.StatusMessage != "exited (7)" ||
		*sub.TerminationReason != "container_exited_with_error" {
		t.Fatalf("%+v", sub)
	}
	body := map[string]any{"run_name": "talker", "job_submission_id": sub.ID, "limit": 1}
	got := ""
	for {
		var page wire.LogPage
		ada.Get(project+"logs/poll", body, &page)
		for _, e := range page.Logs {
			got += string(e.Message)
		}
		if page.NextToken == nil {
			break
		}
		body["next_token"] = *page.NextToken
	}
	if got != text {
		t.Fatalf("%d of %d bytes", len(got), len(text))
	}
	var page wire.LogPage
	ada.Get(project+"logs/poll", map[string]any{
		"run_name": "talker", "job_submission_id": sub.ID, "diagnose": true,
	}, &page)
	if len(page.Logs) == 0 || !strings.Contains(string(page.Logs[len(page.Logs)-1].Message), "exit=7") {
		t.Fatalf("%+v", page)
	}
	ada.Get(project+"logs/poll", map[string]any{
		"run_name": "talker", "job_submission_id": "00000000-0000-4000-8000-000000000000",
	}, &page)
	if len(page.Logs) != 0 {
		t.Fatalf("%+v", page)
	}
	a := ada.Do(http.MethodGet, project+"metrics/job/talker?replica_num=0&job_num=0&limit=10", nil)
	if a.Status != 200 || a.Body != `{"metrics":[]}` {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	var groups wire.GpuList
	ada.Get(project+"gpus/list", map[string]any{"run_spec": spec("")}, &groups)
	if groups.GPUs == nil || len(groups.GPUs) != 0 {
		t.Fatalf("%+v", groups)
	}
}

// TestInactivityChangesInPlace: a dev environment gets another limit while it runs.
func TestInactivityChangesInPlace(t *testing.T) {
	t.Parallel()
	s, ada, _ := cluster(t)
	dev := func(more string) map[string]any {
		x := spec("desk", `{"type": "dev-environment", "ide": "vscode"}`, more)
		delete(x["configuration"].(map[string]any), "commands")
		return x
	}
	run := apply(ada, dev(`{}`), false)
	id := core.JobID(run.BiremeJob)
	s.AwaitState(id, core.Running)
	if up := apply(ada, dev(`{"inactivity_duration": "2h"}`), false); up.ID != run.ID || up.DeploymentNum != 1 {
		t.Fatalf("%+v", up)
	}
	j := s.Job(id)
	if j.Spec.Rules().Inactivity != 7200 || j.Life == nil || j.Life.IdleSince == 0 {
		t.Fatalf("%+v %+v", j.Spec.Rules(), j.Life)
	}
	// another client sends a profile without a word in it, under some name
	other := dev(`{"inactivity_duration": "3h"}`)
	other["profile"] = map[string]any{"name": "default"}
	if up := apply(ada, other, false); up.ID != run.ID || up.DeploymentNum != 2 {
		t.Fatalf("%+v", up)
	}
	if got := get(ada, "desk").LatestJobSubmission.InactivitySecs; got == nil {
		t.Fatal("it does not say for how long nobody was connected")
	}
}

// TestRunsOfOthers: members see each other's runs without what is private, and neither stop nor delete them; jobs of
// Slurm's commands are among them.
func TestRunsOfOthers(t *testing.T) {
	t.Parallel()
	s, ada, _ := cluster(t)
	bob := dstackapitest.New(t, s, "bob", core.RoleNone)
	eve := dstackapitest.New(t, s, "eve", core.RoleNone)
	ada.Get("/api/projects/main/add_members", map[string]any{
		"members": []map[string]any{{"username": "bob", "project_role": "user"}},
	}, nil)
	run := apply(ada, spec("hers", `{"env": {"TOKEN": "hush"}}`), false)
	seen := get(bob, "hers")
	if strings.Contains(string(seen.RunSpec), "hush") || strings.Contains(string(seen.RunSpec), "echo hi") {
		t.Fatalf("%s", seen.RunSpec)
	}
	bob.Refused(project+"runs/stop", map[string]any{"runs_names": []string{"hers"}, "abort": false}, 400, "belongs to ada")
	bob.Refused(project+"logs/poll", map[string]any{
		"run_name": "hers", "job_submission_id": run.LatestJobSubmission.ID,
	}, 400, "belongs to ada")
	eve.Refused(project+"runs/get", `{"run_name":"hers"}`, 403, "Access denied")
	var list []wire.Run
	eve.Get("/api/runs/list", map[string]any{}, &list)
	if len(list) != 0 {
		t.Fatalf("%+v", list)
	}
	eve.Refused("/api/runs/list", map[string]any{"project_name": "main"}, 403, "Access denied")
	id := s.Submit(func(sub *client.Submit) { sub.Spec.Project, sub.Spec.Name = "main", "train" })
	ada.Get("/api/runs/list", map[string]any{"project_name": "main", "only_active": true}, &list)
	if len(list) != 2 || !slices.ContainsFunc(list, func(r wire.Run) bool { return r.BiremeJob == int64(id) }) {
		t.Fatalf("%+v", list)
	}
	name := fmt.Sprintf("job-%d", id)
	if j := get(ada, name); j.BiremeJob != int64(id) {
		t.Fatalf("%+v", j)
	}
	ada.Get(project+"runs/stop", map[string]any{"runs_names": []string{name}, "abort": false}, nil)
	s.AwaitState(id, core.Cancelled)
}

// TestBadRunRequests: the answers are those that the official server of 0.22.5 gave, or say what would be right.
func TestBadRunRequests(t *testing.T) {
	t.Parallel()
	_, ada, _ := cluster(t)
	for _, x := range []struct {
		path   string
		body   any
		status int
		want   string
	}{
		{"runs/get", `{"run_name":"nobody"}`, 400, `{"detail":[{"msg":"Run not found","code":"resource_not_exists"}]}`},
		{"runs/get", `{}`, 400, `{"detail":[{"msg":"run_name or id must be specified","code":"error"}]}`},
		{"runs/get", `{"id":"00000000-0000-4000-8000-000000000000"}`, 400, `"Run not found","code":"resource_not_exists"`},
		{
			"runs/get_plan", `{"run_spec":{"run_name":"z","configuration":{"type":"task","comands":["true"],"image":"a"}}}`, 422,
			`{"detail":[{"type":"extra_forbidden","loc":["body","run_spec","configuration","task","comands"],` +
				`"msg":"Extra inputs are not permitted","input":["true"]}]}`,
		},
		{"runs/get_plan", `{"run_spec":{"configuration":{"type":"jobb"}}}`, 422, `"type":"union_tag_invalid"`},
		{
			"runs/get_plan", `{"run_spec":{"run_name":"Bad_Name!","configuration":{"type":"task","commands":["true"],` +
				`"image":"a"}}}`, 400,
			`{"detail":[{"msg":"Resource name should match regex '^[a-z][a-z0-9-]{1,40}$'","code":"error"}]}`,
		},
		{
			"runs/get_plan", `{"run_spec":{"configuration":{"type":"service","port":80,"image":"a","gateway":true}}}`, 400,
			"gateway: there are no gateways yet",
		},
		{"runs/get_plan", map[string]any{"run_spec": spec("x"), "max_offers": 0}, 422, "greater_than_equal"},
		{
			"logs/poll", `{"run_name":"nobody","job_submission_id":"00000000-0000-4000-8000-000000000000"}`, 400,
			"Run not found",
		},
		{"runs/stop", `{"runs_names":["nobody"],"abort":false}`, 200, "null"},
		{"runs/delete", `{"runs_names":["nobody"]}`, 200, "null"},
	} {
		ada.Refused(project+x.path, x.body, x.status, x.want)
	}
	env := map[string]string{}
	for i := range 100_000 {
		env[fmt.Sprintf("V%d", i)] = "x"
	}
	text, err := json.Marshal(map[string]any{"env": env})
	if err != nil {
		t.Fatal(err)
	}
	ada.Refused(project+"runs/get_plan", map[string]any{"run_spec": spec("large", string(text))}, 400, "the limit is")
	ada.Refused("/api/runs/list", `{"limit": 101}`, 422, "less_than_equal")
}

// TestRunOfArray: a run of an array is judged by all of its tasks, in every state of theirs, and an array of Slurm's
// front end is one run.
func TestRunOfArray(t *testing.T) {
	t.Parallel()
	s, ada, node := cluster(t)
	run := apply(ada, spec("sweep", `{"tags":{"bireme-array":"0-2"}}`), false)
	base := core.JobID(run.BiremeJob)
	tasks := map[int32]core.JobID{}
	started := func(base core.JobID) (list []client.Job) {
		jobs, err := s.Client().Job(t.Context(), strconv.FormatInt(int64(base), 10))
		if err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(jobs.Jobs, func(j client.Job) bool { return j.State != core.Running })
	}
	s.Await("three tasks", func() bool {
		for _, j := range started(base) {
			tasks[j.Array.Task] = j.ID
		}
		return len(tasks) == 3
	})
	end := func(task int32, code int) {
		node.End(node.AwaitLaunch(tasks[task], 1, agent.BatchStep), func(x *agent.Exited) { x.ExitCode = code })
	}
	live := func(n int) func() bool { return func() bool { return len(started(base)) == n } }
	end(2, 0) // it has the array's id
	s.Await("two tasks", live(2))
	if run = get(ada, "sweep"); run.Status != wire.RunRunning || core.JobID(run.BiremeJob) != base {
		t.Fatalf("%s, job %d", run.Status, run.BiremeJob)
	}
	ada.Refused(project+"runs/delete", map[string]any{"runs_names": []string{"sweep"}}, 400, "Cannot delete active runs")
	end(1, 7)
	s.Await("one task", live(1))
	if run = get(ada, "sweep"); run.Status != wire.RunRunning {
		t.Fatalf("%s", run.Status)
	}
	first := run.LatestJobSubmission.ID
	end(0, 0)
	run = awaitRun(s, ada, "sweep", wire.RunFailed)
	if last := run.LatestJobSubmission; last.ExitStatus == nil || *last.ExitStatus != 7 || last.ID == first {
		t.Fatalf("%+v", last)
	}
	var list []wire.Run
	ada.Get("/api/runs/list", map[string]any{"project_name": "main"}, &list)
	if len(list) != 1 || list[0].Status != wire.RunFailed {
		t.Fatalf("%+v", list)
	}
	var page wire.LogPage
	ada.Get(project+"logs/poll", map[string]any{"run_name": "sweep", "job_submission_id": first}, &page)

	run = apply(ada, spec("stopped", `{"tags":{"bireme-array":"0-29"}}`), false)
	awaitRun(s, ada, "stopped", wire.RunRunning)
	running := started(core.JobID(run.BiremeJob))
	ada.Get(project+"runs/stop", map[string]any{"runs_names": []string{"stopped"}, "abort": false}, nil)
	for _, j := range running {
		key := node.AwaitLaunch(j.ID, 1, agent.BatchStep)
		node.AwaitKill(key)
		node.End(key, func(x *agent.Exited) { x.Signal = 15 })
	}
	awaitRun(s, ada, "stopped", wire.RunTerminated)
	runs, err := s.Client().Runs(t.Context(), "main", "stopped")
	if err != nil || len(runs.Runs) != 1 || runs.Runs[0].State != "terminated" {
		t.Fatalf("%+v, %v", runs, err)
	}
}
