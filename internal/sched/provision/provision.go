package provision

import (
	"cmp"
	"fmt"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/fit"
	"bireme.dev/bireme/internal/sched/ledger"
	"bireme.dev/bireme/internal/sched/sorted"
)

// Request is a request for nodes that do not exist or are powered down.
type Request struct {
	Offer string        `json:"offer,omitempty"`
	Count int32         `json:"count"`
	Node  core.NodeName `json:"node,omitempty"` // in place of an offer: one that is powered down
	For   core.JobID    `json:"for"`            // the first job that would use them
	Ready core.Time     `json:"ready"`
	Price core.Price    `json:"price,omitempty"` // of all of them, an hour
}

// MaxJobs is how many jobs, or tasks of arrays, a pass considers for provisioning, in order.
const MaxJobs = 1000

// Config is what there is and what could be had.
type Config struct {
	Now         core.Time
	Offers      []core.Offer // nodes that could be created
	Ledger      *ledger.Ledger
	Ends        *sorted.List[ledger.AllocEnd, *ledger.AllocEnd] // ends of running jobs
	PoweredDown int                                             // nodes that are powered down, or on their way up
}

// Job is a pending job that did not start, with as many of its tasks as did not.
type Job struct {
	Job        *core.Job
	Tasks      int
	Expected   core.Time   // when it would start on the nodes there are; alloc.Never: not on these
	Partitions []Partition // where it may run, in order
}

// Partition is a partition in which a job may run.
type Partition struct {
	Name  core.PartitionName
	Nodes map[core.NodeName]bool // nil: all
	Order []*ledger.Node         // the same, in the order they are tried
	Fit   *fit.Request           // what the job asks for there
}

// Served is what a job could have, and when.
type Served struct {
	Text string
	At   core.Time
}

// Planner decides which nodes to create or power up. Provide is called for the jobs that wait, in order, after all else
// is planned. If nodes that earlier jobs need could hold a job too, it shares those. Otherwise more nodes are taken if
// the job would start on them sooner than by waiting, and by more than the time they take to come: existing nodes cost
// nothing more. Among several options the cheapest is taken, then the one that is ready first; a node that is powered
// down costs nothing.
//
// All of that is computed as if no node were on its way; Requests then subtracts those that are. So no node is
// requested twice, in whatever order jobs arrive and nodes are made.
type Planner struct {
	Config
	Served map[core.JobID]Served // jobs that provisioned nodes could hold

	planned  []futureNode
	left     []int32       // how many more nodes of each offer there may be
	coming   [][]core.Time // when the nodes of each offer that are being made should be ready
	used     []int32       // how many nodes of each offer jobs need
	requests []Request
	tasks    int          // considered so far
	upNodes  []futureNode // see nodesUp; nil: not computed yet
}

// futureNode is a node as it would be.
type futureNode struct {
	node  *ledger.Node
	offer int // index of its offer; -1: none
	ready core.Time
	until core.Time // the latest end of the jobs that get parts of it
}

// New counts the nodes that exist and those that are being made.
func New(c Config) *Planner {
	g := &Planner{Config: c}
	for i := range g.Offers {
		g.left = append(g.left, g.Offers[i].Max)
	}
	g.coming, g.used = make([][]core.Time, len(g.left)), make([]int32, len(g.left))
	for _, node := range g.Ledger.Order {
		k := g.findOffer(node.Record.Offer)
		switch {
		case k < 0:
		case node.Record.Flags.Has(core.NodePoweringUp) && node.Record.Wakeable():
			g.coming[k] = append(g.coming[k], max(g.Now, node.Record.Ready))
		default:
			g.left[k]--
		}
	}
	for k := range g.coming {
		slices.Sort(g.coming[k])
	}
	return g
}

// Full reports whether no more jobs are considered.
func (g *Planner) Full() bool { return g.tasks >= MaxJobs }

// Provide finds nodes for a job, or for the tasks of an array.
func (g *Planner) Provide(j Job) {
	for range j.Tasks {
		if g.tasks++; g.tasks > MaxJobs || !g.provideOne(&j) {
			return
		}
	}
}

// option is one way to hold a job.
type option struct {
	part    *Partition
	choices []fit.Choice
	from    []futureNode // the choices are among these; those from fresh on are new
	fresh   int
	offer   int
	price   core.Price
	ready   core.Time
}

func (g *Planner) provideOne(j *Job) bool {
	var best *option
	for i := range j.Partitions {
		for _, c := range g.options(j, &j.Partitions[i]) {
			if best == nil || cmp.Or(cmp.Compare(c.price, best.price), cmp.Compare(c.ready, best.ready)) < 0 {
				best = c
			}
		}
	}
	if best == nil {
		return false
	}
	g.take(j, best)
	return true
}

// options lists the ways to hold a job in one of its partitions.
func (g *Planner) options(j *Job, part *Partition) (out []*option) {
	nodes := g.planned
	if j.Expected == alloc.Never && part.Fit.NodesMax > 1 { // it may need nodes that others use, together with new ones
		nodes = g.idleLater()
	}
	var base []futureNode
	for _, f := range nodes {
		if f.ready < j.Expected && g.serves(&f, part, j.Job.Spec) {
			base = append(base, f)
		}
	}
	if c := g.choose(part, base, len(base), -1); c != nil {
		return []*option{c}
	}
	if g.PoweredDown > 0 {
		if c := g.choose(part, g.withPoweredDown(j, part, base), len(base), -1); c != nil {
			out = append(out, c)
		}
	}
	maxPrice := j.Job.Spec.More().MaxPrice
	for k := range g.Offers {
		o := &g.Offers[k]
		count := min(g.left[k], part.Fit.NodesMax)
		if count <= 0 || !o.Serves(part.Name, j.Job.Spec.Project) || maxPrice > 0 && o.Price > maxPrice ||
			!g.isWorth(j, o.PowerUp) {
			continue
		}
		all := slices.Clone(base)
		for i := range count {
			all = append(all, futureNode{node: g.offeredNode(k), offer: k, ready: g.ready(k, g.used[k]+i)})
		}
		if c := g.choose(part, all, len(base), k); c != nil {
			out = append(out, c)
		}
	}
	return out
}

// isWorth reports whether a job would start enough sooner on nodes that take so long to come.
func (g *Planner) isWorth(j *Job, powerUp core.Seconds) bool {
	return j.Expected > alloc.AddTime(g.Now, 2*core.Time(powerUp)*1e6)
}

// withPoweredDown returns nodes, and the nodes of a partition that could be powered up for a job.
func (g *Planner) withPoweredDown(j *Job, part *Partition, base []futureNode) []futureNode {
	all := slices.Clone(base)
	for _, node := range part.Order {
		n := node.Record
		if n.Offer != "" || !n.Flags.Any(core.NodePoweredDown|core.NodePoweringUp) || !n.Wakeable() ||
			g.isPlanned(n.Name) || !g.isWorth(j, n.Resume) {
			continue
		}
		ready := alloc.AddTime(g.Now, core.Time(n.Resume)*1e6)
		if n.Flags.Has(core.NodePoweringUp) {
			ready = max(g.Now, n.Ready)
		}
		all = append(all, futureNode{node: g.poweredUpNode(node), offer: -1, ready: ready})
	}
	return all
}

// nodesUp lists the nodes that are up, as they will be when all jobs on them have ended. Nodes with a job that has no
// time limit are left out.
func (g *Planner) nodesUp() []futureNode {
	if g.upNodes != nil {
		return g.upNodes
	}
	free := map[core.NodeName]core.Time{}
	for w := (sorted.Cursor[ledger.AllocEnd, *ledger.AllocEnd]{List: g.Ends}); w.Current() != nil; w.Next() {
		e := w.Current()
		for i := range e.Alloc.Alloc.Nodes {
			free[e.Alloc.Alloc.Nodes[i].Node] = e.At // they come in order
		}
	}
	g.upNodes = []futureNode{}
	for _, node := range g.Ledger.Order {
		if at := max(free[node.Record.Name], g.Now); node.Record.Usable() && at < alloc.Never {
			g.upNodes = append(g.upNodes, futureNode{node: g.idleNode(node.Record), offer: -1, ready: at})
		}
	}
	return g.upNodes
}

// idleLater lists the nodes that are up or coming up, as they will be when no other job needs them.
func (g *Planner) idleLater() []futureNode {
	out := slices.Clone(g.nodesUp())
	for _, f := range g.planned {
		if f.until < alloc.Never {
			out = append(out, futureNode{
				node: g.idleNode(f.node.Record), offer: f.offer, ready: max(f.ready, f.until),
			})
		}
	}
	return out
}

// serves reports whether a job in a partition could use a node that is on its way.
func (g *Planner) serves(f *futureNode, part *Partition, spec *core.Spec) bool {
	if f.offer >= 0 {
		return g.Offers[f.offer].Serves(part.Name, spec.Project)
	}
	return part.Nodes == nil || part.Nodes[f.node.Record.Name]
}

// isPlanned reports whether a node is to be powered up already.
func (g *Planner) isPlanned(name core.NodeName) bool {
	return slices.ContainsFunc(g.planned, func(f futureNode) bool { return f.node.Record.Name == name })
}

// choose places a job on nodes, those that are on their way first.
func (g *Planner) choose(part *Partition, from []futureNode, fresh, offer int) *option {
	if len(from) == 0 {
		return nil
	}
	view := ledger.View{Nodes: make([]*ledger.Node, len(from))}
	for i := range from {
		view.Nodes[i] = from[i].node
	}
	choices := part.Fit.Choose(view, nil)
	if choices == nil {
		return nil
	}
	c := &option{part: part, choices: choices, from: from, fresh: fresh, offer: offer}
	for _, ch := range choices {
		i := slices.Index(view.Nodes, ch.Node)
		if i >= fresh && offer >= 0 {
			c.price += g.Offers[offer].Price
		}
		c.ready = max(c.ready, from[i].ready)
	}
	return c
}

// take gives a job its nodes and requests those that are new.
func (g *Planner) take(j *Job, c *option) {
	count, ready := int32(0), core.Time(0) // of new nodes
	for _, ch := range c.choices {
		i := slices.IndexFunc(c.from, func(f futureNode) bool { return f.node == ch.Node })
		use := c.part.Fit.Usage(ch.Node, ch.Tasks, &ch.Node.Free)
		ch.Node.Free.Subtract(&use)
		if i >= c.fresh {
			g.planned = append(g.planned, c.from[i])
		}
		if k := slices.IndexFunc(g.planned, func(f futureNode) bool { return f.node == ch.Node }); k >= 0 {
			g.planned[k].until = max(g.planned[k].until, alloc.AddTime(c.ready, alloc.TimeLimit(j.Job.Spec)))
		}
		if i < c.fresh {
			continue
		}
		count++
		ready = max(ready, c.from[i].ready)
		if c.offer < 0 {
			if g.Ledger.Nodes[ch.Node.Record.Name].Record.Flags.Has(core.NodePoweringUp) {
				count--
			} else {
				g.requests = append(g.requests, Request{
					Node: ch.Node.Record.Name, Count: 1, For: j.Job.ID, Ready: c.from[i].ready,
				})
			}
		}
	}
	text := "nodes that are on their way could hold it"
	switch k := c.offer; {
	case count > 0 && k < 0:
		text = fmt.Sprintf("%d node(s) that sleep could be powered up for it", count)
	case count > 0:
		o := &g.Offers[k]
		g.left[k] -= count
		g.used[k] += count
		if more := min(count, g.used[k]-int32(len(g.coming[k]))); more > 0 {
			text = fmt.Sprintf("%d of offer %s could be provisioned for it", more, o.Name)
			if !slices.ContainsFunc(g.requests, func(r Request) bool { return r.Offer == o.Name }) {
				g.requests = append(g.requests, Request{Offer: o.Name, For: j.Job.ID, Ready: ready})
			}
		}
	}
	if g.Served == nil {
		g.Served = map[core.JobID]Served{}
	}
	if _, ok := g.Served[j.Job.ID]; !ok {
		g.Served[j.Job.ID] = Served{Text: text, At: c.ready}
	}
}

// Requests returns what is still to be requested: what jobs need, less the nodes that are being made.
func (g *Planner) Requests() (out []Request) {
	for _, r := range g.requests {
		if k := g.findOffer(r.Offer); k >= 0 {
			r.Count = g.used[k] - int32(len(g.coming[k]))
			r.Price = g.Offers[k].Price * core.Price(r.Count)
		}
		if r.Count > 0 {
			out = append(out, r)
		}
	}
	return out
}

// ready returns when the n-th node that is taken of an offer is ready.
func (g *Planner) ready(k int, n int32) core.Time {
	if int(n) < len(g.coming[k]) {
		return g.coming[k][n]
	}
	return alloc.AddTime(g.Now, core.Time(g.Offers[k].PowerUp)*1e6)
}

// findOffer finds an offer by name; -1: there is none.
func (g *Planner) findOffer(name string) int {
	if name == "" {
		return -1
	}
	return slices.IndexFunc(g.Offers, func(o core.Offer) bool { return o.Name == name })
}

// offeredNode makes a node of an offer.
func (g *Planner) offeredNode(k int) *ledger.Node {
	o := &g.Offers[k]
	return g.idleNode(&core.Node{
		Name: core.NodeName("(" + o.Name + ")"), Roles: core.Compute, Hardware: o.Hardware,
		Features: o.Features,
	})
}

// idleNode returns a node on which nothing runs.
func (g *Planner) idleNode(n *core.Node) *ledger.Node {
	l := ledger.New()
	l.SetRules(g.Ledger.Rules)
	l.SetNode(n)
	return l.Nodes[n.Name]
}

// poweredUpNode returns a node as it will be when it is up.
func (g *Planner) poweredUpNode(node *ledger.Node) *ledger.Node {
	n := *node.Record
	n.Flags &^= core.Asleep | core.NodeSilent | core.NodeUnknown
	return g.idleNode(&n)
}
