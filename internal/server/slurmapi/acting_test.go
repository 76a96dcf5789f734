package slurmapi_test

import (
	"testing"

	"bireme.dev/bireme/internal/core"
)

// TestActingIsAudited: what an administrator does as another user is told with both names.
func TestActingIsAudited(t *testing.T) {
	t.Parallel()
	s, root := start(t)
	uid := uint32(1)
	s.Token(core.User{Name: "bob", UnixName: "daemon", UID: &uid})
	as := *root
	as.name = "daemon"
	if status, e := as.do("POST", "/slurm/v0.0.43/job/submit", minimal, nil); status != 200 {
		t.Fatalf("submit as another: %d %+v", status, e)
	}
	list, err := s.Client().Audit(t.Context(), map[string][]string{"action": {"job.submit"}})
	if err != nil || len(list.Entries) != 1 {
		t.Fatalf("the audit log has %+v, %v", list, err)
	}
	if e := list.Entries[0]; e.User != "root" || e.UID != 0 || e.Owner != "bob" || e.Answer != core.AuditOK {
		t.Errorf("the audit log has %+v", e)
	}
	// The same call by root's own name is nobody else's business.
	if status, e := root.do("POST", "/slurm/v0.0.43/job/submit", minimal, nil); status != 200 {
		t.Fatalf("submit: %d %+v", status, e)
	}
	if list, err = s.Client().Audit(t.Context(), map[string][]string{"action": {"job.submit"}}); err != nil ||
		len(list.Entries) != 1 {
		t.Errorf("the audit log has %+v, %v", list, err)
	}
}

// TestCancelByUID: user_id of a DELETE of jobs picks the jobs of that user alone.
func TestCancelByUID(t *testing.T) {
	t.Parallel()
	s, root := start(t)
	uid := uint32(1) // daemon
	s.Token(core.User{Name: "bob", UnixName: "daemon", UID: &uid})
	held := `{"script":"#!/bin/sh\n","job":{"environment":["A=b"],"current_working_directory":"/tmp","hold":true}}`
	as := *root
	as.name = "daemon"
	_, mine := root.do("POST", "/slurm/v0.0.43/job/submit", held, nil)
	_, other := as.do("POST", "/slurm/v0.0.43/job/submit", held, nil)
	var got struct {
		Status []struct {
			JobID struct{ Number int64 } `json:"job_id"`
		}
	}
	if status, e := root.do("DELETE", "/slurm/v0.0.43/jobs/", `{"user_id":"1"}`, &got); status != 200 {
		t.Fatalf("cancel: %d %+v", status, e)
	}
	if len(got.Status) != 1 || got.Status[0].JobID.Number != other.job() {
		t.Errorf("canceled %+v, want job %d alone", got.Status, other.job())
	}
	if status, e := root.do("DELETE", "/slurm/v0.0.43/jobs/", `{"user_id":"4000000000"}`, nil); status == 200 {
		t.Errorf("a uid that nobody has: %d %+v", status, e)
	}
	jobs, err := s.Client().Job(t.Context(), itoa(mine.job()))
	if err != nil || jobs.Jobs[0].State != core.Pending {
		t.Errorf("root's own job: %+v, %v", jobs, err)
	}
}

// TestHetComponentsApart: components of a het job share no node, as those of sbatch.
func TestHetComponentsApart(t *testing.T) {
	t.Parallel()
	s, c := start(t)
	part := `{"environment":["A=b"],"current_working_directory":"/tmp","hold":true}`
	status, e := c.do("POST", "/slurm/v0.0.43/job/submit", `{"script":"#!/bin/sh\n","jobs":[`+part+`,`+part+`]}`, nil)
	if status != 200 {
		t.Fatalf("submit: %d %+v", status, e)
	}
	list, err := s.Client().Job(t.Context(), itoa(e.job())+"+1")
	if err != nil || len(list.Jobs) != 1 || !list.Jobs[0].Spec.More().HetApart {
		t.Errorf("the second component: %+v, %v", list, err)
	}
}

// TestNegativeSizes: sizes below 0 are refused.
func TestNegativeSizes(t *testing.T) {
	t.Parallel()
	_, c := start(t)
	for _, field := range []string{"minimum_nodes", "maximum_nodes", "minimum_cpus", "temporary_disk_per_node"} {
		status, e := c.do("POST", "/slurm/v0.0.43/job/submit", `{"script":"#!/bin/sh\n","job":{"environment":["A=b"],`+
			`"current_working_directory":"/tmp","`+field+`":-1}}`, nil)
		if status != 400 || len(e.Errors) != 1 || e.job() != 0 {
			t.Errorf("%s: %d %+v", field, status, e)
		}
	}
}
