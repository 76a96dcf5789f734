package sched

import (
	"cmp"
	"encoding/binary"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/policy"
)

// outlook is a rough picture of the cluster on which a forecast lets the queue run off by the rule of a pass: what fits
// starts, in order; the first of each partition that does not has a moment kept for it on some nodes; those behind may
// not be in its way. It is rough in that nodes that are alike and in the same partitions are tried together, that only
// amounts count and not which CPUs they are, and in time: it goes from event to event while there are few, later in steps
// that grow with the distance, where a job shorter than a step takes its share of it.
type outlook struct {
	now   core.Time
	fcfs  bool
	pools []pool
	byKey map[string]int32
	nodes []outlookNode
	uses  []int64 // what anything takes of a node, as in pool.free; others point into it

	classes []outlookClass
	waiting []outlookJob // in order
	later   []outlookJob // by when they may start
	laterAt []core.Time
	arrays  []outlookArray
	byBase  map[core.JobID]int32
	ends    list[outlookEnd, *outlookEnd]
	seq     int32

	// The event that is being worked off.
	at, span core.Time // when it is, and how long it is at least until the next
	events   int32
	settled  bool // what has ended by then is free
	next     int  // of waiting
	gone     int  // of waiting, those that have started
	live     int  // classes with jobs that wait
	dead     int  // of them, those of which none can start in this event any more
	heads    []outlookHead
	claims   []outlookClaim
	lefts    []int64 // what claims leave

	outlookAside
	parts []*partition

	picks []outlookPick
	tmp   balance
	then  []int64 // scratch of reserve
	key   []byte
}

// fraction is the parts a unit of a resource is counted in, so that a short job can take a part of one.
const fraction = 1024

// Until so many events they are exact; from then on a step is at least the distance from now by outlookGrain.
const (
	outlookExact = 128
	outlookGrain = 32
)

// pool is nodes that are alike.
type pool struct {
	rep   *account // one of them
	books []*advance
	width int
	in    []byte  // the partitions it is in: bit i of all
	size  int     // nodes
	ids   []int32 // in outlook.nodes
	free  []int64 // of each: CPUs, MiB of memory, then the node's kinds of gres; all in 1/fraction
	most  []int64 // of each poolBlock of nodes, the most that one has free of each
	above []int32 // how many have more than so many CPUs free
	claim []int32 // the first claim of each, if its
	event []int32 // is the present one
}

const poolBlock = 32

// outlookNode is where a node's account is.
type outlookNode struct{ pool, place int32 }

// outlookClass is where the jobs of a class may be.
type outlookClass struct {
	holds    []foothold
	ask      *policy.Ask // for limits
	lic      *licenceAsk
	own      []*advance // reservations it may be in,
	confined bool       // and nowhere else
	tasks    int64      // of one job
	wide     bool       // each node takes one part of a job at most
	lane     int32
	jobs     int32 // that wait
	// The event that last refused one, and how long the shortest it refused may run; 0: none of them can start.
	event int32
	least core.Time
}

// foothold is a pool a class may use: so many tasks take so much of a node.
type foothold struct {
	pool, use int32 // use is a place in outlook.uses
	tasks     int64
	then      int // where the pool is in outlook.then
	shut      bool
}

// outlookPick is a node and how often a foothold's use is taken of it.
type outlookPick struct {
	place, hold int32
	times       int64
}

// outlookJob is a job that waits, in few bytes.
type outlookJob struct {
	id     core.JobID
	length core.Time
	class  int32 // -1: it has started
	array  int32 // 0: none
	gate   int32 // 0: it is under no limits
}

// outlookArray is tasks that wait, those that run, and how many may at once; 0: all.
type outlookArray struct{ left, running, most int64 }

// outlookEnd is something coming free on a node.
type outlookEnd struct {
	at         core.Time
	seq        int32
	node, use  int32
	array      int32
	times, num int64 // so many times use, and of that so many parts of fraction
	tasks      int64 // of the array that end
	back       *outlookBack
}

func (e *outlookEnd) compare(f *outlookEnd) int {
	return cmp.Or(cmp.Compare(e.at, f.at), cmp.Compare(e.seq, f.seq))
}

// outlookHead is the first job of a partition that cannot start, in an event: when it could.
type outlookHead struct {
	event int32
	at    core.Time
}

// outlookClaim is a node kept for a head. What is left beside it is in outlook.lefts.
type outlookClaim struct {
	head, left, next int32
}

func newOutlook(now core.Time, p *Planner) *outlook {
	return &outlook{
		now: now, at: now, fcfs: p.cfg.Rule == RuleFCFS, events: 1, byKey: map[string]int32{}, byBase: map[core.JobID]int32{},
		heads: make([]outlookHead, len(p.parts)), arrays: make([]outlookArray, 1), parts: p.parts, outlookAside: newOutlookAside(now, p),
	}
}

// addNode adds a node to the pool of its like.
func (o *outlook) addNode(a *account, parts []*partition) {
	hw := &a.node.Hardware
	k := binary.AppendVarint(o.key[:0], int64(hw.CPUs))
	k = binary.AppendVarint(k, int64(hw.Memory))
	k = binary.AppendVarint(k, int64(hw.TmpDisk))
	k = binary.AppendVarint(k, int64(a.node.Host.KeptTo()))
	for i, g := range a.gres {
		k = append(append(append(append(k, g.name...), ':'), g.typ...), 0)
		k = binary.AppendVarint(binary.AppendVarint(binary.AppendVarint(append(k, g.vendor...), int64(g.able)), int64(g.mem)), a.full.gres[i])
	}
	k = append(k, 0)
	for _, f := range a.node.Features {
		k = append(append(k, f...), 0)
	}
	k = append(k, 0)
	for i, r := range o.books {
		if r.on[a.node.Name] {
			k = binary.AppendVarint(k, int64(i))
		}
	}
	k = append(k, 0)
	at := len(k)
	for i, part := range parts {
		if i%8 == 0 {
			k = append(k, 0)
		}
		if part.nodes == nil || part.nodes[a.node.Name] {
			k[len(k)-1] |= 1 << (i % 8)
		}
	}
	o.key = k
	n, ok := o.byKey[string(k)]
	if !ok {
		n = int32(len(o.pools))
		o.pools = append(o.pools, pool{rep: a, width: 2 + len(a.gres), in: slices.Clone(k[at:]), above: make([]int32, hw.CPUs)})
		o.byKey[string(k)] = n
		for _, r := range o.books {
			if r.on[a.node.Name] {
				o.pools[n].books = append(o.pools[n].books, r)
			}
		}
	}
	w := &o.pools[n]
	a.pool = int32(len(o.nodes))
	o.nodes = append(o.nodes, outlookNode{pool: n, place: int32(w.size)})
	from := len(w.free)
	w.free = append(w.free, int64(a.full.cpus)*fraction, mebi(a.full.mem)*fraction)
	for i := range a.gres {
		w.free = append(w.free, a.full.gres[i]*fraction)
	}
	if w.size%poolBlock == 0 {
		w.most = append(w.most, w.free[from:]...)
	}
	w.size++
	w.ids = append(w.ids, a.pool)
	w.claim, w.event = append(w.claim, 0), append(w.event, 0)
	for i := range w.above {
		w.above[i]++
	}
}

func mebi(b core.Bytes) int64 { return int64((b + core.MiB - 1) / core.MiB) }

// addRunning takes what a job holds on a node off what is free, until it ends.
func (o *outlook) addRunning(a *account, na *core.NodeAlloc, h *holding, end core.Time, first bool) {
	if a.pool < 0 || int(a.pool) >= len(o.nodes) {
		return
	}
	e := outlookEnd{at: max(end, o.now+overdue), node: a.pool, use: int32(len(o.uses)), times: 1, num: fraction}
	u := &o.tmp
	*u = balance{gres: append(u.gres[:0], a.full.gres...)}
	clear(u.gres)
	a.add(u, nil, na, h.terms, 1)
	if h.terms.Whole {
		u.cpus = max(u.cpus, a.full.cpus)
	}
	o.uses = append(o.uses, int64(u.cpus)*fraction, mebi(u.mem)*fraction)
	for _, g := range u.gres {
		o.uses = append(o.uses, g*fraction)
	}
	if i := o.byBase[h.base]; i != 0 && first {
		e.array, e.tasks = i, 1
		o.arrays[i].running++
	}
	if first {
		e.back = o.addHolder(h, end)
	}
	o.take(&e)
}

// take books something that comes free again.
func (o *outlook) take(e *outlookEnd) {
	e.seq = o.seq
	o.seq++
	o.book(e, -1)
	o.ends.insert(*e)
}

// book gives what an end frees back to its node, or with sign -1 takes it.
func (o *outlook) book(e *outlookEnd, sign int64) {
	n := o.nodes[e.node]
	w := &o.pools[n.pool]
	at := int(n.place) * w.width
	free := w.free[at : at+w.width]
	was := free[0]
	o.add(free, e, sign)
	lo, hi := min(was, free[0])/fraction, max(was, free[0])/fraction
	for i := max(0, lo); i < min(hi, int64(len(w.above))); i++ {
		w.above[i] += int32(sign)
	}
	block := int(n.place) / poolBlock
	most := w.most[block*w.width : (block+1)*w.width]
	if sign > 0 {
		for i, v := range free {
			most[i] = max(most[i], v)
		}
		return
	}
	clear(most)
	for k := block * poolBlock; k < min((block+1)*poolBlock, w.size); k++ {
		for i, v := range w.free[k*w.width : (k+1)*w.width] {
			most[i] = max(most[i], v)
		}
	}
}

// add gives what an end frees to an amount of a node, or takes it from it.
func (o *outlook) add(to []int64, e *outlookEnd, sign int64) {
	for i, u := range o.uses[e.use : int(e.use)+len(to)] {
		to[i] += sign * (u * e.times * e.num / fraction)
	}
}

// addClass works out where the jobs of a class may be.
func (o *outlook) addClass(c *class, spec *core.Spec) int32 {
	oc := outlookClass{lane: c.first().part.lane}
	o.setAside(&oc, c.first(), spec)
	for i := range c.slots {
		s := &c.slots[i]
		if s.why != nil {
			continue
		}
		n := s.need
		n.not = nil // a name or two out of a pool do not count
		oc.tasks, oc.wide = int64(n.tasks), n.nodesMin > 1
		per := n.tasks
		switch {
		case oc.wide:
			per = (n.tasks + n.nodesMin - 1) / n.nodesMin
		case n.nodesMax > 1 && n.memNode == 0 && len(n.gres) == 0 && n.minCPUs <= n.cpusPerTask && !n.exclusive && n.more == nil:
			per = 1 // it goes wherever there is a place for a task
		}
		empty := look{empty: true}
		for k := range o.pools {
			w := &o.pools[k]
			if w.in[s.part.lane/8]&(1<<(s.part.lane%8)) == 0 || oc.stands(int32(k)) || !n.suits(w.rep, &look{}) {
				continue
			}
			room := empty.room(&n, w.rep)
			if room <= 0 || room < per && n.nodesMax <= 1 {
				continue
			}
			tasks := min(per, room)
			oc.holds = append(oc.holds, foothold{pool: int32(k), use: int32(len(o.uses)), tasks: int64(tasks)})
			u := n.use(w.rep, tasks, &w.rep.full)
			o.uses = append(o.uses, int64(u.cpus)*fraction, mebi(u.mem)*fraction)
			for g := range w.rep.gres {
				v := int64(0)
				if g < len(u.gres) {
					v = u.gres[g]
				}
				o.uses = append(o.uses, v*fraction)
			}
		}
	}
	o.classes = append(o.classes, oc)
	return int32(len(o.classes) - 1)
}

func (c *outlookClass) stands(pool int32) bool {
	return slices.ContainsFunc(c.holds, func(h foothold) bool { return h.pool == pool })
}

// addWaiting puts down a job.
func (o *outlook) addWaiting(j *core.Job, class, gate int32) {
	w := outlookJob{id: j.ID, length: length(j.Spec), class: class, gate: gate}
	if j.IsArray() {
		w.array = int32(len(o.arrays))
		o.arrays = append(o.arrays, outlookArray{left: int64(j.Array.Tasks.Len()), most: int64(j.Spec.Throttle)})
		o.byBase[j.Array.Base] = w.array
	}
	if j.Eligible > o.now {
		o.later, o.laterAt = append(o.later, w), append(o.laterAt, j.Eligible)
		return
	}
	o.ripe(w)
}

// ripe puts a job behind those that wait.
func (o *outlook) ripe(w outlookJob) {
	c := &o.classes[w.class]
	if c.jobs++; c.jobs == 1 {
		o.live++
	}
	o.waiting = append(o.waiting, w)
}
