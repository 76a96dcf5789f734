package server_test

import (
	"testing"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/servertest"
)

// TestLimitsLive: a policy that is applied holds jobs back with its reason, at submit and in the plan; one that is
// widened lets them go; what was used is there after a restart.
func TestLimitsLive(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t, "priority.weights.run=100")
	n := s.Join("n1", core.Compute, false)
	n.Connect()
	one, two := int64(1), int64(2)
	apply := func(l core.Limits, q core.Limits) {
		t.Helper()
		p := core.Policy{
			QOS:      []core.QOS{{Name: "short", Limits: q}},
			Projects: []core.Project{{Name: "default", Assoc: core.Association{Limits: l}}},
		}
		s.Must("PUT", "/api/v1/policy", client.ApplyPolicy{Policy: p}, nil)
	}
	apply(core.Limits{MaxJobs: &one}, core.Limits{MaxSubmit: &one})
	first := s.Submit(nil)
	second := s.Submit(func(b *client.Submit) { b.Spec.Extra = &core.Extra{RunPriority: 40} })
	s.AwaitState(first, core.Running)
	s.Await("the limit's reason", func() bool { return s.Job(second).Waiting == "AssocMaxJobsLimit" })
	var why client.Why
	s.Must("GET", "/api/v1/jobs/2/why", nil, &why)
	if why.Reason != "AssocMaxJobsLimit" || why.Priority == nil || why.Priority.Base != 10_000 ||
		why.Priority.Run != 40 || why.Priority.Now != 10_040 {
		t.Errorf("why: %+v %+v", why, why.Priority)
	}
	s.Submit(func(b *client.Submit) { b.Spec.QOS, b.Spec.Hold = "short", true })
	body := submitBody()
	body.Spec.QOS = "short"
	if status, err := s.Call("POST", "/api/v1/jobs", "", body, nil); status != 403 || err.Reason != "policy_limit" {
		t.Errorf("one job too many: %d %v", status, err)
	}
	n.Disconnect()
	s.Stop()
	s.Start()
	n.Connect()
	s.Await("the limit's reason", func() bool { return s.Job(second).Waiting == "AssocMaxJobsLimit" })
	apply(core.Limits{MaxJobs: &two}, core.Limits{})
	s.AwaitState(second, core.Running)
}
