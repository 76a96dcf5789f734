//go:build e2e

package faults

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/servertest"
)

// roles are the roles of the cluster's servers, as one of them tells.
func roles(s *servertest.Server) map[string]string {
	var list client.ServerList
	s.Must("GET", "/api/v1/servers", nil, &list)
	out := map[string]string{}
	for _, v := range list.Servers {
		out[v.Name] = v.Role
	}
	return out
}

// awaitLeader waits until a server knows who leads.
func awaitLeader(t *testing.T, s *servertest.Server, name string) {
	t.Helper()
	deadline := time.Now().Add(3 * servertest.Timeout)
	for {
		got := roles(s)
		if got[name] == "leads" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the roles are %v", got)
		}
	}
}

// TestFollower: a server that follows answers from its copy, has what its caller wrote, hands writes to the leader and
// keeps them through a change of leader; agents are sent on.
func TestFollower(t *testing.T) {
	t.Parallel()
	store := postgres(t)
	key := filepath.Join(t.TempDir(), "seal.key")
	set := []string{"server.store=" + store, "server.seal_key=" + key, "timers.lease=3s"}
	first := servertest.Start(t, append(set, "server.id=first")...)
	second := servertest.Start(t, append(set, "server.id=second")...)
	awaitLeader(t, second, "first")
	// A write by the one that follows, and what its caller reads there next.
	for i := range 3 {
		name := fmt.Sprintf("p%d", i)
		second.Must("POST", "/api/v1/projects", core.Project{Name: core.ProjectName(name)}, nil)
		var list client.ProjectList
		second.Must("GET", "/api/v1/projects", nil, &list)
		found := false
		for _, p := range list.Projects {
			found = found || string(p.Name) == name
		}
		if !found {
			t.Errorf("project %s is not there right after it was made", name)
		}
	}
	status, err := second.Call("GET", "/agent/v1/connect", "", nil, nil)
	if status != 503 || core.ReasonOf(err) != "not_leading" {
		t.Errorf("an agent gets %d %v", status, err)
	}
	// Submissions go on while the lead changes, and each is made once.
	var ids sync.Map
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 20 {
				body := client.Submit{
					Script: "#!/bin/sh\ntrue\n", Key: fmt.Sprintf("k%d-%d", w, i),
					Spec: core.Spec{Name: "j", Shape: core.Shape{Tasks: 1, CPUsPerTask: 1, NodesMin: 1}},
				}
				var out client.Submitted
				status, err := second.Call("POST", "/api/v1/jobs", "", body, &out)
				if err != nil {
					t.Errorf("submission %s: %d %v", body.Key, status, err)
					return
				}
				if other, twice := ids.LoadOrStore(out.ID, body.Key); twice {
					t.Errorf("%s and %v are one job", body.Key, other)
				}
			}
		})
	}
	second.Must("POST", "/api/v1/servers/stepdown", nil, nil)
	wg.Wait()
	awaitLeader(t, second, "second")
	var list client.JobList
	first.Must("GET", "/api/v1/jobs", nil, &list)
	second.Must("GET", "/api/v1/jobs", nil, &list)
	if len(list.Jobs) != 80 {
		t.Errorf("there are %d jobs of 80", len(list.Jobs))
	}
}
