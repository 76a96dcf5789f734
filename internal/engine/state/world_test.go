package state

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/charge"
	"bireme.dev/bireme/internal/engine/state/usage"
	"bireme.dev/bireme/internal/policy"
	"bireme.dev/bireme/internal/sched"
	"bireme.dev/bireme/internal/sched/alloc"
)

// failer is the part of testing.TB that rapid's T has too.
type failer interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
}

// world drives a State and a Planner as the engine does, keeps what a store would keep, and checks the laws as it goes.
type world struct {
	jobStates  map[core.JobID]core.JobState // as last seen, see checkTransitions
	stepStates map[[2]int64]core.JobState
	runStates  map[string]runState

	t    failer
	cfg  Config
	st   *State
	plan *sched.Plan
	p    *sched.Planner
	now  core.Time
	disk disk
	seq  int64 // of the last event seen

	before int64 // events before the first one seen

	onFlush  func(*core.Changes)
	onStart  func(core.JobID)
	trace    bool
	want     core.Policy // what a script applies
	batching bool        // several inputs go into one batch
	log      *commandLog // nil unless commands are recorded for the oracle
}

// disk is what a store would have: rows by key.
type disk struct {
	next     core.JobID
	nextNode int64
	lastIDs  core.LastIDs
	now      core.Time
	jobs     map[core.JobID]*core.Job
	specs    map[core.JobID]*core.Spec
	steps    map[[2]int64]*core.Step
	nodes    map[core.NodeName]*core.Node
	users    map[core.UserName]*core.User
	projects map[core.ProjectName]*core.Project
	spent    map[usage.Key]*core.Spent
	tokens   map[string]*core.Token
	runs     map[string]*core.Run
	keys     map[string]core.SubmitKey

	qos          map[core.QOSName]*core.QOS
	reservations map[string]*core.AdvanceReservation
	fleets       map[string]*core.Fleet
	volumes      map[core.VolumeKey]*core.Volume
}

const epoch = core.Time(1_700_000_000_000_000)

func newWorld(t failer, cfg Config) *world {
	w := &world{t: t, cfg: cfg, now: epoch, disk: disk{
		jobs: map[core.JobID]*core.Job{}, specs: map[core.JobID]*core.Spec{}, steps: map[[2]int64]*core.Step{},
		nodes: map[core.NodeName]*core.Node{}, users: map[core.UserName]*core.User{},
		projects: map[core.ProjectName]*core.Project{},
		spent:    map[usage.Key]*core.Spent{}, tokens: map[string]*core.Token{}, runs: map[string]*core.Run{},
		keys: map[string]core.SubmitKey{},
		qos:  map[core.QOSName]*core.QOS{}, reservations: map[string]*core.AdvanceReservation{},
		fleets: map[string]*core.Fleet{}, volumes: map[core.VolumeKey]*core.Volume{},
	}}
	w.log = newCommandLog(t, cfg)
	w.st = New(cfg, &Image{})
	w.p = w.planner(w.st.All())
	w.st.Advance(w.now)
	return w
}

func (w *world) planner(all sched.Changes) *sched.Planner {
	p := sched.New(PlannerConfig(w.cfg))
	p.Apply(all)
	return p
}

// do applies one input and flushes, as a lone command would be.
func (w *world) do(in Input) (any, error) {
	w.t.Helper()
	reply, err := w.apply(in)
	if w.trace {
		w.t.Logf("%T %s: %v", in, asJSON(w.t, in), err)
	}
	if !w.batching {
		w.flush(err)
	}
	return reply, err
}

func (w *world) apply(in Input) (any, error) {
	w.log.input(in, w.st.Now())
	before := w.nodeFlags()
	reply, err := w.st.Apply(in)
	w.checkNodeFlags(in, before)
	return reply, err
}

// must is do for inputs that cannot fail.
func (w *world) must(in Input) any {
	w.t.Helper()
	reply, err := w.do(in)
	if err != nil {
		w.t.Fatalf("%T: %v", in, err)
	}
	return reply
}

func (w *world) flush(err error) {
	w.t.Helper()
	w.log.flush()
	forPlanner := w.st.PlannerChanges()
	c := w.st.Flush()
	w.checkTransitions(forPlanner.Jobs, c.Steps, c.Runs)
	if err != nil && !c.Empty() {
		w.t.Fatalf("an input that failed (%v) changed something: %s", err, asJSON(w.t, c))
	}
	if w.onFlush != nil {
		w.onFlush(c)
	}
	for _, e := range c.Events {
		if w.seq++; e.Seq != w.seq+w.before {
			w.t.Fatalf("event %s has number %d after %d", e.Kind, e.Seq, w.seq+w.before-1)
		}
	}
	w.disk.write(w.t, c)
	if forPlanner.NewConfig != nil {
		w.p = sched.New(*forPlanner.NewConfig)
	}
	w.p.Apply(forPlanner)
}

func (w *world) advance(to core.Time) {
	w.now = to
	w.st.Advance(to)
	w.must(&Tick{})
}

// pass plans, and applies the plan. Only within a batch may a start be refused: the planner has not seen all of it.
func (w *world) pass() []Started {
	w.t.Helper()
	w.plan = w.p.Pass(w.now)
	var out []Started
	for i := range w.plan.Preempts {
		if _, err := w.apply(PreemptOf(&w.plan.Preempts[i])); err != nil && !w.batching {
			w.t.Fatalf("the plan's %+v was refused: %v", w.plan.Preempts[i], err)
		}
	}
	for i := range w.plan.Starts {
		s := &w.plan.Starts[i]
		reply, err := w.apply(StartOf(s))
		if err != nil {
			if !w.batching {
				w.t.Fatalf("the plan's start of %d was refused: %v", s.Job, err)
			}
			continue
		}
		id := reply.(*Started).ID
		out = append(out, Started{ID: id})
		w.checkStart(id)
		if w.onStart != nil {
			w.onStart(id)
		}
		for k := range s.Rest {
			out = append(out, Started{ID: s.Rest[k].Job})
			w.checkStart(s.Rest[k].Job)
		}
	}
	if !w.batching {
		w.flush(nil)
	}
	return out
}

func asJSON(t failer, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// through sends a record through JSON, so that nothing but its named fields survives.
func through[T any](t failer, v *T) *T {
	t.Helper()
	out := new(T)
	if err := json.Unmarshal([]byte(asJSON(t, v)), out); err != nil {
		t.Fatal(err)
	}
	return out
}

func (d *disk) write(t failer, c *core.Changes) {
	t.Helper()
	for _, s := range c.Specs {
		if _, there := d.specs[s.ID]; there {
			t.Fatalf("spec %d is written twice", s.ID)
		}
		d.specs[s.ID] = through(t, s.Spec)
	}
	for _, j := range c.Jobs {
		row := *j
		row.Spec = nil
		spec := d.specs[j.SpecID]
		if diff := cmp.Diff(spec, through(t, j.Spec)); diff != "" {
			t.Fatalf("job %d is not stored with the spec it has:\n%s", j.ID, diff)
		}
		if j.ID >= c.NextJob {
			t.Fatalf("job %d is written while the next id is %d", j.ID, c.NextJob)
		}
		d.jobs[j.ID] = through(t, &row)
	}
	for _, s := range c.Steps {
		d.steps[[2]int64{int64(s.Job), int64(s.ID)}] = through(t, s)
	}
	for _, n := range c.GoneNodes {
		delete(d.nodes, n)
	}
	for _, n := range c.Nodes {
		d.nodes[n.Name] = through(t, n)
	}
	for _, n := range c.GoneUsers {
		delete(d.users, n)
	}
	for _, id := range c.GoneTokens {
		delete(d.tokens, id)
	}
	for _, u := range c.Users {
		d.users[u.Name] = through(t, u)
	}
	for _, n := range c.GoneProjects {
		delete(d.projects, n)
		maps.DeleteFunc(d.spent, func(k usage.Key, _ *core.Spent) bool { return k.Project == n })
	}
	for _, n := range c.GoneQOS {
		delete(d.qos, n)
	}
	for _, n := range c.GoneReservations {
		delete(d.reservations, n)
	}
	for _, n := range c.GoneFleets {
		delete(d.fleets, n)
	}
	for _, k := range c.GoneVolumes {
		delete(d.volumes, k)
	}
	for _, v := range c.Volumes {
		d.volumes[v.Key()] = through(t, v)
	}
	for _, f := range c.Fleets {
		d.fleets[f.Name] = through(t, f)
	}
	for _, q := range c.QOS {
		d.qos[q.Name] = through(t, q)
	}
	for _, r := range c.Reservations {
		d.reservations[r.Name] = through(t, r)
	}
	for _, p := range c.Projects {
		d.projects[p.Name] = through(t, p)
	}
	for _, x := range c.Spent {
		d.spent[usage.Key{Project: x.Project, User: x.User}] = through(t, x)
	}
	for _, k := range c.Tokens {
		row := *k
		d.tokens[k.ID] = &row
	}
	for _, r := range c.Runs {
		d.runs[r.ID] = through(t, r)
	}
	for _, k := range c.Keys {
		if old, there := d.keys[k.Key]; there {
			t.Fatalf("submit key %q made job %d and %d", k.Key, old.Job, k.Job)
		}
		d.keys[k.Key] = k
	}
	d.next, d.nextNode, d.now = c.NextJob, c.NextNode, max(d.now, c.Now)
	if c.LastIDs != nil {
		d.lastIDs = *c.LastIDs
	}
}

// image is what a store would load.
func (w *world) image() *Image {
	d := &w.disk
	img := &Image{Seq: w.seq, NextJob: d.next, NextNode: d.nextNode, LastIDs: d.lastIDs, Now: d.now}
	for _, id := range slices.Sorted(maps.Keys(d.jobs)) {
		j := *d.jobs[id]
		if !j.Live() {
			continue
		}
		j.Spec = d.specs[j.SpecID]
		img.Jobs = append(img.Jobs, &j)
	}
	keys := slices.SortedFunc(maps.Keys(d.steps), func(a, b [2]int64) int { return slices.Compare(a[:], b[:]) })
	for _, k := range keys {
		if j := d.jobs[core.JobID(k[0])]; j.Live() {
			img.Steps = append(img.Steps, d.steps[k])
		}
	}
	img.Nodes = slices.SortedFunc(maps.Values(d.nodes), func(a, b *core.Node) int { return int(a.ID - b.ID) })
	for _, n := range slices.Sorted(maps.Keys(d.users)) {
		img.Users = append(img.Users, d.users[n])
	}
	for _, n := range slices.Sorted(maps.Keys(d.projects)) {
		img.Projects = append(img.Projects, d.projects[n])
	}
	for _, v := range d.volumes {
		img.Volumes = append(img.Volumes, v)
	}
	for _, n := range slices.Sorted(maps.Keys(d.qos)) {
		img.QOS = append(img.QOS, d.qos[n])
	}
	for _, n := range slices.Sorted(maps.Keys(d.reservations)) {
		img.Reservations = append(img.Reservations, d.reservations[n])
	}
	for _, n := range slices.Sorted(maps.Keys(d.fleets)) {
		img.Fleets = append(img.Fleets, d.fleets[n])
	}
	for _, x := range d.spent {
		img.Spent = append(img.Spent, x)
	}
	for _, n := range slices.Sorted(maps.Keys(d.tokens)) {
		img.Tokens = append(img.Tokens, d.tokens[n])
	}
	for _, n := range slices.Sorted(maps.Keys(d.runs)) {
		if d.runs[n].Ended == 0 {
			img.Runs = append(img.Runs, d.runs[n])
		}
	}
	for _, k := range slices.Sorted(maps.Keys(d.keys)) {
		img.Keys = append(img.Keys, d.keys[k])
	}
	return img
}

// check holds the world to its laws: no resource twice, and a restart changes nothing.
func (w *world) check() {
	w.t.Helper()
	w.checkPerUser()
	w.checkResources()
	w.checkHets()
	w.checkRestart()
}

// checkResources counts, from the records alone, what every node has given away.
func (w *world) checkResources() {
	w.t.Helper()
	type unit struct {
		node core.NodeName
		what string
		n    int32
	}
	taken := map[unit]core.JobID{}
	shared := map[unit]int32{}
	jobs := map[core.NodeName]int{}
	var whole []core.NodeName
	take := func(u unit, id core.JobID) {
		if by, ok := taken[u]; ok {
			w.t.Fatalf("%s %d of %s belongs to jobs %d and %d", u.what, u.n, u.node, by, id)
		}
		taken[u] = id
	}
	for j := range w.st.Snapshot().Jobs() {
		if !j.Live() {
			w.t.Fatalf("job %d is in memory and not live", j.ID)
		}
		least := max(1, j.Spec.Shape.NodesMin)
		if j.Spec.NoKill() { // it goes on with what is left
			least = 1
		}
		if j.State == core.Running && (j.Alloc == nil || len(j.Alloc.Nodes) < int(least)) {
			w.t.Fatalf("job %d runs on %v and asked for %d nodes", j.ID, j.Alloc, j.Spec.Shape.NodesMin)
		}
		if j.Alloc == nil {
			continue
		}
		tasks := int32(0)
		al, terms := alloc.Occupied(j)
		for i := range al.Nodes {
			na := &al.Nodes[i]
			tasks += na.Tasks
			if na.Done {
				continue
			}
			if na.CPUs > 0 { // else it has lent them all
				jobs[na.Node]++
			}
			if terms.Exclusive {
				whole = append(whole, na.Node)
			}
			if int(na.CPUs) != len(na.Cores) {
				w.t.Fatalf("job %d has %d CPUs on %s and cores %v", j.ID, na.CPUs, na.Node, na.Cores)
			}
			for _, c := range na.Cores {
				u := unit{na.Node, "core", c}
				if shared[u]++; terms.MaxSharing <= 1 || shared[u] == 1 {
					take(u, j.ID)
				} else if shared[u] > terms.MaxSharing {
					w.t.Fatalf("core %d of %s has %d jobs; job %d shares with %d", c, na.Node, shared[u], j.ID, terms.MaxSharing)
				}
			}
			for _, g := range na.Gres {
				for _, u := range g.Units {
					take(unit{na.Node, g.Name, u}, j.ID)
				}
			}
		}
		if tasks < j.Spec.Shape.Tasks && !j.Spec.NoKill() {
			w.t.Fatalf("job %d asked for %d tasks and has %d", j.ID, j.Spec.Shape.Tasks, tasks)
		}
	}
	for _, n := range whole {
		if jobs[n] > 1 {
			w.t.Fatalf("%s is given whole to a job and has %d", n, jobs[n])
		}
	}
}

// checkStart holds a job that just started against what its nodes have.
func (w *world) checkStart(id core.JobID) {
	w.t.Helper()
	v := w.st.Snapshot()
	j, _ := v.Job(id)
	for i := range j.Alloc.Nodes {
		na := &j.Alloc.Nodes[i]
		n, _ := v.Node(na.Node)
		if !n.Usable() {
			w.t.Fatalf("job %d started on %s, which is not up", id, n.Name)
		}
		mem := core.Bytes(0)
		for _, o := range v.OnNode(n.Name) {
			for k := range o.Alloc.Nodes {
				if o.Alloc.Nodes[k].Node == n.Name {
					mem += o.Alloc.Nodes[k].Mem
				}
			}
		}
		if mem > n.Hardware.Memory {
			w.t.Fatalf("job %d started on %s, which now gives %d bytes of %d", id, n.Name, mem, n.Hardware.Memory)
		}
		for _, c := range na.Cores {
			if c >= n.Hardware.CPUs {
				w.t.Fatalf("job %d has core %d of %s, which has %d", id, c, n.Name, n.Hardware.CPUs)
			}
		}
		w.checkGres(j, na)
		for _, g := range na.Gres {
			for _, u := range g.Units {
				if !slices.ContainsFunc(n.Hardware.Kinds(), func(k core.Kind) bool {
					return k.Name == g.Name && k.Type == g.Type && slices.Contains(k.Index, u)
				}) {
					w.t.Fatalf("job %d has %s:%s %d of %s, which has %v", id, g.Name, g.Type, u, n.Name, n.Hardware.Gres)
				}
			}
		}
	}
}

// checkGres holds what a job has of each kind against what it asked for.
func (w *world) checkGres(j *core.Job, na *core.NodeAlloc) {
	w.t.Helper()
	var has []core.Gres
	for _, g := range na.Gres {
		has = append(has, core.Gres{Name: g.Name, Type: g.Type, Count: int64(len(g.Units))})
	}
	all := func(list []core.Gres, name string) (n int64) {
		for _, g := range list {
			if g.Name == name {
				n += g.Count
			}
		}
		return n
	}
	for _, g := range j.Spec.Shape.Gres {
		short := g.Type != "" && sumGres(has, g.Name, g.Type) < sumGres(j.Spec.Shape.Gres, g.Name, g.Type)
		if want := all(j.Spec.Shape.Gres, g.Name); short || all(has, g.Name) < want || all(has, g.Name) > want &&
			!alloc.TermsOf(j.Spec, j.Alloc).Exclusive && j.Spec.Shape.More == nil {
			w.t.Fatalf("job %d asked for %v and has %v on %s", j.ID, j.Spec.Shape.Gres, has, na.Node)
		}
	}
}

func sumGres(list []core.Gres, name, typ string) (n int64) {
	for _, g := range list {
		if g.Name == name && g.Type == typ {
			n += g.Count
		}
	}
	return n
}

var records = cmp.Options{
	cmpopts.EquateEmpty(),
	cmp.Exporter(func(reflect.Type) bool { return true }),
	cmp.FilterPath(func(p cmp.Path) bool { // of a ledger: a counter, and what choices keep
		f := p.Last().String()
		return f == ".Version" || f == ".positionsAt" || f == ".unconnected" || f == ".Position"
	}, cmp.Ignore()),
}

// checkRestart builds a state from what was written and holds it against the live one.
func (w *world) checkRestart() {
	w.t.Helper()
	img := w.image()
	again := New(w.cfg, img)
	again.Advance(w.now)
	a, b := w.st.Snapshot(), again.Snapshot()
	opts, plan := records, again.All()
	if w.cfg.Priority != nil { // priorities are worked out again after a restart; see checkRanks
		opts = append(slices.Clip(opts), cmpopts.IgnoreFields(core.Job{}, "Priority"))
		plan = w.st.All()
	}
	w.checkRanks()
	w.checkUsage(again)
	differ := func(what string, x, y any) {
		w.t.Helper()
		if diff := cmp.Diff(x, y, opts); diff != "" {
			w.t.Fatalf("%s: live (-) and after a restart (+):\n%s", what, diff)
		}
	}
	differ("jobs", slices.Collect(a.Jobs()), slices.Collect(b.Jobs()))
	differ("nodes", slices.Collect(a.Nodes()), slices.Collect(b.Nodes()))
	for j := range a.Jobs() {
		differ(fmt.Sprintf("steps of %d", j.ID), a.Steps(j.ID), b.Steps(j.ID))
		if j.Array != nil {
			base := j.Array.Base
			differ(fmt.Sprintf("tasks of %d", base), w.st.cluster.Tasks(base), again.cluster.Tasks(base))
		}
	}
	differ("users", a.Users(), b.Users())
	differ("projects", a.Projects(), b.Projects())
	differ("QOS", a.AllQOS(), b.AllQOS())
	differ("reservations", a.Reservations(), b.Reservations())
	differ("fleets", a.Fleets(), b.Fleets())
	differ("tokens", a.Tokens(), b.Tokens())
	differ("runs", a.Runs(), b.Runs())
	differ("ledger", w.st.cluster.Ledger, again.cluster.Ledger)
	differ("timed", w.st.deadlines.All(), again.deadlines.All())
	differ("licenses", w.st.cluster.LicensesUsed, again.cluster.LicensesUsed)
	if w.cfg.Priority == nil {
		differ("wake", w.st.NextWake(), again.NextWake())
	}
	differ("keys", w.st.submitKeys.All(), again.submitKeys.All())
	differ("who waits for whom", w.st.dependencies.Index().Dependents, again.dependencies.Index().Dependents)
	differ("who waits alone", w.st.dependencies.Index().Singletons, again.dependencies.Index().Singletons)
	differ("who uses whose CPUs", w.st.preemption.Lenders(), again.preemption.Lenders())
	for n := range a.Nodes() {
		differ("jobs on "+string(n.Name), w.st.cluster.JobIDsOn(n.Name), again.cluster.JobIDsOn(n.Name))
	}
	differ("counters", w.st.rec.Counters(), again.rec.Counters())
	differ("live jobs", w.st.counts.Live(), again.counts.Live())
	w.samePlan(plan)
}

// checkUsage holds what everybody used against what a restart makes of it, and rates against what runs.
func (w *world) checkUsage(again *State) {
	w.t.Helper()
	a, b := w.st.rec.Usage().List(), again.rec.Usage().List()
	if len(a) != len(b) {
		w.t.Fatalf("%d spenders, after a restart %d", len(a), len(b))
	}
	for at, x := range a {
		k := usage.Key{Project: x.Project, User: x.User}
		same := func(what string, x, y float64) {
			w.t.Helper()
			if math.Abs(x-y) > 1e-6*(1+x) {
				w.t.Fatalf("%v used %s %v, after a restart %v", k, what, x, y)
			}
		}
		was, is := w.st.rec.Usage().Decay.Read(x, w.now), again.rec.Usage().Decay.Read(b[at], w.now)
		for what, p := range map[string][2]*policy.Reading{"in all": {&was.All, &is.All}} {
			same(what, p[0].Raw, p[1].Raw)
			same(what+" wall", p[0].Wall, p[1].Wall)
		}
		if len(was.QOS) != len(is.QOS) || x.All.RawRate != is.All.RawRate {
			w.t.Fatalf("%v: %+v, after a restart %+v", k, was, is)
		}
		for i := range was.QOS {
			same("with "+string(was.QOS[i].Name), was.QOS[i].Raw, is.QOS[i].Raw)
		}
		wall := int64(0)
		for j := range w.st.Snapshot().Jobs() {
			if charge.IsCharged(j) && j.Spec.Project == k.Project && j.Spec.User == k.User {
				wall += int64(math.Round(w.st.rec.QOSByName()[j.Spec.QOS].Factor() * policy.Micro))
			}
		}
		if wall != x.All.WallRate {
			w.t.Fatalf("%v pays for %d millionths of a job and has %d", k, x.All.WallRate, wall)
		}
	}
}

// checkRanks holds every job to having a priority unless it is held. One that is held may have been given one.
func (w *world) checkRanks() {
	w.t.Helper()
	for j := range w.st.Snapshot().Jobs() {
		if j.State == core.Pending && (j.Priority == 0) != j.Flags.Held() &&
			(j.Priority == 0 || !j.Flags.Has(core.FixedPriority)) {
			w.t.Fatalf("job %d has priority %d and flags %b", j.ID, j.Priority, j.Flags)
		}
	}
}

// samePlan holds the planner's next plan against those of two built cold from all, one told the other way round.
func (w *world) samePlan(all sched.Changes) {
	w.t.Helper()
	warm, cold := w.p.Pass(w.now), w.planner(all).Pass(w.now)
	slices.Reverse(all.Jobs)
	slices.Reverse(all.Nodes)
	if diff := cmp.Diff(cold, w.planner(all).Pass(w.now), records,
		cmpopts.IgnoreFields(sched.Plan{}, "keyFunc", "whoFunc", "limits")); diff != "" {
		w.t.Fatalf("plan told forwards (-) and backwards (+):\n%s", diff)
	}
	if diff := cmp.Diff(warm, cold, records,
		cmpopts.IgnoreFields(sched.Plan{}, "keyFunc", "whoFunc", "limits")); diff != "" {
		w.t.Fatalf("plan kept up to date (-) and built cold (+):\n%s", diff)
	}
	for j := range w.st.Snapshot().Jobs() {
		if a, b := warm.Reason(j), cold.Reason(j); j.State == core.Pending && a != b {
			w.t.Fatalf("job %d waits because %+v, or, built cold, %+v", j.ID, a, b)
		}
	}
}

// restart goes on from what was written, as after a crash.
func (w *world) restart() {
	w.log.restart(w.cfg)
	w.st = New(w.cfg, w.image())
	w.st.Advance(w.now)
	w.p = w.planner(w.st.All())
}
