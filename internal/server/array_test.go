package server_test

import (
	"net/http"
	"testing"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/servertest"
)

// TestTasksThatWaitAreChanged: some tasks of an array are held and released by its number and theirs, and its limit is
// changed for those taken apart too.
func TestTasksThatWaitAreChanged(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	id := idText(s.Submit(func(in *client.Submit) { in.Spec.Array = "1-9" }))
	yes, no, limit := true, false, int32(2)
	held := func() (n int) {
		var list client.JobList
		s.Must("GET", "/api/v1/jobs/"+id, nil, &list)
		for _, j := range list.Jobs {
			if j.Flags.Has(core.HeldUser) || j.Flags.Has(core.HeldAdmin) {
				n++
			}
		}
		return n
	}
	s.Must("PATCH", "/api/v1/jobs/"+id+"_[2,4-5]", client.Update{Hold: &yes}, nil)
	if n := held(); n != 3 {
		t.Fatalf("%d records are held", n)
	}
	s.Must("PATCH", "/api/v1/jobs/"+id+"_4", client.Update{Hold: &no}, nil) // by then a job of its own
	if n := held(); n != 2 {
		t.Fatalf("%d records are held after one was released", n)
	}
	s.Must("PATCH", "/api/v1/jobs/"+id, client.Update{SpecChange: core.SpecChange{Throttle: &limit}}, nil)
	var list client.JobList
	s.Must("GET", "/api/v1/jobs/"+id, nil, &list)
	if len(list.Jobs) != 4 {
		t.Errorf("%d records", len(list.Jobs))
	}
	for _, j := range list.Jobs {
		if j.Spec.Throttle != 2 {
			t.Errorf("job %d has the limit %d", j.ID, j.Spec.Throttle)
		}
	}
	if status, err := s.Call("PATCH", "/api/v1/jobs/"+id+"_4", "",
		client.Update{SpecChange: core.SpecChange{Throttle: &limit}}, nil); status != http.StatusBadRequest ||
		err.Reason != "array_task" {
		t.Errorf("the limit of one task: %d %v", status, err)
	}
	if status, err := s.Call("PATCH", "/api/v1/jobs/"+id+"_77", "", client.Update{Hold: &yes},
		nil); status != http.StatusNotFound || err.Reason != "invalid_job_id" {
		t.Errorf("a task that never was: %d %v", status, err)
	}
	s.Must("PATCH", "/api/v1/jobs/"+id, client.Update{Hold: &no}, nil)
	if n := held(); n != 0 {
		t.Errorf("%d records are held after the array was released", n)
	}
}
