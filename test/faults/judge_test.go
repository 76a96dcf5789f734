//go:build e2e

package faults

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/test/cluster"
)

// judge compares what became of every order with what was asked and what was killed.
func judge(t *testing.T, c *cluster.Cluster, dir string, orders []*order, killed []kill) {
	t.Helper()
	for _, line := range lines(filepath.Join(dir, "twice")) {
		t.Errorf("ran twice at once: %s", line)
	}
	jobs := history(t, c)
	ids := map[core.JobID]string{}
	ends := map[core.JobState]int{}
	for _, o := range orders {
		if o.id == 0 {
			continue // told when it was sent
		}
		if other, taken := ids[o.id]; taken {
			t.Errorf("%s and %s were both told the id %d", o.name, other, o.id)
		}
		ids[o.id] = o.name
		found := o.find(jobs)
		for i, name := range o.names() {
			switch n := len(found[i]); n {
			case 0:
				t.Errorf("%s (job %d) was acknowledged and is lost", name, o.id)
			case 1:
				ends[found[i][0].State]++
				if fault := o.judge(found[i][0], lines(filepath.Join(dir, "run", name)), killed); fault != "" {
					t.Errorf("%s (job %d): %s", name, found[i][0].ID, fault)
				}
			default:
				t.Errorf("%s (job %d) has %d records", name, o.id, n)
			}
		}
	}
	t.Logf("ends: %v", ends)
}

// history returns every job the cluster knows, and checks that no id is there twice.
func history(t *testing.T, c *cluster.Cluster) []client.Job {
	t.Helper()
	list, err := c.Client(10*time.Second).Jobs(t.Context(), client.JobsQuery{History: true, Limit: 1_000_000})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[core.JobID]bool{}
	for i := range list.Jobs {
		if id := list.Jobs[i].ID; seen[id] {
			t.Errorf("job %d is listed twice", id)
		} else {
			seen[id] = true
		}
	}
	return list.Jobs
}

// find returns the records of an order: for each of its names the jobs that stand for it.
func (o *order) find(jobs []client.Job) [][]*client.Job {
	found := make([][]*client.Job, max(1, o.tasks))
	for i := range jobs {
		j := &jobs[i]
		switch {
		case o.tasks == 0:
			if j.ID == o.id {
				found[0] = append(found[0], j)
			}
		case j.Array == nil || j.Array.Base != o.id:
		case j.Array.Tasks.Len() > 0:
			for task := range found {
				if j.Array.Tasks.Contains(task) {
					found[task] = append(found[task], j)
				}
			}
		default:
			found[j.Array.Task] = append(found[j.Array.Task], j)
		}
	}
	return found
}

// judge returns what is wrong with how a job ended; "" if it ended rightly.
func (o *order) judge(j *client.Job, marks []string, killed []kill) string {
	starts, ended := map[string]int{}, map[string]bool{}
	for _, line := range marks {
		what, launch, _ := strings.Cut(line, " ")
		if what == "start" {
			starts[launch]++
		} else {
			ended[launch] = true
		}
	}
	for launch, n := range starts {
		if n > 1 {
			return fmt.Sprintf("launch %s ran %d times", launch, n)
		}
	}
	if len(starts) > int(j.Attempt) {
		return fmt.Sprintf("ran %d times in %d attempts: %v", len(starts), j.Attempt, marks)
	}
	if j.Attempt > 1 && (!o.requeue || keepers(killed) < int(j.Attempt)-1) {
		return fmt.Sprintf("was started %d times; requeue %v, %d keepers killed", j.Attempt, o.requeue, keepers(killed))
	}
	last := fmt.Sprintf("%d.%d.batch", j.ID, j.Attempt)
	switch j.State {
	case core.Completed, core.Failed:
		want := core.Completed
		if o.code != 0 {
			want = core.Failed
		}
		switch {
		case !o.cancelled.IsZero() && j.End.Go().After(o.cancelled):
			return fmt.Sprintf("ended %v after its cancel was acknowledged", j.State)
		case j.State != want || j.Exit != (core.Exit{Code: o.code}):
			return fmt.Sprintf("ended %v %d:%d %q, want %v %d:0; marks %v", j.State, j.Exit.Code, j.Exit.Signal,
				j.Message, want, o.code, marks)
		case starts[last] != 1 || !ended[last]:
			return fmt.Sprintf("is %v, but its last attempt %s left only %v", j.State, last, marks)
		}
	case core.Cancelled:
		if !o.asked {
			return fmt.Sprintf("was cancelled by nobody: %q", j.Message)
		}
	case core.NodeFail:
		if o.requeue {
			return fmt.Sprintf("may be requeued and ended NODE_FAIL: %q", j.Message)
		}
		if !struck(j, killed) {
			return fmt.Sprintf("ended NODE_FAIL, but no keeper of it was killed: %q", j.Message)
		}
	default:
		return fmt.Sprintf("ended %v: %q; marks %v", j.State, j.Message, marks)
	}
	return ""
}

func keepers(killed []kill) int {
	n := 0
	for _, k := range killed {
		if k.what == "keeper" {
			n++
		}
	}
	return n
}

// struck reports whether a keeper of a job's nodes was killed while the job ran.
func struck(j *client.Job, killed []kill) bool {
	for _, k := range killed {
		if k.what != "keeper" || k.at.Before(j.Start.Go().Add(-time.Second)) || k.at.After(j.End.Go()) {
			continue
		}
		for i := range j.Alloc.Nodes {
			if string(j.Alloc.Nodes[i].Node) == k.node {
				return true
			}
		}
	}
	return false
}

// judgeEvents checks the numbers of events, as a watcher saw them through all deaths and as they are read now, and that
// sending again under a key made nothing twice.
func judgeEvents(t *testing.T, c *cluster.Cluster, w *watcher, orders []*order) {
	t.Helper()
	state, err := c.Client(10 * time.Second).Cluster(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c.Eventually(fmt.Sprintf("the watcher has seen event %d", state.Seq), func() (bool, string) {
		select {
		case err := <-w.gap:
			t.Fatalf("watching: %v", err)
		default:
		}
		return w.last.Load() >= state.Seq, fmt.Sprint(w.last.Load())
	})
	stop := fmt.Errorf("enough")
	next := int64(1)
	submitted := map[core.JobID]bool{}
	err = c.Client(10*time.Second).Watch(t.Context(), 0, func(e *core.Event) error {
		if e.Seq != next {
			return fmt.Errorf("event %d came where %d was due", e.Seq, next)
		}
		live := <-w.all
		if live.Kind != e.Kind || live.Job != e.Job || live.At != e.At {
			return fmt.Errorf("event %d was seen as %s of job %d and is now %s of job %d", e.Seq, live.Kind, live.Job,
				e.Kind, e.Job)
		}
		if e.Kind == core.JobSubmitted {
			submitted[e.Job] = true
		}
		if next++; next > state.Seq {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) {
		t.Fatalf("reading all events: %v", err)
	}
	acknowledged := map[core.JobID]bool{}
	for _, o := range orders {
		acknowledged[o.id] = true
	}
	for id := range submitted {
		if !acknowledged[id] {
			t.Errorf("job %d was made and nobody was told: sending again under a key made it twice", id)
		}
	}
}
