package sched

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"bireme.dev/bireme/internal/core"
)

// Provision is a wish of the plan for nodes that are not there, or that sleep.
type Provision struct {
	Offer string        `json:"offer,omitempty"`
	Count int32         `json:"count"`
	Node  core.NodeName `json:"node,omitempty"` // in place of an offer: one that is powered down
	For   core.JobID    `json:"for"`            // the first job that would use them
	Ready core.Time     `json:"ready"`
	Price core.Price    `json:"price,omitempty"` // of all of them, an hour
}

// growth is what a pass makes of nodes that could be had. It goes through the jobs that wait, in order, after all else is
// planned. A job that nodes which others need already could hold too shares those. Else more are taken if the job would
// start on them sooner than by waiting, and by more than the time they take to come: nodes there are cost nothing more.
// Among several ways the cheapest is taken, then the soonest: a node that sleeps costs nothing.
//
// All that is worked out as if nothing were on its way, and what is on its way is then taken off what is wished for: so
// nothing is asked for twice, whatever the order in which jobs come and nodes are made.
type growth struct {
	ps      *pass
	sprouts []sprout
	left    []int32       // of each offer, how many more there may be than are up
	coming  [][]core.Time // of each offer, when those should be ready that are being made
	used    []int32       // of each offer, how many jobs need
	asks    []Provision
	started map[core.JobID]int
	served  int
	there   []sprout // nodes that are up, as they will be when what runs there is over; nil: not worked out yet
}

// sprout is a node as it would be.
type sprout struct {
	a     *account
	offer int // it is of; -1: none
	ready core.Time
	until core.Time // jobs that are given parts of it may be there
}

// growMost is how many jobs a pass looks at for that, in order.
const growMost = 1000

// growing is what a job that waits could have, and when.
type growing struct {
	text string
	at   core.Time
}

// grow asks for nodes.
func (ps *pass) grow() {
	p := ps.p
	if len(p.cfg.Offers) == 0 && p.asleep == 0 {
		return
	}
	g := &growth{ps: ps, started: map[core.JobID]int{}}
	for i := range ps.plan.Starts {
		g.started[ps.plan.Starts[i].Job]++
	}
	g.begin()
	for _, w := range g.waiting() {
		if g.served >= growMost {
			break
		}
		g.job(w)
	}
	ps.plan.Provision = g.wishes()
}

// begin lays out what is on its way, and what there may be.
func (g *growth) begin() {
	p, now := g.ps.p, g.ps.plan.Now
	for i := range p.cfg.Offers {
		g.left = append(g.left, p.cfg.Offers[i].Max)
	}
	g.coming, g.used = make([][]core.Time, len(g.left)), make([]int32, len(g.left))
	for _, a := range p.ledger.order {
		k := p.offer(a.node.Offer)
		switch {
		case k < 0:
		case a.node.Flags.Has(core.NodePoweringUp) && a.node.Wakeable():
			g.coming[k] = append(g.coming[k], max(now, a.node.Ready))
		default:
			g.left[k]--
		}
	}
	for k := range g.coming {
		slices.Sort(g.coming[k])
	}
}

// ready is when the n-th node that is taken of an offer is there.
func (g *growth) ready(k int, n int32) core.Time {
	if int(n) < len(g.coming[k]) {
		return g.coming[k][n]
	}
	return after(g.ps.plan.Now, core.Time(g.ps.p.cfg.Offers[k].PowerUp)*1e6)
}

// wishes is what is still to be asked for.
func (g *growth) wishes() (out []Provision) {
	for _, x := range g.asks {
		if k := g.ps.p.offer(x.Offer); k >= 0 {
			x.Count = g.used[k] - int32(len(g.coming[k]))
			x.Price = g.ps.p.cfg.Offers[k].Price * core.Price(x.Count)
		}
		if x.Count > 0 {
			out = append(out, x)
		}
	}
	return out
}

// offer finds an offer by name; -1: there is none.
func (p *Planner) offer(name string) int {
	if name == "" {
		return -1
	}
	return slices.IndexFunc(p.cfg.Offers, func(o core.Offer) bool { return o.Name == name })
}

// sample makes a node of an offer.
func (p *Planner) sample(k int) *account {
	o := &p.cfg.Offers[k]
	return p.account(&core.Node{Name: core.NodeName("(" + o.Name + ")"), Roles: core.Compute, Hardware: o.Hardware, Features: o.Features})
}

// account is a node on which nothing runs.
func (p *Planner) account(n *core.Node) *account {
	l := NewLedger()
	l.Rule(p.ledger.rules)
	l.SetNode(n)
	return l.nodes[n.Name]
}

// awake is a node as it will be when it has come up.
func (p *Planner) awake(a *account) *account {
	n := *a.node
	n.Flags &^= core.Asleep | core.NodeSilent | core.NodeUnknown
	return p.account(&n)
}

// longing is a job that waits, with as many of its tasks as do.
type longing struct {
	job   *core.Job
	class *class
	part  *partition
	e     entry
	tasks int
}

// waiting lists the jobs that did not start, in the order of a pass, as many as are looked at.
func (g *growth) waiting() []longing {
	p := g.ps.p
	var out []longing
	add := func(part *partition, e entry, c *class) {
		tasks := e.job.Count() - g.started[e.job.ID]
		if tasks > 0 && hetOf(e.job) == nil {
			out = append(out, longing{e.job, c, part, e, tasks})
		}
	}
	for _, part := range p.parts {
		n := 0
		for c := (cursor{q: &part.queue}); c.head() != nil && n < growMost; c.next() {
			e := c.head()
			if w := p.pending[e.job.ID]; w.class != nil && e.slot == w.class.first() && !g.ps.limited(e) {
				add(part, *e, w.class)
				n++
			}
		}
	}
	if p.hopelessGrow() {
		for _, w := range p.pending {
			if w.class != nil && w.class.first() == nil && len(w.class.slots) > 0 {
				s := &w.class.slots[0]
				add(s.part, entryOf(w.job, s, nil), w.class)
			}
		}
	}
	slices.SortFunc(out, func(a, b longing) int {
		switch {
		case higher(a.part, &a.e, b.part, &b.e):
			return -1
		case higher(b.part, &b.e, a.part, &a.e):
			return 1
		}
		return 0
	})
	return out
}

// hopelessGrow tells whether there are classes that only other nodes could hold.
func (p *Planner) hopelessGrow() bool {
	for _, c := range p.classes {
		if c.first() == nil {
			return true
		}
	}
	return false
}

// expected is when a job would start on the nodes there are, as far as the plan knows: if it has no reservation, not before
// the first of its queue.
func (g *growth) expected(w *longing) core.Time {
	plan := g.ps.plan
	if t, ok := plan.expected[w.job.ID]; ok {
		return t
	}
	if w.class.first() == nil {
		return never
	}
	at := never
	for i := range w.class.slots {
		s := &w.class.slots[i]
		if s.why != nil {
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

// job finds nodes for a job, or for the tasks of an array.
func (g *growth) job(w longing) {
	wait := g.expected(&w)
	for range w.tasks {
		if g.served++; g.served > growMost || !g.one(&w, wait) {
			return
		}
	}
}

// way is one way to hold a job.
type way struct {
	slot  *slot
	picks []pick
	from  []sprout // the picks are among these; those from fresh on are new
	fresh int
	offer int
	price core.Price
	ready core.Time
}

func (g *growth) one(w *longing, wait core.Time) bool {
	var best *way
	for i := range w.class.slots {
		s := &w.class.slots[i]
		if down(s.part.State) || s.over || len(s.ways) > 0 || len(s.need.must) > 0 && g.ps.p.asleep == 0 {
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
func (g *growth) ways(w *longing, s *slot, wait core.Time) (out []*way) {
	p, now := g.ps.p, g.ps.plan.Now
	nodes := g.sprouts
	if wait == never && s.need.nodesMax > 1 { // it may need what others have now, together with more
		nodes = g.inTime()
	}
	var base []sprout
	for _, sp := range nodes {
		if sp.ready < wait && g.serves(&sp, s, w.job.Spec) {
			base = append(base, sp)
		}
	}
	if c := g.choose(s, base, len(base), -1); c != nil {
		return []*way{c}
	}
	worth := func(powerUp core.Seconds) bool { return wait > after(now, 2*core.Time(powerUp)*1e6) }
	if p.asleep > 0 {
		all := slices.Clone(base)
		for _, a := range p.accounts(s.part) {
			n := a.node
			if n.Offer != "" || !n.Flags.Any(core.NodePoweredDown|core.NodePoweringUp) || !n.Wakeable() || g.woken(n.Name) || !worth(n.Resume) {
				continue
			}
			ready := after(now, core.Time(n.Resume)*1e6)
			if n.Flags.Has(core.NodePoweringUp) {
				ready = max(now, n.Ready)
			}
			all = append(all, sprout{a: p.awake(a), offer: -1, ready: ready})
		}
		if c := g.choose(s, all, len(base), -1); c != nil {
			out = append(out, c)
		}
	}
	most := w.job.Spec.More().MaxPrice
	for k := range p.cfg.Offers {
		o := &p.cfg.Offers[k]
		n := min(g.left[k], s.need.nodesMax)
		if n <= 0 || !o.Serves(s.part.Name, w.job.Spec.Project) || most > 0 && o.Price > most || !worth(o.PowerUp) {
			continue
		}
		all := slices.Clone(base)
		for i := range n {
			all = append(all, sprout{a: p.sample(k), offer: k, ready: g.ready(k, g.used[k]+i)})
		}
		if c := g.choose(s, all, len(base), k); c != nil {
			out = append(out, c)
		}
	}
	return out
}

// up lists the nodes that are up, as they will be when all that runs on them has ended, as far as it ever does.
func (g *growth) up() []sprout {
	if g.there != nil {
		return g.there
	}
	p := g.ps.p
	free := map[core.NodeName]core.Time{}
	for w := (walk[ending, *ending]{q: &p.ends}); w.head() != nil; w.next() {
		e := w.head()
		for i := range e.h.alloc.Nodes {
			free[e.h.alloc.Nodes[i].Node] = e.at // they come in order
		}
	}
	g.there = []sprout{}
	for _, a := range p.ledger.order {
		if at := max(free[a.node.Name], g.ps.plan.Now); a.node.Usable() && at < never {
			g.there = append(g.there, sprout{a: p.account(a.node), offer: -1, ready: at})
		}
	}
	return g.there
}

// inTime lists the nodes that are up or on their way, as they will be when nobody needs them any more.
func (g *growth) inTime() []sprout {
	out := slices.Clone(g.up())
	for _, sp := range g.sprouts {
		if sp.until < never {
			out = append(out, sprout{a: g.ps.p.account(sp.a.node), offer: sp.offer, ready: max(sp.ready, sp.until)})
		}
	}
	return out
}

// serves tells whether a job in a partition could be on a node that is on its way.
func (g *growth) serves(sp *sprout, s *slot, spec *core.Spec) bool {
	if sp.offer >= 0 {
		return g.ps.p.cfg.Offers[sp.offer].Serves(s.part.Name, spec.Project)
	}
	return s.part.nodes == nil || s.part.nodes[sp.a.node.Name]
}

// woken tells whether a node is asked to come up already.
func (g *growth) woken(name core.NodeName) bool {
	return slices.ContainsFunc(g.sprouts, func(sp sprout) bool { return sp.a.node.Name == name })
}

// choose holds a job with nodes, those that are on their way first.
func (g *growth) choose(s *slot, from []sprout, fresh, offer int) *way {
	if len(from) == 0 {
		return nil
	}
	look := look{nodes: make([]*account, len(from))}
	for i := range from {
		look.nodes[i] = from[i].a
	}
	picks := s.need.choose(look, nil)
	if picks == nil {
		return nil
	}
	c := &way{slot: s, picks: picks, from: from, fresh: fresh, offer: offer}
	for _, pk := range picks {
		i := slices.Index(look.nodes, pk.a)
		if i >= fresh && offer >= 0 {
			c.price += g.ps.p.cfg.Offers[offer].Price
		}
		c.ready = max(c.ready, from[i].ready)
	}
	return c
}

// take gives a job its nodes, and asks for those that are new.
func (g *growth) take(w *longing, c *way) {
	plan := g.ps.plan
	news, ready := int32(0), core.Time(0)
	for _, pk := range c.picks {
		i := slices.IndexFunc(c.from, func(sp sprout) bool { return sp.a == pk.a })
		use := c.slot.need.use(pk.a, pk.tasks, &pk.a.now)
		pk.a.now.sub(&use)
		if i >= c.fresh {
			g.sprouts = append(g.sprouts, c.from[i])
		}
		if k := slices.IndexFunc(g.sprouts, func(sp sprout) bool { return sp.a == pk.a }); k >= 0 {
			g.sprouts[k].until = max(g.sprouts[k].until, after(c.ready, length(w.job.Spec)))
		}
		if i < c.fresh {
			continue
		}
		news++
		ready = max(ready, c.from[i].ready)
		if c.offer < 0 {
			if g.ps.p.ledger.nodes[pk.a.node.Name].node.Flags.Has(core.NodePoweringUp) {
				news--
			} else {
				g.asks = append(g.asks, Provision{Node: pk.a.node.Name, Count: 1, For: w.job.ID, Ready: c.from[i].ready})
			}
		}
	}
	text := "nodes that are on their way could hold it"
	switch k := c.offer; {
	case news > 0 && k < 0:
		text = fmt.Sprintf("%d node(s) that sleep could be powered up for it", news)
	case news > 0:
		o := &g.ps.p.cfg.Offers[k]
		g.left[k] -= news
		g.used[k] += news
		if more := min(news, g.used[k]-int32(len(g.coming[k]))); more > 0 {
			text = fmt.Sprintf("%d of offer %s could be provisioned for it", more, o.Name)
			if !slices.ContainsFunc(g.asks, func(a Provision) bool { return a.Offer == o.Name }) {
				g.asks = append(g.asks, Provision{Offer: o.Name, For: w.job.ID, Ready: ready})
			}
		}
	}
	if plan.growing == nil {
		plan.growing = map[core.JobID]growing{}
	}
	if _, ok := plan.growing[w.job.ID]; !ok {
		plan.growing[w.job.ID] = growing{text: text, at: c.ready}
	}
}

// grown adds what nodes that are not there could do to the reason a job waits.
func (p *Plan) grown(j *core.Job, w Why) Why {
	g, ok := p.growing[j.ID]
	if !ok {
		return w
	}
	w.Text += fmt.Sprintf("; %s, in %v", g.text, g.at.Sub(p.Now).Round(time.Second))
	if w.Expected == 0 || g.at < w.Expected {
		w.Expected, w.Estimate = g.at, true
	}
	return w
}

// CouldGrow tells whether some offer could hold a job that the nodes there are cannot.
func CouldGrow(offers []core.Offer, spec *core.Spec, part core.PartitionName, names Names) bool {
	for i := range offers {
		o := &offers[i]
		if most := spec.More().MaxPrice; !o.Serves(part, spec.Project) || most > 0 && o.Price > most || o.Max <= 0 {
			continue
		}
		l := NewLedger()
		n := needOf(spec, names)
		for k := range min(o.Max, max(n.nodesMin, n.nodesMax)) {
			l.SetNode(&core.Node{ID: int64(k + 1), Name: core.NodeName(fmt.Sprint(o.Name, k)), Roles: core.Compute, Hardware: o.Hardware, Features: o.Features})
		}
		n.settle(l, false)
		if len(n.must) == 0 && l.canEver(&n, nil, l.order) == nil {
			return true
		}
	}
	return false
}
