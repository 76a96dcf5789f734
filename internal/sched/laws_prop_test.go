package sched

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/ledger"
)

// lawWorld is a small cluster driven by chance: jobs arrive, start as planned and end at or before their limits.
type lawWorld struct {
	t       *rapid.T
	r       *rand.Rand
	cfg     Config
	p       *Planner
	now     core.Time
	nodes   []*core.Node
	jobs    map[core.JobID]*core.Job
	order   []core.JobID
	nextID  core.JobID
	endings map[core.JobID]core.Time // when each running job really ends
	wish    func(*core.Spec)         // what a job asks beside; nil: nothing
	exact   bool                     // all last as long as they may

	also    func() Changes               // what a cold planner is told beside nodes and jobs
	dress   func(*core.Spec)             // makes a spec what a law needs
	started func(*core.Job, *core.Alloc) // sees every start before it happens
}

func newLawWorld(t *rapid.T, rule core.Rule, seed uint64, parts int) *lawWorld {
	w := &lawWorld{
		t: t, r: rand.New(rand.NewPCG(seed, 3)), now: loadNow, jobs: map[core.JobID]*core.Job{},
		endings: map[core.JobID]core.Time{},
	}
	w.cfg = Config{Rule: rule, Hosts: func(list string) map[core.NodeName]bool {
		if list == "" {
			return nil
		}
		set := map[core.NodeName]bool{}
		for i := range list {
			set[core.NodeName(list[i:i+1])] = true
		}
		return set
	}}
	for i, nodes := range []string{"ALL", "abc", "cde"}[:parts] {
		w.cfg.Partitions = append(w.cfg.Partitions, core.Partition{
			Name:  core.PartitionName(fmt.Sprint("p", i)),
			Nodes: nodes,
		})
	}
	for i := range 2 + w.r.IntN(4) {
		n := &core.Node{
			ID: int64(i + 1), Name: core.NodeName(rune('a' + i)), Roles: core.Compute,
			Hardware: core.Hardware{CPUs: int32(2 + w.r.IntN(6)), Memory: core.Bytes(2+w.r.IntN(6)) * core.GiB},
		}
		if w.r.IntN(2) == 0 {
			n.Hardware.Gres = []core.Gres{{Name: "gpu", Type: "x", Count: int64(1 + w.r.IntN(2))}, {
				Name: "gpu", Type: "y",
				Count: 1,
			}}
		}
		w.nodes = append(w.nodes, n)
	}
	w.p = New(w.cfg)
	w.p.nodes.TrackMinNodes, w.p.classWalkMinJobs = 0, 0 // as on a large cluster with a long queue
	w.p.Apply(Changes{Nodes: w.nodes})
	return w
}

func (w *lawWorld) put(j *core.Job) {
	if w.jobs[j.ID] == nil {
		w.order = append(w.order, j.ID)
	}
	w.jobs[j.ID] = j
	w.p.Apply(Changes{Jobs: []*core.Job{j}})
}

func (w *lawWorld) submit() {
	w.nextID++
	part := core.ListPartitions(w.cfg.Partitions[w.r.IntN(len(w.cfg.Partitions))].Name)
	s := &core.Spec{Partition: part, TimeLimit: core.Seconds(10 * (1 +
		w.r.IntN(20)))}
	n := int32(1 + w.r.IntN(3)*w.r.IntN(2))
	s.Shape = core.Shape{
		NodesMin: n, NodesMax: n, Tasks: n * int32(1+w.r.IntN(2)), CPUsPerTask: int32(1 + w.r.IntN(3)),
		Exclusive: w.r.IntN(10) == 0,
	}
	switch w.r.IntN(4) {
	case 0:
		s.Shape.MemPerNode = core.Bytes(1+w.r.IntN(5)) * core.GiB
	case 1:
		s.Shape.Gres = []core.Gres{{Name: "gpu", Type: []string{"", "x"}[w.r.IntN(2)], Count: 1}}
	case 2:
		if w.r.IntN(4) == 0 {
			s.TimeLimit = core.Forever
		}
	}
	if w.dress != nil {
		w.dress(s)
	}
	if w.wish != nil {
		w.wish(s)
	}
	w.put(&core.Job{ID: w.nextID, State: core.Pending, Submit: w.now, Priority: uint32(w.r.IntN(3)), Spec: s})
}

// cold is a planner that is told all there is in another order: shuffled, in a few batches, whatever comes first.
func (w *lawWorld) cold() *Planner {
	cold := New(w.cfg)
	cold.nodes.TrackMinNodes, cold.classWalkMinJobs = 1<<30, 1<<30 // the plain way
	r := rand.New(rand.NewPCG(uint64(len(w.order)), uint64(w.now)))
	batches := make([]Changes, 3)
	if w.also != nil {
		c := w.also()
		c.Reservations = slices.Clone(c.Reservations)
		r.Shuffle(len(c.Reservations), func(i, k int) {
			c.Reservations[i], c.Reservations[k] = c.Reservations[k], c.Reservations[i]
		})
		batches[r.IntN(3)] = c
	}
	for _, i := range r.Perm(len(w.nodes)) {
		c := &batches[r.IntN(3)]
		c.Nodes = append(c.Nodes, w.nodes[i])
	}
	for _, i := range r.Perm(len(w.order)) {
		if j := w.jobs[w.order[i]]; j.Live() {
			c := &batches[r.IntN(3)]
			c.Jobs = append(c.Jobs, j)
		}
	}
	for _, c := range batches {
		cold.Apply(c)
	}
	return cold
}

// pass plans, holds the plan against that of a planner built cold, and starts what it says.
func (w *lawWorld) pass() *Plan {
	plan := w.p.Pass(w.now)
	fresh := w.cold().Pass(w.now)
	if a, b := w.render(plan), w.render(fresh); a != b {
		w.t.Fatalf("kept up to date:\n%s\nbuilt cold:\n%s", a, b)
	}
	for _, id := range w.order {
		if j := w.jobs[id]; j.State == core.Pending && plan.Reason(j) != fresh.Reason(j) {
			w.t.Fatalf("job %d waits because %+v; built cold, %+v", id, plan.Reason(j), fresh.Reason(j))
		}
	}
	if a, b := w.render(plan), w.render(w.p.Pass(w.now)); a != b {
		w.t.Fatalf("planned once:\n%s\nand again:\n%s", a, b)
	}
	check := ledger.New()
	check.SetRules(ledger.RulesOf(w.cfg.AllocUnit, w.cfg.Partitions, w.cfg.Hosts))
	for _, n := range w.nodes {
		check.SetNode(n)
	}
	book := func(j *core.Job, al *core.Alloc) {
		for i := range al.Nodes {
			if !check.Allocate(&al.Nodes[i], alloc.TermsOf(j.Spec, al)) {
				w.t.Fatalf("job %d is given what is not free: %+v", j.ID, al.Nodes[i])
			}
		}
	}
	for _, id := range w.order {
		if j := w.jobs[id]; j.State == core.Running {
			book(j, j.Alloc)
		}
	}
	for _, s := range all(plan.Starts) {
		j := *w.jobs[s.Job]
		book(&j, s.Alloc)
		if s.Array { // the task becomes a job of its own
			left, ref := j, *j.Array
			ref.Tasks = ref.Tasks.Remove(int(s.Task))
			if left.Array = &ref; ref.Tasks.Empty() {
				left.State, left.End = core.Completed, w.now
			}
			w.put(&left)
			w.nextID++
			j.ID, j.Array = w.nextID, &core.ArrayRef{Base: ref.Base, Task: s.Task, Count: ref.Count}
		}
		if s.TimeLimit > 0 {
			spec := *j.Spec
			spec.TimeLimit = s.TimeLimit
			j.Spec = &spec
		}
		if w.started != nil {
			w.started(&j, s.Alloc)
		}
		j.State, j.Start, j.Alloc = core.Running, w.now, s.Alloc
		w.put(&j)
		w.endings[j.ID] = alloc.AddTime(w.now, alloc.TimeLimit(j.Spec))
		if !w.exact && w.r.IntN(2) == 0 || j.Spec.TimeLimit == core.Forever {
			w.endings[j.ID] = w.now + core.Time(1+w.r.IntN(200))*1e6
		}
		w.endings[j.ID] = min(w.endings[j.ID], alloc.AddTime(w.now, alloc.TimeLimit(j.Spec)))
	}
	return plan
}

// render is all that a plan says, byte for byte.
func (w *lawWorld) render(p *Plan) string {
	s := fmt.Sprintf("wake %d heads %v expected %v on %v inside %v\n", p.WakeAt, p.heads, p.expected, p.reservedOn,
		p.advanceHeads)
	for _, part := range []any{all(p.Starts), p.Preempts, p.Provision} {
		text, err := json.Marshal(part)
		if err != nil {
			w.t.Fatal(err)
		}
		s += string(text) + "\n"
	}
	for _, id := range w.order {
		if j := w.jobs[id]; j.State == core.Pending {
			s += fmt.Sprintf("%d %+v\n", id, p.Reason(j))
		}
	}
	return s
}

// end lets the running jobs that are next to end, on time or early, do so.
func (w *lawWorld) end() {
	var first core.JobID
	for _, id := range w.order {
		if t, ok := w.endings[id]; ok && (first == 0 || t < w.endings[first]) {
			first = id
		}
	}
	if first == 0 {
		return
	}
	w.now = w.endings[first]
	for _, id := range w.order {
		if w.endings[id] == w.now {
			delete(w.endings, id)
			j := *w.jobs[id]
			j.State, j.End = core.Completed, w.now
			w.put(&j)
		}
	}
}

// TestReservationsHold: with no new arrivals, the first job of a queue starts no later than any plan has promised,
// whatever ends early and whatever is backfilled; and every job starts at last.
func TestReservationsHold(t *testing.T) {
	t.Parallel()
	for _, rule := range []core.Rule{core.RuleEASY, core.RuleEASYSJBF, core.RuleSJFEASY} {
		t.Run(rule.String(), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) {
				w := newLawWorld(rt, rule, rapid.Uint64().Draw(rt, "seed"), 1)
				for range 5 + w.r.IntN(30) {
					w.submit()
				}
				w.keepsPromises()
			})
		})
	}
}

// keepsPromises lets the jobs that are there run to their ends.
func (w *lawWorld) keepsPromises() {
	promised := map[core.JobID]core.Time{}
	for {
		plan := w.pass()
		for _, s := range plan.Starts {
			if at, ok := promised[s.Job]; ok && w.now > at {
				w.t.Fatalf("job %d starts at %d and was promised %d", s.Job, w.now, at)
			}
		}
		for id := range plan.expected {
			if at, _, ok := plan.Expected(id); ok {
				if was, had := promised[id]; had && at > was {
					w.t.Fatalf("job %d was promised %d and is now %d", id, was, at)
				}
				promised[id] = at
			}
		}
		if len(w.endings) == 0 {
			break
		}
		w.end()
	}
	w.allDone()
}

// allDone reports whether all that could start has.
func (w *lawWorld) allDone() {
	for _, id := range w.order {
		if j := w.jobs[id]; j.State == core.Pending && w.p.pending[id].class.reason() == nil {
			w.t.Fatalf("job %d never starts", id)
		}
	}
}

// TestPlansOfOverlappingPartitions lets jobs come and go on partitions that share nodes: nothing is given twice, and a
// planner kept up to date plans as one built cold.
func TestPlansOfOverlappingPartitions(t *testing.T) {
	t.Parallel()
	for _, rule := range core.Rules {
		t.Run(rule.String(), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) {
				w := newLawWorld(rt, rule, rapid.Uint64().Draw(rt, "seed"), 3)
				for range 40 {
					switch w.r.IntN(3) {
					case 0:
						w.end()
					default:
						w.submit()
					}
					w.pass()
				}
			})
		})
	}
}
