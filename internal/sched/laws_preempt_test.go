package sched

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/ledger"
	"bireme.dev/bireme/internal/sched/preempt"
)

// pushWorld is a lawWorld in which jobs push others aside.
type pushWorld struct {
	*lawWorld
	table   *preempt.Rules
	modes   []core.PreemptMode
	typed   bool // what takes units of any type may take others than it was promised, when they have come free by then
	pushes  int
	lastFor map[core.JobID]core.JobID
}

func newPushWorld(t *rapid.T, seed uint64, kind core.PreemptType, modes ...core.PreemptMode) *pushWorld {
	w := &pushWorld{lawWorld: newLawWorld(t, core.RuleEASY, seed, 3), modes: modes, lastFor: map[core.JobID]core.JobID{}}
	for i := range w.cfg.Partitions {
		w.cfg.Partitions[i].PriorityTier = int32(w.r.IntN(3))
		w.cfg.Partitions[i].Grace = core.Seconds(w.r.IntN(2) * 30)
		if kind == core.PreemptByTier {
			w.cfg.Partitions[i].PreemptMode = w.mode()
		}
	}
	qos := []*core.QOS{
		{Name: "low", Priority: 1, Grace: core.Seconds(w.r.IntN(2) * 20)},
		{Name: "mid", Priority: 5, Preempt: []core.QOSName{"low"}, PreemptExempt: core.Seconds(w.r.IntN(2) * 40)},
		{Name: "high", Priority: 9, Preempt: []core.QOSName{"low", "mid"}},
	}
	for _, q := range qos {
		q.PreemptMode = w.mode()
	}
	cfg := core.Preemption{Type: kind, Mode: w.mode(), Order: []core.PreemptOrder{
		core.LeastLost, core.Youngest,
		core.Smallest,
	}[w.r.IntN(3)]}
	w.table = preempt.NewRules(cfg, w.cfg.Partitions, qos)
	w.cfg.Preemption = w.table
	w.p = New(w.cfg)
	w.p.Apply(Changes{Nodes: w.nodes})
	return w
}

func (w *pushWorld) mode() core.PreemptMode { return w.modes[w.r.IntN(len(w.modes))] }

func (w *pushWorld) submit() {
	w.lawWorld.submit()
	j := *w.jobs[w.nextID]
	s := *j.Spec
	s.QOS = []core.QOSName{"low", "mid", "high"}[w.r.IntN(3)]
	s.Requeue = w.r.IntN(4) > 0
	if s.TimeLimit == core.Forever {
		s.TimeLimit = 50
	}
	if len(s.Shape.Gres) > 0 && w.typed {
		s.Shape.Gres = []core.Gres{{Name: "gpu", Type: "x", Count: 1}}
	}
	j.Spec = &s
	w.put(&j)
}

// pass plans, checks the plan as the laws of a lawWorld do, and carries it out.
func (w *pushWorld) pass() *Plan {
	plan := w.p.Pass(w.now)
	cold := w.cold()
	if a, b := w.render(plan), w.render(cold.Pass(w.now)); a != b {
		w.t.Fatalf("kept up to date:\n%s\nbuilt cold:\n%s", a, b)
	}
	if a, b := w.render(plan), w.render(w.p.Pass(w.now)); a != b {
		w.t.Fatalf("planned once:\n%s\nand again:\n%s", a, b)
	}
	if a, b := w.p.ledgerText(), cold.ledgerText(); a != b {
		w.t.Fatalf("the ledger of a planner kept up to date:\n%s\nbuilt cold:\n%s", a, b)
	}
	for _, pr := range plan.Preempts {
		w.preempt(pr)
	}
	for _, s := range plan.Starts {
		w.start(s)
	}
	w.checkTaken()
	return plan
}

// ledgerText tells what is free everywhere.
func (p *Planner) ledgerText() (t string) {
	for _, a := range p.ledger.Order {
		t += fmt.Sprintf("%s %+v %v\n", a.Record.Name, a.Free, a.FreeCPUs)
	}
	return t
}

func (w *pushWorld) preempt(pr Preempt) {
	v, j := *w.jobs[pr.Job], w.jobs[pr.For]
	how, ok := w.table.MayPreempt(j, pr.Partition, &v, w.now)
	if !ok || how.How == core.PreemptSuspend {
		w.t.Fatalf("job %d is preempted for %d: %v %v", pr.Job, pr.For, ok, how)
	}
	if w.lastFor[j.ID] == v.ID {
		w.t.Fatalf("job %d was preempted by %d and pushes it aside now", j.ID, v.ID)
	}
	w.lastFor[v.ID] = j.ID
	w.pushes++
	times := int32(1)
	if v.Pushed != nil {
		times += v.Pushed.Times
	}
	v.Pushed = &core.Pushed{For: j.ID, At: w.now, Mode: how.How, Until: w.now.Add(how.Grace.Duration()), Times: times}
	if v.End = w.now; how.How == core.PreemptRequeue {
		v.Flags |= core.Requeueing
	} else {
		v.State = core.Preempted
		v.Flags |= core.Completing
	}
	w.put(&v)
	w.endings[v.ID] = w.now + core.Time(w.r.IntN(int(how.Grace)+2))*1e6
	first, room := *j, core.Room{Seq: int64(w.pushes)}
	if j.Room != nil {
		room = *j.Room
	}
	room.Starts, room.By = pr.Starts, max(room.By, v.Pushed.Until)
	room.Nodes = append(slices.Clone(room.Nodes), pr.Nodes...)
	first.Room = &room
	w.put(&first)
}

func (w *pushWorld) start(s Start) {
	j := *w.jobs[s.Job]
	end := alloc.AddTime(w.now, alloc.TimeLimit(j.Spec))
	for _, x := range s.Suspends {
		v := *w.jobs[x.Job]
		if how, ok := w.table.MayPreempt(&j, s.Alloc.Partition, &v, w.now); !ok || how.How != core.PreemptSuspend {
			w.t.Fatalf("job %d is suspended for %d: %v %v", v.ID, j.ID, ok, how)
		}
		pushed := core.Pushed{For: j.ID, At: w.now, Mode: core.PreemptSuspend}
		if v.Parked() {
			pushed.Lent = slices.Clone(v.Pushed.Lent)
		} else {
			v.State, v.Paused = core.Suspended, w.now
			w.endings[v.ID] -= w.now // what is left of it
		}
		pushed.Lent = append(pushed.Lent, x.Lent...)
		v.Pushed = &pushed
		w.put(&v)
	}
	j.State, j.Start, j.Alloc, j.Room = core.Running, w.now, s.Alloc, nil
	w.put(&j)
	if w.endings[j.ID] = end; w.r.IntN(2) == 0 {
		w.endings[j.ID] = min(end, w.now+core.Time(1+w.r.IntN(200))*1e6)
	}
}

// checkTaken counts from the records alone what every node has given away.
func (w *pushWorld) checkTaken() {
	check := ledger.New()
	for _, n := range w.nodes {
		check.SetNode(n)
	}
	// what lent all of its CPUs of a node is not in the way of whoever has the node
	for _, parked := range []bool{true, false} {
		for _, id := range w.order {
			j := w.jobs[id]
			if j.Alloc == nil || !j.Live() || j.Parked() != parked {
				continue
			}
			al, terms := alloc.Occupied(j)
			for i := range al.Nodes {
				if !check.Allocate(&al.Nodes[i], terms) {
					w.t.Fatalf("job %d has what is not free: %+v", j.ID, al.Nodes[i])
				}
			}
		}
	}
}

// end lets the next thing happen: a job ends, or one that was preempted is gone.
func (w *pushWorld) end() bool {
	var first core.JobID
	for _, id := range w.order {
		if t, ok := w.endings[id]; ok && w.jobs[id].State != core.Suspended && (first == 0 || t < w.endings[first]) {
			first = id
		}
	}
	if first == 0 {
		return false
	}
	w.now = max(w.now, w.endings[first])
	w.gone(first)
	return true
}

func (w *pushWorld) gone(id core.JobID) {
	delete(w.endings, id)
	j := *w.jobs[id]
	switch {
	case j.Flags.Has(core.Requeueing):
		j.State, j.Flags, j.Alloc, j.Start, j.End, j.Submit = core.Pending, 0, nil, 0, 0, w.now
		j.Pushed = &core.Pushed{For: j.Pushed.For, Times: j.Pushed.Times}
	case j.State.Final():
		j.Flags = 0
	default:
		j.State, j.End = core.Completed, w.now
	}
	w.put(&j)
	for _, v := range w.order { // what it had borrowed goes back
		if v := w.jobs[v]; v.Parked() && v.Live() {
			next, pushed := *v, *v.Pushed
			pushed.Lent = slices.DeleteFunc(slices.Clone(pushed.Lent), func(l core.Lent) bool { return l.To == id })
			if len(pushed.Lent) == len(v.Pushed.Lent) {
				continue
			}
			next.Pushed = &pushed
			if len(pushed.Lent) == 0 {
				next.State = core.Running
				next.PausedFor += w.now.Sub(v.Paused)
				next.Paused = 0
				w.endings[v.ID] += w.now
			}
			w.put(&next)
		}
	}
}

var pushKinds = []struct {
	name  string
	kind  core.PreemptType
	modes []core.PreemptMode
}{
	{"requeue by qos", core.PreemptByQOS, []core.PreemptMode{core.PreemptRequeue, core.PreemptCancel}},
	{"suspend by qos", core.PreemptByQOS, []core.PreemptMode{core.PreemptSuspend}},
	{"any by qos", core.PreemptByQOS, []core.PreemptMode{
		core.PreemptRequeue, core.PreemptSuspend, core.PreemptCancel,
		"requeue,priority", "suspend,within", "requeue,within",
	}},
	{"any by tier", core.PreemptByTier, []core.PreemptMode{
		core.PreemptRequeue, core.PreemptSuspend, core.PreemptCancel,
		core.PreemptOff,
	}},
}

// TestPushingAside: whatever is preempted, nothing is given twice, a planner kept up to date plans as one built cold,
// nobody preempts the one who made it go, and when no more jobs come, all of them end: nobody starves and no two take
// turns forever.
func TestPushingAside(t *testing.T) {
	t.Parallel()
	for _, k := range pushKinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) {
				w := newPushWorld(rt, rapid.Uint64().Draw(rt, "seed"), k.kind, k.modes...)
				for range 40 {
					if w.r.IntN(3) > 0 || !w.end() {
						w.submit()
					}
					w.pass()
				}
				for n := 0; w.end(); n++ {
					if n > 40*40 {
						rt.Fatalf("after %d ends and %d times that somebody was preempted, jobs still start", n, w.pushes)
					}
					w.pass()
				}
				for _, id := range w.order {
					if j := w.jobs[id]; j.Live() && (j.State != core.Pending || w.p.pending[id].class.reason() == nil) {
						rt.Fatalf("job %d stays %s", id, j.State)
					}
				}
			})
		})
	}
}

// TestPushedForSomething: when those who were preempted are gone and nothing else happened, every job they had to leave
// for starts, or has what it was promised, and no more leave for it.
func TestPushedForSomething(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := newPushWorld(rt, rapid.Uint64().Draw(rt, "seed"), core.PreemptByQOS, core.PreemptRequeue, core.PreemptCancel)
		w.typed = true
		for range 40 {
			if w.r.IntN(4) > 0 || !w.end() {
				w.submit()
			}
			plan := w.pass()
			if len(plan.Preempts) == 0 {
				continue
			}
			for _, id := range w.order { // those, and all others that are on their way out
				if j := w.jobs[id]; j.Live() && j.Alloc != nil && (alloc.IsOver(j) ||
					alloc.LatestEnd(j) <= w.now+alloc.OverdueDelay) {
					w.gone(id)
				}
			}
			next := w.pass()
			for _, pr := range next.Preempts {
				if slices.ContainsFunc(plan.Preempts, func(o Preempt) bool { return o.For == pr.For }) {
					rt.Fatalf("more jobs leave for job %d: %s\n%s", pr.For, w.render(plan), w.render(next))
				}
			}
			for _, pr := range plan.Preempts {
				if slices.ContainsFunc(next.Starts, func(s Start) bool { return s.Job == pr.For }) {
					continue
				}
				// What may still run there ends before the time that was promised.
				if at, ok := next.expected[pr.For]; !ok || at > max(plan.expected[pr.For], w.now+alloc.OverdueDelay) {
					rt.Fatalf("job %d left for job %d, which does not start: %s\n%s", pr.Job, pr.For, w.render(plan), w.render(next))
				}
			}
		}
	})
}
