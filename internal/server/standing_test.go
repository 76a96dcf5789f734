package server_test

import (
	"testing"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/servertest"
)

// TestStanding: priorities of waiting jobs and fair shares are told in full to who may see usage, and where it is
// private to others only their own.
func TestStanding(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t, "private_data=usage", "priority.type=multifactor", "priority.weights.age=1000",
		"priority.weights.fairshare=5000")
	ann, _, _, _ := people(s)
	s.Must("PUT", "/api/v1/policy", client.ApplyPolicy{Policy: core.Policy{Projects: []core.Project{{
		Name: "physics", Shares: 3, Members: []core.Member{{User: "ann"}, {User: "bob"}},
	}}}}, nil)
	nice := func(n int32) func(*client.Submit) { return func(b *client.Submit) { b.Spec.Nice = n } }
	first, second := s.Submit(nice(7)), s.Submit(nil)
	held := s.Submit(nil)
	s.Must("PATCH", "/api/v1/jobs/"+idText(held), map[string]any{"hold": true}, nil)
	var all client.PriorityList
	s.Must("GET", "/api/v1/priorities?limit=1", nil, &all)
	if len(all.Jobs) != 1 || all.Jobs[0].ID != first || all.Jobs[0].Nice != 7 || !all.More || all.Next != first ||
		len(all.Weights) != 6 || all.Weights[1] != (client.Factor{Name: "fairshare", Weight: 5000}) {
		t.Errorf("the first page: %+v", all)
	}
	list, err := s.Client().Priorities(t.Context(), client.PrioritiesQuery{})
	if err != nil || len(list.Jobs) != 2 || list.Jobs[1].ID != second || list.Jobs[1].Now == 0 {
		t.Errorf("all pages, without the held job: %+v %v", list, err)
	}
	if status, err := s.Call("GET", "/api/v1/priorities", ann, nil, &all); err != nil || len(all.Jobs) != 0 {
		t.Errorf("ann sees priorities of others: %d %v %+v", status, err, all.Jobs)
	}
	shares, err := s.Client().Shares(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	of := map[string]client.Share{}
	for _, x := range shares.Shares {
		of[x.Key()] = x
	}
	if x, p := of["physics ann"], of["physics "]; x.Norm != 0.5 || x.Level != -1 || p.Shares != 3 || p.Parent != "" {
		t.Errorf("shares: %+v", shares.Shares)
	}
	var own client.ShareList
	if status, err := s.Call("GET", "/api/v1/shares", ann, nil, &own); err != nil {
		t.Fatal(status, err)
	}
	for _, x := range own.Shares {
		if x.User != "" && x.User != "ann" {
			t.Errorf("ann sees what %s used", x.User)
		}
	}
}

// TestDiag: the server counts jobs by how they went, passes and calls; administrators count again.
func TestDiag(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	ann, _, _, _ := people(s)
	id := s.Submit(nil)
	s.Submit(nil)
	s.Must("POST", "/api/v1/jobs/cancel", client.Cancel{IDs: []string{idText(id)}}, nil)
	s.AwaitState(id, core.Cancelled)
	var d client.Diag
	s.Await("counted", func() bool {
		s.Must("GET", "/api/v1/diag", nil, &d)
		return d.Jobs.Canceled == 1
	})
	calls := map[string]int64{}
	for _, c := range d.Calls {
		calls[c.Name] = c.Count
	}
	if d.Jobs.Submitted != 2 || d.Pending != 1 || calls["POST /jobs"] != 2 || len(d.Users) == 0 || d.Passes.Count == 0 {
		t.Errorf("figures: %+v", d)
	}
	if status, err := s.Call("POST", "/api/v1/diag/reset", ann, nil, nil); status != 403 {
		t.Errorf("ann resets them: %d %v", status, err)
	}
	d = client.Diag{}
	if status, err := s.Call("GET", "/api/v1/diag", ann, nil, &d); err != nil || d.Users != nil {
		t.Errorf("ann sees who calls: %d %v %+v", status, err, d.Users)
	}
	s.Must("POST", "/api/v1/diag/reset", nil, nil)
	s.Must("GET", "/api/v1/diag", nil, &d)
	if d.Jobs.Submitted != 0 || d.Pending != 1 {
		t.Errorf("after the reset: %+v", d)
	}
}
