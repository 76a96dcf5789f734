package server_test

import (
	"strings"
	"testing"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/servertest"
)

// TestPolicyByTheAPI: the policy is read and replaced as a whole, by administrators, and survives a restart.
func TestPolicyByTheAPI(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	ann, _, _, _ := people(s)
	limit := int64(7)
	want := core.Policy{
		QOS: []core.QOS{
			{
				Name: "high", Priority: 9, Preempt: []core.QOSName{"low"}, Flags: core.DenyOnLimit,
				Limits: core.Limits{GrpJobs: &limit},
			},
			{Name: "low"},
		},
		Projects: []core.Project{{
			Name: "physics", Shares: 3, Assoc: core.Association{
				QOS:    []core.QOSName{"low"},
				Limits: core.Limits{GrpTRES: core.TRESOf(core.Amount{Name: "cpu", Count: 4})},
			},
			Members: []core.Member{{User: "ann", Role: core.RoleManager}},
		}},
	}
	if status, err := s.Call("PUT", "/api/v1/policy", ann, client.ApplyPolicy{Policy: want}, nil); status != 403 ||
		err.Reason != "access_denied" {
		t.Errorf("ann changes the policy: %d %v", status, err)
	}
	var d core.PolicyDiff
	s.Must("PUT", "/api/v1/policy", client.ApplyPolicy{Policy: want, DryRun: true}, &d)
	if d.Applied || len(d.Changes) != 4 {
		t.Errorf("a dry run: %+v", d)
	}
	s.Must("PUT", "/api/v1/policy", client.ApplyPolicy{Policy: want}, &d)
	if !d.Applied || len(d.Changes) != 4 || d.Changes[0].What != "qos high" ||
		d.Changes[3].What != "member ann of physics" {
		t.Errorf("applied: %+v", d)
	}
	check := func() {
		t.Helper()
		var p core.Policy
		if status, err := s.Call("GET", "/api/v1/policy", ann, nil, &p); err != nil {
			t.Fatal(status, err)
		}
		if len(p.QOS) != 2 || p.QOS[0].Flags != core.DenyOnLimit || *p.QOS[0].Limits.GrpJobs != 7 ||
			p.Defaults.Project != "default" {
			t.Errorf("QOS: %+v", p.QOS)
		}
		for _, x := range p.Projects {
			if x.Name == "physics" && (x.Shares != 3 || x.Assoc.Limits.GrpTRES.Count("cpu") != 4 ||
				x.Member("ann").Role != core.RoleManager) {
				t.Errorf("physics: %+v", x)
			}
		}
		if len(p.Projects) != 2 {
			t.Errorf("projects: %+v", p.Projects)
		}
	}
	check()
	s.Stop()
	s.Start()
	check()

	calls := []struct {
		what, method, path string
		body               any
		status             int
		reason, text       string
	}{
		{
			"an unknown field", "PUT", "/api/v1/policy", `{"policy":{"qos":[{"name":"x","priorty":3}]}}`, 400, "bad_json",
			"priorty: there is no such key; did you mean priority?",
		},
		{
			"no such QOS to push", "PUT", "/api/v1/qos/x",
			core.QOS{Preempt: []core.QOSName{"lwo"}},
			400, "invalid_qos",
			"did you mean low?",
		},
		{"a flag that is none", "PUT", "/api/v1/qos/x", `{"flags":["NoDecy"]}`, 400, "bad_json", "did you mean NoDecay?"},
		{"a QOS that is named", "DELETE", "/api/v1/qos/low", nil, 409, "qos_in_use", "QOS high"},
		{"a QOS that is not there", "DELETE", "/api/v1/qos/zz", nil, 404, "invalid_qos", ""},
		{"a project that is not there", "DELETE", "/api/v1/projects/zz", nil, 404, "invalid_project", ""},
		{"the default project", "DELETE", "/api/v1/projects/default", nil, 409, "project_in_use", ""},
		{
			"a user who is not there", "PUT", "/api/v1/policy",
			client.ApplyPolicy{Policy: core.Policy{
				Projects: []core.Project{{Name: "y", Members: []core.Member{{User: "anm"}}}},
			}},
			400, "invalid_user",
			"did you mean ann?",
		},
	}
	for _, c := range calls {
		status, err := s.Call(c.method, c.path, "", c.body, nil)
		if err == nil || status != c.status || err.Reason != c.reason || !strings.Contains(err.Message, c.text) {
			t.Errorf("%s: %d %+v, want %d %s %q", c.what, status, err, c.status, c.reason, c.text)
		}
	}
	check()
	s.Must("PUT", "/api/v1/qos/mid", core.QOS{Priority: 5}, nil)
	var list client.QOSList
	s.Must("GET", "/api/v1/qos", nil, &list)
	if len(list.QOS) != 3 || list.QOS[2].Name != "mid" || list.QOS[2].Priority != 5 {
		t.Errorf("QOS: %+v", list.QOS)
	}
	s.Must("DELETE", "/api/v1/qos/mid", nil, nil)
	s.Must("PATCH", "/api/v1/projects/physics", map[string]any{"shares": 9}, nil)
	s.Must("PUT", "/api/v1/projects/physics/members/ann", map[string]any{
		"role": "user", "shares": 4,
		"assoc": map[string]any{"limits": map[string]any{"max_jobs": 3}},
	}, nil)
	var now core.Policy
	s.Must("GET", "/api/v1/policy", nil, &now)
	for _, p := range now.Projects {
		if m := p.Member("ann"); p.Name == "physics" && (p.Shares != 9 || p.Assoc.Limits.GrpTRES.Count("cpu") != 4 ||
			m.Shares != 4 || *m.Assoc.Limits.MaxJobs != 3 || m.Role != core.RoleUser) {
			t.Errorf("physics: %+v", p)
		}
	}
	if status, err := s.Call("PATCH", "/api/v1/projects/physics", ann, map[string]any{"shares": 99}, nil); status != 403 {
		t.Errorf("ann changes shares: %d %v", status, err)
	}
	s.Must("DELETE", "/api/v1/projects/physics", nil, nil)
}
