package sched

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/fit"
	"bireme.dev/bireme/internal/sched/ledger"
	"bireme.dev/bireme/internal/sched/sorted"
)

// Provision is a request of the plan for nodes that do not exist or are powered down.
type Provision struct {
	Offer string        `json:"offer,omitempty"`
	Count int32         `json:"count"`
	Node  core.NodeName `json:"node,omitempty"` // in place of an offer: one that is powered down
	For   core.JobID    `json:"for"`            // the first job that would use them
	Ready core.Time     `json:"ready"`
	Price core.Price    `json:"price,omitempty"` // of all of them, an hour
}

// provisioner is what a pass makes of nodes that could be had. It goes through the jobs that wait, in order, after all
// else is planned. A job that nodes which others need already could hold too shares those. Else more are taken if the
// job would start on them sooner than by waiting, and by more than the time they take to come: nodes there are cost
// nothing more. Among several ways the cheapest is taken, then the soonest: a node that sleeps costs nothing.
//
// All that is worked out as if nothing were on its way, and what is on its way is then taken off what is wished for: so
// nothing is asked for twice, whatever the order in which jobs come and nodes are made.
type provisioner struct {
	pass     *pass
	planned  []futureNode
	left     []int32       // of each offer, how many more there may be than are up
	coming   [][]core.Time // of each offer, when those should be ready that are being made
	used     []int32       // of each offer, how many jobs need
	requests []Provision
	started  map[core.JobID]int
	served   int
	upNodes  []futureNode // nodes that are up, as they will be when what runs there is over; nil: not worked out yet
}

// futureNode is a node as it would be.
type futureNode struct {
	node  *ledger.Node
	offer int // it is of; -1: none
	ready core.Time
	until core.Time // jobs that are given parts of it may be there
}

// maxProvisionJobs is how many jobs a pass considers for provisioning, in order.
const maxProvisionJobs = 1000

// provisionInfo is what a job that waits could have, and when.
type provisionInfo struct {
	text string
	at   core.Time
}

// provision computes which nodes to create or power up.
func (ps *pass) provision() {
	p := ps.p
	if len(p.cfg.Offers) == 0 && p.poweredDown == 0 {
		return
	}
	g := &provisioner{pass: ps, started: map[core.JobID]int{}}
	for i := range ps.plan.Starts {
		g.started[ps.plan.Starts[i].Job]++
	}
	g.countNodes()
	for _, w := range g.waiting() {
		if g.served >= maxProvisionJobs {
			break
		}
		g.provide(w)
	}
	ps.plan.Provision = g.missing()
}

// countNodes lays out what is on its way, and what there may be.
func (g *provisioner) countNodes() {
	p, now := g.pass.p, g.pass.plan.Now
	for i := range p.cfg.Offers {
		g.left = append(g.left, p.cfg.Offers[i].Max)
	}
	g.coming, g.used = make([][]core.Time, len(g.left)), make([]int32, len(g.left))
	for _, a := range p.ledger.Order {
		k := p.findOffer(a.Record.Offer)
		switch {
		case k < 0:
		case a.Record.Flags.Has(core.NodePoweringUp) && a.Record.Wakeable():
			g.coming[k] = append(g.coming[k], max(now, a.Record.Ready))
		default:
			g.left[k]--
		}
	}
	for k := range g.coming {
		slices.Sort(g.coming[k])
	}
}

// ready is when the n-th node that is taken of an offer is there.
func (g *provisioner) ready(k int, n int32) core.Time {
	if int(n) < len(g.coming[k]) {
		return g.coming[k][n]
	}
	return alloc.AddTime(g.pass.plan.Now, core.Time(g.pass.p.cfg.Offers[k].PowerUp)*1e6)
}

// missing is what is still to be asked for.
func (g *provisioner) missing() (out []Provision) {
	for _, x := range g.requests {
		if k := g.pass.p.findOffer(x.Offer); k >= 0 {
			x.Count = g.used[k] - int32(len(g.coming[k]))
			x.Price = g.pass.p.cfg.Offers[k].Price * core.Price(x.Count)
		}
		if x.Count > 0 {
			out = append(out, x)
		}
	}
	return out
}

// findOffer finds an offer by name; -1: there is none.
func (p *Planner) findOffer(name string) int {
	if name == "" {
		return -1
	}
	return slices.IndexFunc(p.cfg.Offers, func(o core.Offer) bool { return o.Name == name })
}

// offeredNode makes a node of an offer.
func (p *Planner) offeredNode(k int) *ledger.Node {
	o := &p.cfg.Offers[k]
	return p.idleNode(&core.Node{
		Name: core.NodeName("(" + o.Name + ")"), Roles: core.Compute, Hardware: o.Hardware,
		Features: o.Features,
	})
}

// idleNode returns a node on which nothing runs.
func (p *Planner) idleNode(n *core.Node) *ledger.Node {
	l := ledger.New()
	l.SetRules(p.ledger.Rules)
	l.SetNode(n)
	return l.Nodes[n.Name]
}

// poweredUpNode returns a node as it will be when it is up.
func (p *Planner) poweredUpNode(a *ledger.Node) *ledger.Node {
	n := *a.Record
	n.Flags &^= core.Asleep | core.NodeSilent | core.NodeUnknown
	return p.idleNode(&n)
}

// unplacedJob is a job that waits, with as many of its tasks as do.
type unplacedJob struct {
	job   *core.Job
	class *classInfo
	part  *partition
	entry queueEntry
	tasks int
}

// waiting lists the jobs that did not start, in the order of a pass, as many as are looked at.
func (g *provisioner) waiting() []unplacedJob {
	p := g.pass.p
	var out []unplacedJob
	add := func(part *partition, e queueEntry, c *classInfo) {
		tasks := e.job.Count() - g.started[e.job.ID]
		if tasks > 0 && hetRefOf(e.job) == nil {
			out = append(out, unplacedJob{e.job, c, part, e, tasks})
		}
	}
	for _, part := range p.partitions {
		n := 0
		for c := (queueCursor{List: &part.queue}); c.Current() != nil && n < maxProvisionJobs; c.Next() {
			e := c.Current()
			if w := p.pending[e.job.ID]; w.class != nil && e.class == w.class.firstUsable() && !g.pass.isLimited(e) {
				add(part, *e, w.class)
				n++
			}
		}
	}
	if p.hasUnplaceableClass() {
		for _, w := range p.pending {
			if w.class != nil && w.class.firstUsable() == nil && len(w.class.partitions) > 0 {
				s := &w.class.partitions[0]
				add(s.part, queueEntryOf(w.job, s, nil), w.class)
			}
		}
	}
	slices.SortFunc(out, func(a, b unplacedJob) int {
		switch {
		case comesBefore(a.part, &a.entry, b.part, &b.entry):
			return -1
		case comesBefore(b.part, &b.entry, a.part, &a.entry):
			return 1
		}
		return 0
	})
	return out
}

// hasUnplaceableClass reports whether there are classes that only other nodes could hold.
func (p *Planner) hasUnplaceableClass() bool {
	for _, c := range p.classes {
		if c.firstUsable() == nil {
			return true
		}
	}
	return false
}

// expected is when a job would start on the nodes there are, as far as the plan knows: if it has no reservation, not
// before the first of its queue.
func (g *provisioner) expected(w *unplacedJob) core.Time {
	plan := g.pass.plan
	if t, ok := plan.expected[w.job.ID]; ok {
		return t
	}
	if w.class.firstUsable() == nil {
		return alloc.Never
	}
	at := alloc.Never
	for i := range w.class.partitions {
		s := &w.class.partitions[i]
		if s.reason != nil {
			continue
		}
		if t, ok := plan.expected[plan.heads[s.part.Name]]; ok {
			at = min(at, t)
		} else if plan.heads[s.part.Name] == 0 {
			return plan.Now // nobody is in its way: it starts in this pass or the next
		}
	}
	return at
}

// provide finds nodes for a job, or for the tasks of an array.
func (g *provisioner) provide(w unplacedJob) {
	wait := g.expected(&w)
	for range w.tasks {
		if g.served++; g.served > maxProvisionJobs || !g.provideOne(&w, wait) {
			return
		}
	}
}

// provisionOption is one way to hold a job.
type provisionOption struct {
	class   *partitionClass
	choices []fit.Choice
	from    []futureNode // the picks are among these; those from fresh on are new
	fresh   int
	offer   int
	price   core.Price
	ready   core.Time
}

func (g *provisioner) provideOne(w *unplacedJob, wait core.Time) bool {
	var best *provisionOption
	for i := range w.class.partitions {
		s := &w.class.partitions[i]
		if isPartitionDown(s.part.State) || s.overTimeLimit || len(s.options) > 0 || len(s.req.Required) > 0 &&
			g.pass.p.poweredDown == 0 {
			continue
		}
		for _, c := range g.ways(w, s, wait) {
			if best == nil || cmp.Or(cmp.Compare(c.price, best.price), cmp.Compare(c.ready, best.ready)) < 0 {
				best = c
			}
		}
	}
	if best == nil {
		return false
	}
	g.take(w, best)
	return true
}

// ways lists the ways to hold a job in one of its partitions.
func (g *provisioner) ways(w *unplacedJob, s *partitionClass, wait core.Time) (out []*provisionOption) {
	p, now := g.pass.p, g.pass.plan.Now
	nodes := g.planned
	if wait == alloc.Never && s.req.NodesMax > 1 { // it may need what others have now, together with more
		nodes = g.inTime()
	}
	var base []futureNode
	for _, sp := range nodes {
		if sp.ready < wait && g.serves(&sp, s, w.job.Spec) {
			base = append(base, sp)
		}
	}
	if c := g.choose(s, base, len(base), -1); c != nil {
		return []*provisionOption{c}
	}
	worth := func(powerUp core.Seconds) bool { return wait > alloc.AddTime(now, 2*core.Time(powerUp)*1e6) }
	if p.poweredDown > 0 {
		all := slices.Clone(base)
		for _, a := range p.partitionNodes(s.part) {
			n := a.Record
			if n.Offer != "" || !n.Flags.Any(core.NodePoweredDown|core.NodePoweringUp) || !n.Wakeable() ||
				g.isPlanned(n.Name) || !worth(n.Resume) {
				continue
			}
			ready := alloc.AddTime(now, core.Time(n.Resume)*1e6)
			if n.Flags.Has(core.NodePoweringUp) {
				ready = max(now, n.Ready)
			}
			all = append(all, futureNode{node: p.poweredUpNode(a), offer: -1, ready: ready})
		}
		if c := g.choose(s, all, len(base), -1); c != nil {
			out = append(out, c)
		}
	}
	most := w.job.Spec.More().MaxPrice
	for k := range p.cfg.Offers {
		o := &p.cfg.Offers[k]
		n := min(g.left[k], s.req.NodesMax)
		if n <= 0 || !o.Serves(s.part.Name, w.job.Spec.Project) || most > 0 && o.Price > most || !worth(o.PowerUp) {
			continue
		}
		all := slices.Clone(base)
		for i := range n {
			all = append(all, futureNode{node: p.offeredNode(k), offer: k, ready: g.ready(k, g.used[k]+i)})
		}
		if c := g.choose(s, all, len(base), k); c != nil {
			out = append(out, c)
		}
	}
	return out
}

// nodesUp lists the nodes that are up, as they will be when all that runs on them has ended, as far as it ever does.
func (g *provisioner) nodesUp() []futureNode {
	if g.upNodes != nil {
		return g.upNodes
	}
	p := g.pass.p
	free := map[core.NodeName]core.Time{}
	for w := (sorted.Cursor[ledger.AllocEnd, *ledger.AllocEnd]{List: &p.ends}); w.Current() != nil; w.Next() {
		e := w.Current()
		for i := range e.Alloc.Alloc.Nodes {
			free[e.Alloc.Alloc.Nodes[i].Node] = e.At // they come in order
		}
	}
	g.upNodes = []futureNode{}
	for _, a := range p.ledger.Order {
		if at := max(free[a.Record.Name], g.pass.plan.Now); a.Record.Usable() && at < alloc.Never {
			g.upNodes = append(g.upNodes, futureNode{node: p.idleNode(a.Record), offer: -1, ready: at})
		}
	}
	return g.upNodes
}

// inTime lists the nodes that are up or coming up, as they will be when no other job needs them.
func (g *provisioner) inTime() []futureNode {
	out := slices.Clone(g.nodesUp())
	for _, sp := range g.planned {
		if sp.until < alloc.Never {
			out = append(out, futureNode{node: g.pass.p.idleNode(sp.node.Record), offer: sp.offer, ready: max(sp.ready,
				sp.until)})
		}
	}
	return out
}

// serves reports whether a job in a partition could use a node that is on its way.
func (g *provisioner) serves(sp *futureNode, s *partitionClass, spec *core.Spec) bool {
	if sp.offer >= 0 {
		return g.pass.p.cfg.Offers[sp.offer].Serves(s.part.Name, spec.Project)
	}
	return s.part.nodes == nil || s.part.nodes[sp.node.Record.Name]
}

// isPlanned reports whether a node is to be powered up already.
func (g *provisioner) isPlanned(name core.NodeName) bool {
	return slices.ContainsFunc(g.planned, func(sp futureNode) bool { return sp.node.Record.Name == name })
}

// choose holds a job with nodes, those that are on their way first.
func (g *provisioner) choose(s *partitionClass, from []futureNode, fresh, offer int) *provisionOption {
	if len(from) == 0 {
		return nil
	}
	look := ledger.View{Nodes: make([]*ledger.Node, len(from))}
	for i := range from {
		look.Nodes[i] = from[i].node
	}
	picks := s.req.Choose(look, nil)
	if picks == nil {
		return nil
	}
	c := &provisionOption{class: s, choices: picks, from: from, fresh: fresh, offer: offer}
	for _, pk := range picks {
		i := slices.Index(look.Nodes, pk.Node)
		if i >= fresh && offer >= 0 {
			c.price += g.pass.p.cfg.Offers[offer].Price
		}
		c.ready = max(c.ready, from[i].ready)
	}
	return c
}

// take gives a job its nodes, and asks for those that are new.
func (g *provisioner) take(w *unplacedJob, c *provisionOption) {
	plan := g.pass.plan
	news, ready := int32(0), core.Time(0)
	for _, pk := range c.choices {
		i := slices.IndexFunc(c.from, func(sp futureNode) bool { return sp.node == pk.Node })
		use := c.class.req.Usage(pk.Node, pk.Tasks, &pk.Node.Free)
		pk.Node.Free.Subtract(&use)
		if i >= c.fresh {
			g.planned = append(g.planned, c.from[i])
		}
		if k := slices.IndexFunc(g.planned, func(sp futureNode) bool { return sp.node == pk.Node }); k >= 0 {
			g.planned[k].until = max(g.planned[k].until, alloc.AddTime(c.ready, alloc.TimeLimit(w.job.Spec)))
		}
		if i < c.fresh {
			continue
		}
		news++
		ready = max(ready, c.from[i].ready)
		if c.offer < 0 {
			if g.pass.p.ledger.Nodes[pk.Node.Record.Name].Record.Flags.Has(core.NodePoweringUp) {
				news--
			} else {
				g.requests = append(g.requests, Provision{
					Node: pk.Node.Record.Name, Count: 1, For: w.job.ID,
					Ready: c.from[i].ready,
				})
			}
		}
	}
	text := "nodes that are on their way could hold it"
	switch k := c.offer; {
	case news > 0 && k < 0:
		text = fmt.Sprintf("%d node(s) that sleep could be powered up for it", news)
	case news > 0:
		o := &g.pass.p.cfg.Offers[k]
		g.left[k] -= news
		g.used[k] += news
		if more := min(news, g.used[k]-int32(len(g.coming[k]))); more > 0 {
			text = fmt.Sprintf("%d of offer %s could be provisioned for it", more, o.Name)
			if !slices.ContainsFunc(g.requests, func(a Provision) bool { return a.Offer == o.Name }) {
				g.requests = append(g.requests, Provision{Offer: o.Name, For: w.job.ID, Ready: ready})
			}
		}
	}
	if plan.provisioned == nil {
		plan.provisioned = map[core.JobID]provisionInfo{}
	}
	if _, ok := plan.provisioned[w.job.ID]; !ok {
		plan.provisioned[w.job.ID] = provisionInfo{text: text, at: c.ready}
	}
}

// withProvision adds what nodes that are not there could do to the reason a job waits.
func (p *Plan) withProvision(j *core.Job, w Reason) Reason {
	g, ok := p.provisioned[j.ID]
	if !ok {
		return w
	}
	w.Text += fmt.Sprintf("; %s, in %v", g.text, g.at.Sub(p.Now).Round(time.Second))
	if w.Expected == 0 || g.at < w.Expected {
		w.Expected, w.Estimate = g.at, true
	}
	return w
}
