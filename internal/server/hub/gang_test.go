package hub

import (
	"testing"

	"bireme.dev/bireme/internal/core"
)

// TestGangPort: jobs whose ids are alike get ports that do not meet where the jobs do.
func TestGangPort(t *testing.T) {
	t.Parallel()
	h := &Hub{jobs: map[core.JobID]*tracked{}}
	job := func(id core.JobID, start core.Time, nodes ...core.NodeName) *core.Job {
		j := &core.Job{
			ID: id, Attempt: 1, Start: start, Spec: &core.Spec{Extra: &core.Extra{Container: &core.Container{}}},
			Alloc: &core.Alloc{},
		}
		for _, n := range nodes {
			j.Alloc.Nodes = append(j.Alloc.Nodes, core.NodeAlloc{Node: n})
		}
		h.jobs[id] = &tracked{job: j}
		return j
	}
	want := func(j *core.Job, local bool, port int) {
		t.Helper()
		if got := h.gangPort([]*core.Job{j}, local); got != port {
			t.Errorf("job %d has port %d, want %d", j.ID, got, port)
		}
	}
	first := firstGangPort + 61
	a, b, c := job(1, 10, "n1", "n2"), job(1+gangPorts, 20, "n2", "n3"), job(1+2*gangPorts, 30, "n3", "n4")
	want(b, false, first+1) // after a restart: a, which came first, has what it had
	want(a, false, first)
	want(c, false, first)
	want(b, false, first+1)
	delete(h.jobs, a.ID)
	want(b, false, first+1) // launched again, it is where the others look for it
	h.jobs[b.ID].gang = 0
	want(b, false, first+1) // c has the first
	again := *a
	again.Attempt = 2
	h.jobs[a.ID] = &tracked{job: &again}
	want(&again, false, first+17)

	// Nodes of one machine: each container has a port, whichever node it is on.
	clear(h.jobs)
	d, e := job(1, 10, "n1", "n2", "n3"), job(1+gangPorts, 20, "n4", "n5")
	want(d, true, first)
	want(e, true, first+3)

	clear(h.jobs)
	f := job(131, 10, "n1", "n2", "n3") // 131·61 is 9 short of 8000
	g := job(131+gangPorts, 20, "n4", "n5")
	want(f, true, wishedPort(f, 0))
	want(g, true, wishedPort(f, 3))
}
