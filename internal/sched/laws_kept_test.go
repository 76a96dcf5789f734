package sched

import (
	"testing"

	"pgregory.net/rapid"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/taskset"
)

// upset does one thing to the world that a planner must follow.
func (w *lawWorld) upset() {
	some := func(state core.JobState) *core.Job {
		var at []*core.Job
		for _, id := range w.order {
			if j := w.jobs[id]; j.State == state {
				at = append(at, j)
			}
		}
		if len(at) == 0 {
			return nil
		}
		j := *at[w.r.IntN(len(at))]
		return &j
	}
	switch w.r.IntN(11) {
	case 0: // a node goes or comes
		i := w.r.IntN(len(w.nodes))
		n := *w.nodes[i]
		n.Flags ^= core.NodeDrain
		w.nodes[i] = &n
		w.p.Apply(Changes{Nodes: w.nodes[i : i+1]})
	case 1: // or has got more, or is tried at another place
		i := w.r.IntN(len(w.nodes))
		n := *w.nodes[i]
		if w.r.IntN(2) == 0 {
			n.Weight = int32(w.r.IntN(3))
		} else {
			n.Hardware.CPUs += int32(w.r.IntN(2))
			n.Hardware.Memory += core.GiB
		}
		w.nodes[i] = &n
		w.p.Apply(Changes{Nodes: w.nodes[i : i+1]})
	case 2:
		if j := some(core.Pending); j != nil {
			j.Priority = uint32(w.r.IntN(5))
			w.put(j)
		}
	case 3:
		if j := some(core.Pending); j != nil {
			j.State, j.End = core.Cancelled, w.now
			w.put(j)
		}
	case 4: // a limit is raised or lowered
		if j := some(core.Running); j != nil {
			s := *j.Spec
			s.TimeLimit = core.Seconds(10 * (1 + w.r.IntN(20)))
			j.Spec = &s
			w.put(j)
		}
	case 5: // time goes by, and what should have ended is late
		w.now += core.Time(w.r.IntN(30)) * 1e6
		for id, t := range w.endings {
			w.endings[id] = max(t, w.now+1)
		}
	case 6:
		w.submitArray()
	case 7:
		w.end()
	case 8: // an array may run more tasks at once, or fewer, whether it had a limit or not
		if j := some(core.Pending); j != nil && j.Array != nil {
			s := *j.Spec
			s.Throttle = int32(w.r.IntN(4))
			j.Spec = &s
			w.put(j)
		}
	default:
		w.submit()
	}
}

func (w *lawWorld) submitArray() {
	w.submit()
	j := *w.jobs[w.nextID]
	k := 1 + w.r.IntN(4)
	tasks, err := taskset.New(taskset.Range{Last: int32(k - 1), Step: 1})
	if err != nil {
		w.t.Fatal(err)
	}
	s := *j.Spec
	s.Throttle = int32(w.r.IntN(3))
	j.Spec, j.Array = &s, &core.ArrayRef{Base: j.ID, Tasks: tasks, Count: int32(k), Max: int32(k - 1)}
	w.put(&j)
}

// TestPlansAreKept: whatever happens, a planner kept up to date plans as one built cold, that goes through every job
// and every ending: with nodes that come, go and change, partitions of several tiers, jobs that name several of them,
// arrays, jobs that are late, and plans of which nothing is made.
func TestPlansAreKept(t *testing.T) {
	t.Parallel()
	for _, rule := range core.Rules {
		t.Run(rule.String(), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) {
				w := newLawWorld(rt, rule, rapid.Uint64().Draw(rt, "seed"), 3)
				tiers := w.r.IntN(2) == 0
				for i := range w.cfg.Partitions {
					if tiers {
						w.cfg.Partitions[i].PriorityTier = int32(w.r.IntN(2))
					}
				}
				w.p = New(w.cfg)
				w.p.nodes.TrackMinNodes, w.p.classWalkMinJobs = 0, 0
				w.p.Apply(Changes{Nodes: w.nodes})
				w.dress = func(s *core.Spec) {
					if w.r.IntN(3) == 0 {
						s.Partition = core.ParsePartitions(string([]core.PartitionName{"p1,p0", "p0,p2", "p2,p1"}[w.r.IntN(3)]))
					}
				}
				for range 60 {
					w.upset()
					switch w.r.IntN(4) {
					case 0:
					case 1:
						w.p.Pass(w.now)
					default:
						w.pass()
					}
				}
			})
		})
	}
}
