package server_test

import (
	"strings"
	"testing"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/servertest"
	"bireme.dev/bireme/internal/wire"
)

// TestSecretsOfARun: a run finds its project's secrets when it is launched, and only then; one that is missing ends it
// with its name.
func TestSecretsOfARun(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	n := s.Join("n1", core.Compute, false)
	n.Connect()
	s.Must("POST", "/api/project/default/secrets/create_or_update", map[string]string{"name": "key", "value": "s3cr3t-9"},
		nil)
	submit := func(value string, rules *core.RunRules) core.JobID {
		return s.Submit(func(in *client.Submit) {
			in.Env = []string{"A=" + value}
			in.Spec.Project, in.Spec.Extra = "default", &core.Extra{Rules: rules}
		})
	}
	id := submit("x${{ secrets.key }}y", &core.RunRules{})
	launched := func(id core.JobID) string {
		n.AwaitLaunch(id, 1, wire.BatchStep)
		l, err := wire.DecodeLaunch(n.AwaitFrame(wire.TypeLaunch))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(l.Environ(), "|")
	}
	if env := launched(id); !strings.Contains(env, "A=xs3cr3t-9y") {
		t.Errorf("environment %q", env)
	}
	if env := launched(submit("${{ secrets.key }}", nil)); !strings.Contains(env, "A=${{ secrets.key }}") {
		t.Errorf("a job that is no run has %q", env)
	}
	id = submit("${{ secrets.other }}", &core.RunRules{})
	if j := s.AwaitState(id, core.Failed); !strings.Contains(j.Message, `the project has no secret "other"`) ||
		j.Termination() != core.EndContainer {
		t.Errorf("%q, %s", j.Message, j.Termination())
	}
	named := map[string]any{
		"run": "named", "config": "type: task", "script": "#!/bin/sh\ntrue\n",
		"env": []string{"A=${{ secrets.other }}"}, "spec": map[string]any{"project": "default"},
	}
	if _, err := s.Call("POST", "/api/v1/jobs", "", named, nil); err == nil ||
		!strings.Contains(err.Error(), `there is no secret "other" in project default`) {
		t.Errorf("a run with a secret that is not there: %v", err)
	}
}
