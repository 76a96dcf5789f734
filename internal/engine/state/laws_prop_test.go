package state

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
	"bireme.dev/bireme/internal/core/taskset"
	"bireme.dev/bireme/internal/engine/state/jobs"
	"bireme.dev/bireme/internal/policy"
	"bireme.dev/bireme/internal/sched/fit"
)

// TestLaws lets anything happen to a small cluster and holds it to the laws after each step: no resource given twice,
// gangs whole or not at all, events without gaps, a restart changes nothing, a planner kept up to date plans as one
// built cold in whatever order, and the same inputs give the same changes.
func TestLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		// rapid favors small numbers, which would make most things never happen: it chooses the seed alone.
		seed, steps := rapid.Uint64().Draw(rt, "seed"), 120-rapid.IntRange(0, 115).Draw(rt, "less")
		first := anything(rt, rand.New(rand.NewPCG(seed, 1)).IntN, steps, true)
		second := anything(rt, rand.New(rand.NewPCG(seed, 1)).IntN, steps, false)
		if !slices.Equal(first, second) {
			for i := range first {
				if i >= len(second) || first[i] != second[i] {
					rt.Fatalf("the same inputs changed, at first,\n%s\nand then\n%s", first[i], second[min(i, len(second)-1)])
				}
			}
			rt.Fatalf("the same inputs made %d batches and then %d", len(first), len(second))
		}
	})
}

// chaos is a world in which anything happens; choose(n) decides what.
type chaos struct {
	*world
	choose func(n int) int
}

// anything plays some steps, of those there are and more, and returns every batch of changes.
func anything(t failer, choose func(int) int, steps int, check bool, more ...func(*chaos)) (batches []string) {
	cfg := Config{
		MaxRequeues: 2, Licenses: []core.License{{Name: "l", Total: 3}, {Name: "m", Total: 1}},
		Partitions: []core.Partition{
			{Name: "main", Nodes: "ALL", Default: true},
			{Name: "small", Nodes: "n[1-2]", MaxNodes: 1, PriorityTier: 1},
			{Name: "short", Nodes: "n[2-4]", MaxTime: 3600, PriorityTier: 2, MinNodes: 1},
		},
	}
	if choose(2) == 0 {
		cfg.Priority = &Priority{
			Config: policy.Config{Weights: policy.Weights{
				Age: 5000, FairShare: 5000, JobSize: 500, Partition: 100,
				TRES: []policy.Weight{{Name: "cpu", Per: 300}},
			}},
			Period: 600,
		}
		cfg.Charges.HalfLife = 3600
	}
	mayPush(&cfg, choose)
	mayShare(&cfg, choose)
	c := &chaos{world: newWorld(t, cfg), choose: choose}
	c.trace = check
	c.onFlush = func(ch *core.Changes) { batches = append(batches, asJSON(t, ch)) }
	for i, u := range []string{"alice", "bob"} {
		c.must(&EnsureUser{UID: uint32(1000 + i), UnixName: u})
	}
	for _, q := range pushers {
		c.must(&PutQOS{By: root, QOS: &q})
	}
	for range 2 + choose(3) {
		c.register()
	}
	acts := []func(){
		c.submit, c.submit, c.submit, c.submit, c.het, c.plan, c.plan, c.plan, c.exit, c.exit, c.exit, c.done, c.done,
		c.cancel,
		c.update, c.checkpoint, c.requeue, c.suspend, c.nodeState, c.register, c.step, c.stepExit, c.giveback, c.later,
		c.batch, c.again, c.people, c.reserve, c.wish,
	}
	for _, act := range more {
		acts = append(acts, func() { act(c) }, func() { act(c) })
	}
	kept, was := c.st.Snapshot(), ""
	for i := range steps {
		if i%20 == 10 { // what was published stays as it was, whatever happens afterwards
			if was != "" && was != render(t, kept) {
				t.Fatalf("a snapshot changed after it was taken")
			}
			kept = c.st.Snapshot()
			was = render(t, kept)
		}
		acts[choose(len(acts))]()
		if check && !c.batching && i%6 == 5 { // comparing everything costs more than doing it
			c.check()
		}
	}
	if c.batching {
		c.batch()
	}
	if check {
		c.check()
	}
	return batches
}

// render writes a whole snapshot down.
func render(t failer, v *Snapshot) string {
	all := []any{v.Seq(), v.Now(), v.Users(), v.Projects(), v.Tokens(), v.Runs(), slices.Collect(v.Nodes())}
	for j := range v.Jobs() {
		all = append(all, j, v.Steps(j.ID))
	}
	for uid := range uint32(8) {
		u, _ := v.UserByUID(1000 + uid)
		h, _ := v.TokenByHash(core.Hash{byte(uid), 1})
		n, _ := v.Node(core.NodeName(fmt.Sprint("n", uid)))
		all = append(all, u, h, n)
	}
	return asJSON(t, all)
}

func (c *chaos) pick(list ...string) string { return list[c.choose(len(list))] }

func (c *chaos) node() core.NodeName { return core.NodeName(c.pick("n1", "n2", "n3", "n4")) }

var root = core.Identity{User: "root", Admin: true}

// who is an owner, a stranger or an administrator.
func (c *chaos) who() core.Identity {
	return []core.Identity{root, {User: "alice", UID: 1000}, {User: "bob", UID: 1001}}[c.choose(3)]
}

// live picks a live job, or one that is not.
func (c *chaos) live() core.JobID {
	var ids []core.JobID
	for j := range c.st.Snapshot().Jobs() {
		ids = append(ids, j.ID)
	}
	ids = append(ids, 999)
	return ids[c.choose(len(ids))]
}

// placed picks a job that holds nodes.
func (c *chaos) placed() (*core.Job, bool) {
	var list []*core.Job
	for j := range c.st.Snapshot().Jobs() {
		if j.Alloc != nil {
			list = append(list, j)
		}
	}
	if len(list) == 0 {
		return nil, false
	}
	return list[c.choose(len(list))], true
}

func (c *chaos) register() {
	n := coretest.Node(c.node()).CPUs(int32(1 + c.choose(4))).Mem(core.Bytes(1+c.choose(4)) * core.GiB).Build()
	for range c.choose(3) {
		n.Hardware.Gres = append(n.Hardware.Gres,
			core.Gres{Name: "gpu", Type: c.pick("a", "b", ""), Count: int64(c.choose(3))})
	}
	if c.choose(3) == 0 {
		n.Features = []string{"fast"}
	}
	if c.choose(3) == 0 {
		c.inside(&n.Hardware)
	}
	n.Host.BootID = c.pick("boot-1", "boot-1", "boot-1", "boot-2")
	_, _ = c.do(&Register{Node: n.Name, Hardware: n.Hardware, Host: n.Host, Roles: n.Roles, Features: n.Features})
}

func (c *chaos) submit() {
	b := coretest.Job().Name(c.pick("a",
		"b")).CPUs(int32(1 + c.choose(2))).Partition(core.PartitionName(c.pick("", "main", "small", "short", "small,main",
		"short,small,main")))
	by := []core.Identity{{User: "alice", UID: 1000}, {User: "bob", UID: 1001}}[c.choose(2)]
	b.User(by.User).Set(func(s *core.Spec) { s.UID = by.UID })
	switch c.choose(4) {
	case 0:
		b.Nodes(int32(1 + c.choose(3)))
	case 1:
		b.Tasks(int32(1 + c.choose(5)))
	case 2:
		b.Set(func(s *core.Spec) {
			s.Shape.NodesMin, s.Shape.NodesMax, s.Shape.Tasks = 1, int32(1+c.choose(3)), int32(1+c.choose(6))
		})
	}
	switch c.choose(5) {
	case 0:
		b.Mem(core.Bytes(1+c.choose(3)) * core.GiB)
	case 1:
		b.MemPerCPU(core.Bytes(1+c.choose(2)) * 512 * core.MiB)
	case 2:
		b.Mem(fit.AllMemory)
	}
	for range c.choose(3) {
		b.Gres("gpu", c.pick("", "a", "b"), int64(c.choose(3)))
	}
	if c.choose(8) == 0 {
		b.Exclusive()
	}
	if c.choose(3) == 0 {
		b.Time(time.Duration(1+c.choose(120)) * time.Minute)
	}
	switch c.choose(6) {
	case 0:
		b.Array(c.pick("0-3", "1,5,7", "2-8:2", "4"), int32(c.choose(3)))
	case 1:
		b.Interactive()
	}
	b.Set(func(s *core.Spec) {
		s.QOS = core.QOSName(c.pick("", "low", "low", "mid", "high"))
		s.Requeue = c.choose(3) > 0
		s.Hold = c.choose(8) == 0
		s.Nice = int32(c.choose(3) * 10)
		s.Shape.MinCPUs = int32(c.choose(3))
		if c.choose(4) == 0 {
			c.widen(s)
		}
		if c.choose(5) == 0 {
			s.Begin = c.now.Add(time.Duration(c.choose(3)) * time.Hour)
		}
		if c.choose(5) == 0 {
			s.Extra = &core.Extra{
				NodeList: c.pick("", "n1", "n[2-3]"), Exclude: c.pick("", "n1"),
				Constraint: coretest.Constraint(c.pick("", "fast")),
			}
		}
	})
	if c.choose(4) == 0 {
		b.Set(c.depend)
	}
	b.Set(c.season)
	in := &Submit{By: by, Spec: b.Spec()}
	if c.choose(4) == 0 {
		in.Key = fmt.Sprintf("key-%d", c.choose(4))
	}
	if c.choose(6) == 0 {
		in.Run = &core.Run{Name: c.pick("r1", "r2"), ID: fmt.Sprint("run-", c.st.rec.NextJob())}
	}
	_, _ = c.do(in)
}

// depend lets a job wait for others.
func (c *chaos) depend(s *core.Spec) {
	x := *s.More()
	sep, text := c.pick(",", "?"), ""
	for i := range 1 + c.choose(3) {
		if i > 0 {
			text += sep
		}
		kind := c.pick("after", "afterany", "afterok", "afternotok", "aftercorr", "singleton")
		text += kind
		if kind == "singleton" {
			continue
		}
		text += fmt.Sprintf(":%d", 1+c.choose(int(c.st.rec.NextJob())))
		if c.choose(4) == 0 {
			text += fmt.Sprintf("_%d", c.choose(6))
		}
		if kind == "after" && c.choose(2) == 0 {
			text += "+30"
		}
	}
	x.Dependency = coretest.Dependency(x.Dependency.String() + text)
	if c.choose(4) == 0 {
		x.Kept = &core.KeptOptions{KillInvalid: ptr(true)}
	}
	s.Extra = &x
}

func (c *chaos) plan() { c.pass() }

func (c *chaos) exit() {
	j, ok := c.placed()
	if !ok {
		return
	}
	na := &j.Alloc.Nodes[c.choose(len(j.Alloc.Nodes))*c.choose(2)]
	causes := []ExitCause{
		CauseExit, CauseExit, CauseExit, jobs.CauseOOM, jobs.CauseTimeout, CauseCancelled, CauseLaunch,
		jobs.CauseProlog, jobs.CauseEnv, jobs.CauseLost, jobs.CauseFenced, jobs.CauseUnkillable,
	}
	_, _ = c.do(&Exited{
		Node: na.Node, Job: j.ID, Attempt: j.Attempt - int32(c.choose(4)/3), Step: "batch",
		Exit:  core.Exit{Code: int32(c.choose(2))},
		Cause: causes[c.choose(len(causes))], JobDone: c.choose(3) > 0, Usage: core.Usage{User: time.Second},
	})
}

func (c *chaos) done() {
	j, ok := c.placed()
	if !ok {
		return
	}
	_, _ = c.do(&NodeDone{
		Node: j.Alloc.Nodes[c.choose(len(j.Alloc.Nodes))].Node, Job: j.ID,
		Attempt: j.Attempt - int32(c.choose(5)/4),
	})
}

func (c *chaos) cancel() {
	in := &Cancel{By: c.who(), Job: c.live()}
	var tasks []int
	for range c.choose(3) * c.choose(2) {
		tasks = append(tasks, c.choose(9))
	}
	in.Tasks = taskset.Of(tasks...)
	if c.choose(4) == 0 {
		in.States = []core.JobState{core.Pending}
	}
	_, _ = c.do(in)
}

func (c *chaos) update() {
	in := &UpdateJob{By: c.who(), Job: c.live()}
	if c.choose(4) == 0 {
		in.Tasks = taskset.Of(c.choose(9), c.choose(9))
	}
	switch c.choose(9) {
	case 0:
		in.Hold, in.AdminHold = ptr(true), c.choose(2) == 0
	case 1:
		in.Hold = ptr(false)
	case 2:
		in.TimeLimit = ptr(core.Seconds(60 * (1 + c.choose(100))))
	case 3:
		in.Priority = ptr(uint32(c.choose(2) * c.choose(20_000)))
	case 4:
		in.Nice = ptr(int32(c.choose(50)))
	case 5:
		in.Partition = ptr(core.ParsePartitions(c.pick("main", "small", "short,main", "nosuch")))
	case 6:
		in.Name = ptr("renamed")
	case 7:
		in.Spec.Throttle = ptr(int32(c.choose(3)))
	case 8:
		in.Spec.AskChange = c.ask()
	}
	_, _ = c.do(in)
}

// ask is a change of what a job asks for, often more than there is.
func (c *chaos) ask() (ask core.AskChange) {
	switch c.choose(6) {
	case 0:
		least := int32(1 + c.choose(3))
		ask.Nodes = &core.NodeCount{Min: least, Max: least + int32(c.choose(2))}
	case 1:
		ask.Tasks = ptr(int32(c.choose(4)))
	case 2:
		ask.CPUs = ptr(int32(1 + c.choose(6)))
	case 3:
		ask.MemPerNode = ptr(core.Bytes(c.choose(4)) * core.GiB)
	case 4:
		ask.Exclude = ptr(c.pick("", string(c.node())))
	case 5:
		ask.CPUsPerTask, ask.TasksPerNode = ptr(int32(1+c.choose(3))), ptr(int32(c.choose(3)))
	}
	return ask
}

func (c *chaos) requeue() {
	_, _ = c.do(&Requeue{By: c.who(), Job: c.live(), Hold: c.choose(3) == 0})
}

func (c *chaos) suspend() {
	_, _ = c.do(&Suspend{By: root, Job: c.live(), Resume: c.choose(2) == 0})
}

func (c *chaos) nodeState() {
	n := c.node()
	switch c.choose(7) {
	case 0:
		_, _ = c.do(&NodeSilence{Node: n})
	case 1:
		_, _ = c.do(&NodeSilence{Node: n, Back: true})
	case 2:
		_, _ = c.do(&Fenced{Node: n})
	case 3:
		_, _ = c.do(&UpdateNode{By: root, Node: n, State: "drain", Reason: "r"})
	case 4:
		_, _ = c.do(&UpdateNode{By: root, Node: n, State: "down", Reason: "r"})
	default:
		_, _ = c.do(&UpdateNode{By: root, Node: n, State: "resume"})
	}
}

func (c *chaos) step() {
	j, ok := c.placed()
	if !ok {
		return
	}
	st := &core.Step{Job: j.ID, Name: "s", CPUs: 1}
	for i := range j.Alloc.Nodes {
		if i == 0 || c.choose(2) == 0 {
			st.Nodes, st.Tasks = append(st.Nodes, j.Alloc.Nodes[i].Node), append(st.Tasks, 1)
		}
	}
	_, _ = c.do(&CreateStep{By: root, Step: st})
}

func (c *chaos) stepExit() {
	j, ok := c.placed()
	if !ok || j.Steps == 0 {
		return
	}
	causes := []ExitCause{CauseExit, CauseExit, jobs.CauseOOM, jobs.CauseLost, jobs.CauseProlog, CauseCancelled}
	_, _ = c.do(&Exited{
		Node: j.Alloc.Nodes[c.choose(len(j.Alloc.Nodes))].Node, Job: j.ID, Attempt: j.Attempt,
		Step: fmt.Sprint(c.choose(int(j.Steps))), Exit: core.Exit{Code: int32(c.choose(3))},
		Cause: causes[c.choose(len(causes))], JobDone: c.choose(2) == 0,
	})
}

func (c *chaos) giveback() { _, _ = c.do(&AllocDone{By: c.who(), Job: c.live()}) }

func (c *chaos) later() {
	c.now = c.now.Add(time.Duration(c.choose(100)) * time.Minute)
	c.st.Advance(c.now)
	_, _ = c.do(&Tick{})
}

// people come, change and get tokens; nodes are declared before they are heard.
func (c *chaos) people() {
	name := core.UserName(c.pick("alice", "carol"))
	switch c.choose(6) {
	case 0:
		_, _ = c.do(&PutUser{By: c.who(), User: &core.User{Name: name, UnixName: string(name)}, New: c.choose(2) == 0})
	case 1:
		_, _ = c.do(&PutProject{
			By:      c.who(),
			Project: &core.Project{Name: "p", Members: []core.Member{{User: name, Role: core.RoleManager}}},
		})
	case 2:
		t := &core.Token{
			ID: c.pick("t1", "t2"), Kind: c.pick("user", "join"), User: name,
			Hash: core.Hash{byte(c.choose(3)), 1}, Created: c.now,
		}
		_, _ = c.do(&PutToken{By: c.who(), Token: t})
	case 3:
		_, _ = c.do(&UseToken{ID: c.pick("t1", "t2"), Node: c.node()})
	case 4:
		_, _ = c.do(&PutNode{Node: coretest.Node(c.node()).Weight(int32(c.choose(3))).Build()})
	case 5:
		uid := uint32(1000 + c.choose(4))
		_, _ = c.do(&EnsureUser{UID: uid, UnixName: c.pick("alice", "carol", "dan", "")})
	}
}

// batch puts what follows into one batch, until it is called again.
func (c *chaos) batch() {
	if c.batching {
		c.flush(nil)
	}
	c.batching = !c.batching
}

// again goes on after a crash: what was not written is lost.
func (c *chaos) again() {
	if !c.batching {
		c.restart()
	}
}
