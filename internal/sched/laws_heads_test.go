package sched

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/alloc"
)

// newHeadsWorld is a lawWorld in which several jobs of each queue are promised a start.
func newHeadsWorld(t *rapid.T, rule core.Rule, heads int32, parts int) *lawWorld {
	w := newLawWorld(t, rule, rapid.Uint64().Draw(t, "seed"), parts)
	w.cfg.Reservations = heads
	w.p = New(w.cfg)
	w.p.nodes.TrackMinNodes, w.p.classWalkMinJobs = 0, 0
	w.p.Apply(Changes{Nodes: w.nodes})
	return w
}

// ruled runs a law for each rule that promises, with several promises a queue or, by the conservative rule, all.
func ruled(t *testing.T, law func(t *rapid.T, rule core.Rule, heads int32)) {
	t.Parallel()
	for _, tc := range []struct {
		rule  core.Rule
		heads int32
	}{{core.RuleEASY, 2}, {core.RuleEASY, 5}, {core.RuleEASYSJBF, 3}, {core.RuleSJFEASY, 3}, {core.RuleConservative, 0}} {
		t.Run(fmt.Sprintf("%v/%d", tc.rule, tc.heads), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) { law(rt, tc.rule, tc.heads) })
		})
	}
}

// TestAllPromisesHold: with no new arrivals, and while everything lasts as long as it may, no promised start moves
// back, however many there are: the plan goes as planned. (What ends early may let the first job of a queue start
// sooner where another was to be; so for the others what is promised is promised until then.) With all jobs promised,
// that is so on partitions that share nodes, too; else those behind the promised ones of one may start on nodes of
// another.
func TestAllPromisesHold(t *testing.T) {
	ruled(t, func(rt *rapid.T, rule core.Rule, heads int32) {
		parts := 1
		if rule == core.RuleConservative && heads == 0 {
			parts = 1 + rapid.IntRange(0, 2).Draw(rt, "more partitions")
		}
		w := newHeadsWorld(rt, rule, heads, parts)
		w.exact = true
		w.dress = func(s *core.Spec) { s.TimeLimit = min(s.TimeLimit, 500) }
		for range 5 + w.r.IntN(30) {
			w.submit()
		}
		w.keepsPromises()
	})
}

// TestFirstPromisesHold: whatever ends early, the first job of a queue starts no later than any plan has promised it as
// the first, and every job starts at last.
func TestFirstPromisesHold(t *testing.T) {
	ruled(t, func(rt *rapid.T, rule core.Rule, heads int32) {
		w := newHeadsWorld(rt, rule, heads, 1)
		for range 5 + w.r.IntN(30) {
			w.submit()
		}
		promised := map[core.JobID]core.Time{}
		for again := true; again; again = len(w.endings) > 0 {
			if len(w.endings) > 0 {
				w.end()
			}
			plan := w.pass()
			for _, s := range plan.Starts {
				if at, ok := promised[s.Job]; ok && w.now > at {
					rt.Fatalf("job %d starts at %d and was promised %d", s.Job, w.now, at)
				}
			}
			if id := plan.heads["p0"]; id != 0 {
				at, _, ok := plan.Expected(id)
				if was, had := promised[id]; had && (!ok || at > was) {
					rt.Fatalf("job %d was promised %d and is now %d", id, was, at)
				}
				if ok {
					promised[id] = at
				}
			}
		}
		w.allDone()
	})
}

// TestPromisesAreKeptFree: within a plan, on partitions that share nodes, what runs and starts now leaves every promise
// its nodes: if all lasts as long as it may and nothing else is started, each promised job can start when it is due.
func TestPromisesAreKeptFree(t *testing.T) {
	ruled(t, func(rt *rapid.T, rule core.Rule, heads int32) {
		w := newHeadsWorld(rt, rule, heads, 3)
		for range 25 {
			if w.r.IntN(3) == 0 {
				w.end()
			} else {
				w.submit()
			}
			w.due(w.pass())
		}
	})
}

// due holds the promises of a plan, whose starts have been made, against a planner that knows nobody else who waits:
// the promised jobs in the order they are due.
func (w *lawWorld) due(plan *Plan) {
	for id, at := range plan.expected {
		if j := w.jobs[id]; at != alloc.Never && j.State == core.Pending {
			alone := New(Config{
				Rule: core.RuleEASY, Partitions: w.cfg.Partitions, Hosts: w.cfg.Hosts, AllocUnit: w.cfg.AllocUnit,
			})
			alone.Apply(Changes{Nodes: w.nodes, Jobs: []*core.Job{j}})
			for _, o := range w.order {
				if o := w.jobs[o]; o.State == core.Running {
					alone.Apply(Changes{Jobs: []*core.Job{o}})
				}
			}
			sole := alone.Pass(w.now)
			if then, ok := sole.expected[id]; len(sole.Starts) == 0 && (!ok || then > at) {
				w.t.Fatalf("job %d is promised %d, and even without others that wait it could not start before %d", id, at, then)
			}
		}
	}
}
