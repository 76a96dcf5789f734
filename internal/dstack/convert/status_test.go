package convert

import (
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/attach"
	"bireme.dev/bireme/internal/dstack/wire"
)

// TestEndings is the table of termination reasons, statuses, retry events and texts.
func TestEndings(t *testing.T) {
	t.Parallel()
	for _, x := range []struct{ reason, status, event, err string }{
		{"failed_to_start_due_to_no_capacity", "failed", "no-capacity", ""},
		{"interrupted_by_no_capacity", "failed", "interruption", ""},
		{"instance_unreachable", "failed", "error", "instance unreachable"},
		{"instance_access_revoked", "failed", "error", "instance access revoked"},
		{"waiting_instance_limit_exceeded", "failed", "error", "waiting instance limit exceeded"},
		{"waiting_runner_limit_exceeded", "failed", "error", "waiting runner limit exceeded"},
		{"terminated_by_user", "terminated", "", ""},
		{"volume_error", "failed", "error", "volume error"},
		{"gateway_error", "failed", "error", "gateway error"},
		{"scaled_down", "terminated", "", "scaled down"},
		{"done_by_runner", "done", "", ""},
		{"aborted_by_user", "aborted", "", ""},
		{"terminated_by_server", "terminated", "", ""},
		{"inactivity_duration_exceeded", "terminated", "", "inactivity duration exceeded"},
		{"terminated_due_to_utilization_policy", "terminated", "", "utilization policy"},
		{"container_exited_with_error", "failed", "error", ""},
		{"ports_binding_failed", "failed", "error", "ports binding failed"},
		{"creating_container_error", "failed", "error", "runner error"},
		{"executor_error", "failed", "error", "executor error"},
		{"max_duration_exceeded", "terminated", "", "max duration exceeded"},
		{"log_quota_exceeded", "failed", "error", "log quota exceeded"},
	} {
		if got := endings[x.reason]; got != (ending{x.status, x.event, x.err}) {
			t.Errorf("%s: %+v", x.reason, got)
		}
	}
	if len(endings) != 21 {
		t.Errorf("%d reasons", len(endings))
	}
}

// TestStatuses: what clients are shown of a run at each point of its job's life.
func TestStatuses(t *testing.T) {
	t.Parallel()
	const now = core.Time(1_000_000_000)
	stop := func(as core.JobState, by core.UserName, abort bool) *core.Stop {
		return &core.Stop{By: by, As: as, Abort: abort}
	}
	on := &core.Alloc{Partition: "p", Nodes: []core.NodeAlloc{{Node: "n1", CPUs: 2, Mem: core.GiB}}}
	for name, x := range map[string]struct {
		job       core.Job
		waiting   string
		launching string
		run       string // status, message, reason
		sub       string // status, message, reason
		exit      int32  // below 0: none
		err       string // of the submission
		runErr    string
	}{
		"new":       {core.Job{}, "", "", "submitted submitted -", "submitted submitted -", -1, "", ""},
		"waits":     {core.Job{}, "queued", "", "submitted queued -", "submitted queued -", -1, "", ""},
		"scheduled": {core.Job{Life: &core.RunLife{Trigger: now + 1}}, "", "", "pending pending -", "", -1, "", ""},
		"pulling": {
			core.Job{State: core.Running, Attempt: 1, Alloc: on},
			"", wire.JobPulling, "provisioning pulling -",
			"pulling pulling -", -1, "", "",
		},
		"runs": {
			core.Job{State: core.Running, Attempt: 1, Alloc: on}, "", "", "running running -", "running running -", -1, "", "",
		},
		"suspended": {
			core.Job{State: core.Suspended, Attempt: 1, Alloc: on}, "", "", "running running -", "running running -", -1, "", "",
		},
		"is stopped": {
			core.Job{State: core.Running, Attempt: 1, Alloc: on, Stop: stop(core.Cancelled, "ann", false)},
			"", "",
			"terminating terminating stopped_by_user", "terminating terminating terminated_by_user", -1, "", "",
		},
		"stopped": {
			core.Job{State: core.Cancelled, Attempt: 1, Alloc: on, Stop: stop(core.Cancelled, "ann", false)},
			"", "",
			"terminated terminated stopped_by_user", "terminated stopped terminated_by_user", -1, "", "",
		},
		"aborted": {
			core.Job{State: core.Cancelled, Attempt: 1, Alloc: on, Stop: stop(core.Cancelled, "ann", true)},
			"", "",
			"terminated terminated aborted_by_user", "aborted aborted aborted_by_user", -1, "", "",
		},
		"stopped while it waits": {
			core.Job{State: core.Cancelled, Stop: stop(core.Cancelled, "ann", false)},
			"", "",
			"terminated terminated stopped_by_user", "terminated stopped terminated_by_user", -1, "", "",
		},
		"cleans up": {
			core.Job{State: core.Completed, Flags: core.Completing, Attempt: 1, Alloc: on},
			"", "",
			"terminating terminating all_jobs_done", "terminating terminating done_by_runner", 0, "", "",
		},
		"done": {
			core.Job{State: core.Completed, Attempt: 1, Alloc: on},
			"", "",
			"done done all_jobs_done", "done exited (0) done_by_runner", 0, "", "",
		},
		"exits with 7": {
			core.Job{State: core.Failed, Attempt: 1, Alloc: on, Exit: core.Exit{Code: 7}},
			"", "",
			"failed failed job_failed", "failed exited (7) container_exited_with_error", 7, "", "",
		},
		"is killed": {
			core.Job{State: core.Failed, Attempt: 1, Alloc: on, Exit: core.Exit{Signal: 9}},
			"", "",
			"failed failed job_failed", "failed exited (137) container_exited_with_error", 137, "", "",
		},
		"out of time": {
			core.Job{State: core.Timeout, Attempt: 1, Alloc: on},
			"", "",
			"failed failed job_failed", "terminated terminated max_duration_exceeded", -1, "max duration exceeded", "",
		},
		"node fails": {
			core.Job{State: core.NodeFail, Attempt: 1, Alloc: on},
			"", "",
			"failed failed job_failed", "failed error instance_unreachable", -1, "instance unreachable", "",
		},
		"preempted": {
			core.Job{State: core.Preempted, Attempt: 1, Alloc: on},
			"", "",
			"failed failed job_failed", "failed interrupted interrupted_by_no_capacity", -1, "", "",
		},
		"no container": {
			core.Job{State: core.Failed, Reason: core.ReasonLaunchFailure, Attempt: 1, Alloc: on},
			"", "",
			"failed failed job_failed", "failed error creating_container_error", -1, "runner error", "",
		},
		"no capacity": {
			core.Job{State: core.Failed, Reason: core.ReasonNoCapacity, Message: "there are 2 nodes"},
			"", "",
			"failed failed job_failed", "failed no capacity failed_to_start_due_to_no_capacity", -1, "", "",
		},
		"no fleets": {
			core.Job{State: core.Failed, Reason: core.ReasonNoCapacity, Message: `no node has the feature "x"`},
			"", "",
			"failed failed job_failed", "failed no fleets failed_to_start_due_to_no_capacity", -1, "", "",
		},
		"gives up": {
			core.Job{State: core.Failed, Attempt: 3, Alloc: on, Exit: core.Exit{Code: 1}, Life: &core.RunLife{Exceeded: true}},
			"", "", "failed failed retry_limit_exceeded", "failed exited (1) container_exited_with_error", 1, "",
			"retry limit exceeded",
		},
		"waits again": {core.Job{Attempt: 1}, "queued", "", "submitted retrying -", "submitted retrying -", -1, "", ""},
		"waits to wait again": {
			core.Job{Attempt: 1, Eligible: now + 1}, "", "", "pending retrying -", "submitted retrying -", -1, "", "",
		},
		"inactive": {
			core.Job{
				State: core.Cancelled, Reason: core.ReasonInactivity, Attempt: 1, Alloc: on, Stop: stop(core.Cancelled, "", false),
			},
			"", "", "terminated terminated stopped_by_user", "terminated terminated inactivity_duration_exceeded", -1,
			"inactivity duration exceeded", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := x.job
			j.ID, j.Submit, j.Spec = 5, 1, &core.Spec{Run: "r", User: "ann"}
			v := &View{
				Now: now, WithJobs: true, Submissions: -1, Listener: attach.Listener{Host: "h", Port: 22},
				Node: func(n core.NodeName) *core.Node { return &core.Node{Name: n} },
			}
			s := Described("r", &j)
			run := v.Run(&Shown{
				Run: &core.Run{Name: "r", ID: "1", Jobs: []core.JobID{5}}, Job: &j, Spec: s, Waiting: x.waiting,
				Launching: func(int) Launching { return Launching{Status: x.launching} },
			})
			if got := run.Status + " " + run.StatusMessage + " " + or(run.TerminationReason); got != x.run {
				t.Errorf("run: %s, want %s", got, x.run)
			}
			if or(run.Error) != or(text(x.runErr)) {
				t.Errorf("error: %s", or(run.Error))
			}
			if x.sub == "" {
				if len(run.Jobs) != 0 || run.NextTriggeredAt == nil {
					t.Errorf("%d jobs", len(run.Jobs))
				}
				return
			}
			sub := run.Jobs[0].Submissions[len(run.Jobs[0].Submissions)-1]
			if got := sub.Status + " " + sub.StatusMessage + " " + or(sub.TerminationReason); got != x.sub {
				t.Errorf("job: %s, want %s", got, x.sub)
			}
			if sub.ID != run.LatestJobSubmission.ID || !wire.IsUUID(sub.ID) || or(sub.Error) != or(text(x.err)) {
				t.Errorf("%+v", sub)
			}
			if (sub.ExitStatus == nil) != (x.exit < 0) || sub.ExitStatus != nil && *sub.ExitStatus != x.exit {
				t.Errorf("exit %v, want %d", sub.ExitStatus, x.exit)
			}
			if (sub.FinishedAt != nil) != (sub.TerminationReason != nil && sub.Status != wire.JobTerminating) {
				t.Errorf("finished at %v", sub.FinishedAt)
			}
		})
	}
}

func or(s *string) string {
	if s == nil {
		return "-"
	}
	return *s
}

func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// TestSubmissionsOfAttempts: each attempt is a submission, with an id that stays, and its logs are found by that.
func TestSubmissionsOfAttempts(t *testing.T) {
	t.Parallel()
	j := &core.Job{
		ID: 9, Attempt: 2, State: core.Running, Submit: 10, Spec: &core.Spec{Run: "r"},
		Alloc: &core.Alloc{Nodes: []core.NodeAlloc{{Node: "a"}, {Node: "b"}}},
		Earlier: &core.Earlier{Attempts: []core.Attempt{{
			Attempt: 1, State: core.Failed, Exit: core.Exit{Code: 3}, Submit: 10, Start: 20, End: 30,
			Alloc: &core.Alloc{Nodes: []core.NodeAlloc{{Node: "b"}, {Node: "c"}}},
		}}},
	}
	v := &View{
		WithJobs: true, Submissions: -1,
		Node: func(n core.NodeName) *core.Node { return &core.Node{Name: n} },
	}
	run := v.Run(&Shown{Run: &core.Run{Name: "r", Jobs: []core.JobID{9}}, Job: j, Spec: Described("r", j)})
	if len(run.Jobs) != 2 || run.Jobs[1].Spec.JobName != "r-1-0" {
		t.Fatalf("%+v", run.Jobs)
	}
	for rank, job := range run.Jobs {
		if len(job.Submissions) != 2 || job.Submissions[0].ID != SubmissionID(9, 0, rank) ||
			job.Submissions[1].ID != SubmissionID(9, 1, rank) || *job.Submissions[0].ExitStatus != 3 {
			t.Fatalf("%+v", job.Submissions)
		}
	}
	if at := run.Jobs[1].Submissions[0].JobProvisioningData.InstanceID; at != "c" {
		t.Errorf("the first attempt was on %s", at)
	}
	v.Submissions = 1
	if run = v.Run(&Shown{Run: &core.Run{Name: "r", Jobs: []core.JobID{9}}, Job: j, Spec: Described("r", j)}); len(
		run.Jobs[0].Submissions) != 1 || run.Jobs[0].Submissions[0].SubmissionNum != 1 {
		t.Errorf("%+v", run.Jobs[0].Submissions)
	}
	// with nothing left of what an answer may have, a run has its first job still
	left := int64(jobOverhead)
	v.Left = &left
	for range 2 {
		run = v.Run(&Shown{Run: &core.Run{Name: "r", Jobs: []core.JobID{9}}, Job: j, Spec: Described("r", j)})
		if len(run.Jobs) != 1 || left != 0 {
			t.Errorf("%d jobs, %d bytes left", len(run.Jobs), left)
		}
	}
}

// TestJobsOfGroups: each node of a group is a job of its own, with the group's commands.
func TestJobsOfGroups(t *testing.T) {
	t.Parallel()
	s := read(t, []byte(`{"run_name": "g", "configuration": {"type": "task", "image": "box:1", "groups": [
		{"name": "head", "commands": ["lead"]}, {"name": "crew", "nodes": 2, "commands": ["follow", "end"]}]}}`))
	jobs := s.JobSpecs("g", "", Images{})
	if len(jobs) != 3 || jobs[0].NodeGroupName != "head" || jobs[2].NodeGroupName != "crew" ||
		jobs[2].NodeGroupIndex != 1 || jobs[2].NodeGroupJobIndex != 1 ||
		jobs[1].Commands[3] != "follow && end" || jobs[2].JobName != "g-2-0" {
		t.Fatalf("%+v", jobs)
	}
}
