package dstackapi_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/wire"
	"bireme.dev/bireme/internal/server/dstackapi/dstackapitest"
	"bireme.dev/bireme/internal/server/servertest"
	agent "bireme.dev/bireme/internal/wire"
)

func messages(list []wire.Event) (out []string) {
	for _, e := range list {
		out = append(out, e.Targets[0].Type+" "+e.Targets[0].Name+": "+e.Message)
	}
	return out
}

func TestEvents(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	admin := dstackapitest.New(t, s, "ada", core.RoleAdmin)
	eve := dstackapitest.New(t, s, "eve", core.RoleUser)
	admin.Get("/api/projects/create", `{"project_name":"lab"}`, nil)
	for i := range 5 {
		admin.Get("/api/project/lab/secrets/create_or_update", fmt.Sprintf(`{"name":"k%d","value":"x"}`, i), nil)
	}
	admin.Get("/api/project/lab/secrets/delete", `{"secrets_names":["k0"]}`, nil)
	s.Submit(func(in *client.Submit) {
		in.Spec.Project = "lab"
		in.Run, in.Config = "tick", "type: task\n"
	})
	project := wire.UUID(wire.KindProject, "lab")
	var all []wire.Event
	admin.Get("/api/events/list", map[string]any{"within_projects": []string{project}, "limit": 100}, &all)
	want := []string{
		"job tick-0-0: Job created on run submission. Status: SUBMITTED",
		"run tick: Run submitted. Status: SUBMITTED",
		"secret k0: Secret deleted", "secret k4: Secret created", "secret k3: Secret created", "secret k2: Secret created",
		"secret k1: Secret created", "secret k0: Secret created", "project lab: Project created",
	}
	if got := messages(all); !slices.Equal(got, want) {
		t.Fatalf("%q", got)
	}
	secret := all[3]
	if secret.ActorUser == nil || *secret.ActorUser != "ada" || *secret.Targets[0].ProjectName != "lab" {
		t.Errorf("%+v", secret)
	}
	// pages, in both directions, give each event once
	for _, ascending := range []bool{false, true} {
		var got []string
		body := map[string]any{"within_projects": []string{project}, "limit": 2, "ascending": ascending}
		if ascending {
			body["prev_recorded_at"] = "2020-01-01T00:00:00Z"
		}
		for range 20 {
			var page []wire.Event
			admin.Get("/api/events/list", body, &page)
			if len(page) == 0 {
				break
			}
			got = append(got, messages(page)...)
			last := page[len(page)-1]
			body["prev_recorded_at"], body["prev_id"] = last.RecordedAt, last.ID
		}
		if ascending {
			slices.Reverse(got)
		}
		if !slices.Equal(got, want) {
			t.Errorf("ascending %v: %q", ascending, got)
		}
	}
	for what, x := range map[string]struct {
		filter map[string]any
		want   int
	}{
		"target":      {map[string]any{"target_secrets": []string{wire.UUID(wire.KindSecret, "lab/k0")}}, 2},
		"within run":  {map[string]any{"within_runs": []string{all[1].Targets[0].ID}}, 2},
		"target run":  {map[string]any{"target_runs": []string{all[1].Targets[0].ID}}, 1},
		"types":       {map[string]any{"within_projects": []string{project}, "include_target_types": []string{"project"}}, 1},
		"actor":       {map[string]any{"within_projects": []string{project}, "actors": []any{nil}}, 1},
		"other kinds": {map[string]any{"target_volumes": []string{project}}, 0},
	} {
		var list []wire.Event
		admin.Get("/api/events/list", x.filter, &list)
		if len(list) != x.want {
			t.Errorf("%s: %q", what, messages(list))
		}
	}
	// strangers see nothing of the project
	var none []wire.Event
	eve.Get("/api/events/list", map[string]any{"within_projects": []string{project}}, &none)
	if len(none) != 0 {
		t.Errorf("eve sees %q", messages(none))
	}
	admin.Refused("/api/events/list", `{"limit":101}`, 422, "less_than_equal")
	admin.Refused("/api/events/list", `{"target_runs":[]}`, 422, "too_short")
	admin.Refused("/api/events/list", `{"target_runs":["x"]}`, 422, "uuid_parsing")
	admin.Refused("/api/events/list", map[string]any{"target_runs": []string{project}, "target_jobs": []string{project}},
		400, "At most one target_*")
}

// TestEventsOfRuns: the life of runs is told in dstack's words and order: one that is changed, stopped and deleted, one
// that fails and is tried again, and one that no node could hold.
func TestEventsOfRuns(t *testing.T) {
	t.Parallel()
	s, ada, node := cluster(t)
	story := func(run wire.Run) (out []string) {
		var list []wire.Event
		ada.Get("/api/events/list", map[string]any{
			"within_runs": []string{run.ID}, "ascending": true, "prev_recorded_at": "2020-01-01T00:00:00Z",
		}, &list)
		for _, e := range list {
			by := ""
			if e.ActorUser != nil {
				by = *e.ActorUser + " "
			}
			on := ""
			if len(e.Targets) > 1 {
				on = " " + e.Targets[1].Name
			}
			out = append(out, by+e.Targets[0].Name+on+": "+e.Message)
		}
		return out
	}
	begun := func(name string) []string {
		return []string{
			"ada " + name + ": Run submitted. Status: SUBMITTED",
			name + "-0-0: Job created on run submission. Status: SUBMITTED",
			name + "-0-0 n1: Job assigned to instance.",
			name + "-0-0: Job status changed SUBMITTED -> PROVISIONING",
			name + ": Run status changed SUBMITTED -> PROVISIONING",
			name + "-0-0: Job status changed PROVISIONING -> RUNNING",
			name + ": Run status changed PROVISIONING -> RUNNING",
		}
	}
	one := apply(ada, spec("one"), false)
	awaitRun(s, ada, "one", wire.RunRunning)
	apply(ada, spec("one", `{"priority": 7}`), false)
	ada.Get(project+"runs/stop", map[string]any{"runs_names": []string{"one"}, "abort": false}, nil)
	key := node.AwaitLaunch(core.JobID(one.BiremeJob), 1, agent.BatchStep)
	node.AwaitKill(key)
	node.End(key, func(x *agent.Exited) { x.Signal = 15 })
	awaitRun(s, ada, "one", wire.RunTerminated)
	ada.Get(project+"runs/delete", map[string]any{"runs_names": []string{"one"}}, nil)
	want := append(begun("one"),
		"ada one: Run updated. Deployment: 1",
		"one-0-0: Job status changed RUNNING -> TERMINATING. Termination reason: TERMINATED_BY_USER",
		"one-0-0: Graceful job stop requested",
		"ada one: Run status changed RUNNING -> TERMINATING. Termination reason: STOPPED_BY_USER",
		"one-0-0: Job status changed TERMINATING -> TERMINATED",
		"one-0-0 n1: Job unassigned from instance.",
		"one: Run status changed TERMINATING -> TERMINATED",
		"ada one: Run deleted")
	if got := story(one); !slices.Equal(got, want) {
		t.Errorf("%s", strings.Join(got, "\n"))
	}

	again := apply(ada, spec("again", `{"retry": true}`), false)
	key = node.AwaitLaunch(core.JobID(again.BiremeJob), 1, agent.BatchStep)
	node.End(key, func(x *agent.Exited) { x.ExitCode = 3 })
	want = append(begun("again"),
		"again-0-0: Job status changed RUNNING -> TERMINATING. Termination reason: CONTAINER_EXITED_WITH_ERROR",
		"again-0-0: Job status changed TERMINATING -> FAILED",
		"again-0-0 n1: Job unassigned from instance.",
		"again: Run status changed RUNNING -> PENDING",
		"again-0-0: Job created on new submission. Status: SUBMITTED",
		"again: Run status changed PENDING -> SUBMITTED")
	s.Await("the next attempt", func() bool { return slices.Equal(story(again), want) })

	never := apply(ada, spec("never", `{"resources": {"cpu": 64}}`), false)
	got := story(never)
	if len(got) != 6 || !strings.HasPrefix(got[2], "never-0-0: Job status changed SUBMITTED -> TERMINATING. "+
		"Termination reason: FAILED_TO_START_DUE_TO_NO_CAPACITY (") ||
		got[3] != "never: Run status changed SUBMITTED -> TERMINATING. Termination reason: JOB_FAILED" ||
		got[5] != "never: Run status changed TERMINATING -> FAILED" {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
}
