package sched

import (
	"cmp"
	"encoding/binary"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/policy"
	"bireme.dev/bireme/internal/sched/advance"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/ledger"
	"bireme.dev/bireme/internal/sched/sorted"
)

// forecastModel is a rough picture of the cluster on which a forecast lets the queue run off by the rule of a pass:
// what fits starts, in order; the first of each partition that does not has a moment kept for it on some nodes; those
// behind may not be in its way. It is rough in that nodes that are alike and in the same partitions are tried together,
// that only amounts count and not which CPUs they are, and in time: it goes from event to event while there are few,
// later in steps that grow with the distance, where a job shorter than a step takes its share of it.
type forecastModel struct {
	now   core.Time
	fcfs  bool
	pools []nodePool
	byKey map[string]int32
	nodes []modelNode
	uses  []int64 // what anything takes of a node, as in pool.free; others point into it

	classes    []modelClass
	waiting    []modelJob // in order
	ineligible []modelJob // by when they may start
	eligibleAt []core.Time
	arrays     []modelArray
	byBase     map[core.JobID]int32
	ends       sorted.List[modelEnd, *modelEnd]
	seq        int32

	// The event that is being worked off.
	eventTime, minStep core.Time // when it is, and how long it is at least until the next
	events             int32
	released           bool // what has ended by then is free
	next               int  // of waiting
	startedCount       int  // of waiting, those that have started
	liveClasses        int  // classes with jobs that wait
	deadClasses        int  // of them, those of which none can start in this event any more
	heads              []modelHead
	reserved           []modelReservation
	leaves             []int64 // what claims leave

	modelLimits
	partitions []*partition

	choices  []modelChoice
	tmp      ledger.Resources
	freeThen []int64 // scratch of reserve
	key      []byte
}

// fraction is the parts a unit of a resource is counted in, so that a short job can take a part of one.
const fraction = 1024

// Until so many events they are exact; from then on a step is at least the distance from now by stepGrain.
const (
	exactEvents = 128
	stepGrain   = 32
)

// nodePool is nodes that are alike.
type nodePool struct {
	sample     *ledger.Node // one of them
	advances   []*advance.Reservation
	width      int
	partitions []byte  // the partitions it is in: bit i of all
	size       int     // nodes
	ids        []int32 // in outlook.nodes
	free       []int64 // of each: CPUs, MiB of memory, then the node's kinds of gres; all in 1/fraction
	blockMax   []int64 // of each poolBlockSize of nodes, the most that one has free of each
	cpusAbove  []int32 // how many have more than so many CPUs free
	reserved   []int32 // the first claim of each, if its
	event      []int32 // is the present one
}

const poolBlockSize = 32

// modelNode is where a node's account is.
type modelNode struct{ pool, place int32 }

// modelClass is where the jobs of a class may be.
type modelClass struct {
	pools      []classPool
	limitAsk   *policy.Ask // for limits
	licenses   *alloc.LicenseRequest
	advances   []*advance.Reservation // reservations it may be in,
	confined   bool                   // and nowhere else
	tasks      int64                  // of one job
	onePerNode bool                   // each node takes one part of a job at most
	partition  int32
	jobs       int32 // that wait
	// The event that last refused one, and how long the shortest it refused may run; 0: none of them can start.
	refusedEvent int32
	minRefused   core.Time
}

// classPool is a pool a class may use: so many tasks take so much of a node.
type classPool struct {
	pool, use  int32 // use is a place in outlook.uses
	tasks      int64
	freeThenAt int // where the pool is in outlook.then
	closed     bool
}

// modelChoice is a node and how often a foothold's use is taken of it.
type modelChoice struct {
	place, pool int32
	times       int64
}

// modelJob is a job that waits, in few bytes.
type modelJob struct {
	id        core.JobID
	timeLimit core.Time
	class     int32 // -1: it has started
	array     int32 // 0: none
	gate      int32 // 0: it is under no limits
}

// modelArray is tasks that wait, those that run, and how many may at once; 0: all.
type modelArray struct{ left, running, throttle int64 }

// modelEnd is something coming free on a node.
type modelEnd struct {
	at           core.Time
	seq          int32
	node, use    int32
	array        int32
	times, share int64 // so many times use, and of that so many parts of fraction
	tasks        int64 // of the array that end
	release      *modelRelease
}

func (e *modelEnd) Compare(f *modelEnd) int {
	return cmp.Or(cmp.Compare(e.at, f.at), cmp.Compare(e.seq, f.seq))
}

// modelHead is the first job of a partition that cannot start, in an event: when it could.
type modelHead struct {
	event int32
	at    core.Time
}

// modelReservation is a node kept for a head. What is left beside it is in outlook.lefts.
type modelReservation struct {
	head, leaves, next int32
}

func newForecastModel(now core.Time, p *Planner) *forecastModel {
	return &forecastModel{
		now: now, eventTime: now, fcfs: p.cfg.Rule == RuleFCFS, events: 1, byKey: map[string]int32{},
		byBase: map[core.JobID]int32{},
		heads:  make([]modelHead, len(p.partitions)), arrays: make([]modelArray,
			1), partitions: p.partitions, modelLimits: newModelLimits(now, p),
	}
}

// addNode adds a node to the pool of its like.
func (o *forecastModel) addNode(a *ledger.Node, parts []*partition) {
	hw := &a.Record.Hardware
	k := binary.AppendVarint(o.key[:0], int64(hw.CPUs))
	k = binary.AppendVarint(k, int64(hw.Memory))
	k = binary.AppendVarint(k, int64(hw.TmpDisk))
	k = binary.AppendVarint(k, int64(a.Record.Host.KeptTo()))
	for i, g := range a.Gres {
		k = append(append(append(append(k, g.Name...), ':'), g.Typ...), 0)
		k = binary.AppendVarint(binary.AppendVarint(binary.AppendVarint(append(k, g.Vendor...), int64(g.Capability)),
			int64(g.Mem)), a.Capacity.Gres[i])
	}
	k = append(k, 0)
	for _, f := range a.Record.Features {
		k = append(append(k, f...), 0)
	}
	k = append(k, 0)
	for i, r := range o.advances {
		if r.Nodes[a.Record.Name] {
			k = binary.AppendVarint(k, int64(i))
		}
	}
	k = append(k, 0)
	at := len(k)
	for i, part := range parts {
		if i%8 == 0 {
			k = append(k, 0)
		}
		if part.nodes == nil || part.nodes[a.Record.Name] {
			k[len(k)-1] |= 1 << (i % 8)
		}
	}
	o.key = k
	n, ok := o.byKey[string(k)]
	if !ok {
		n = int32(len(o.pools))
		o.pools = append(o.pools, nodePool{
			sample: a, width: 2 + len(a.Gres), partitions: slices.Clone(k[at:]),
			cpusAbove: make([]int32, hw.CPUs),
		})
		o.byKey[string(k)] = n
		for _, r := range o.advances {
			if r.Nodes[a.Record.Name] {
				o.pools[n].advances = append(o.pools[n].advances, r)
			}
		}
	}
	w := &o.pools[n]
	a.ForecastIndex = int32(len(o.nodes))
	o.nodes = append(o.nodes, modelNode{pool: n, place: int32(w.size)})
	from := len(w.free)
	w.free = append(w.free, int64(a.Capacity.Cpus)*fraction, toMiB(a.Capacity.Mem)*fraction)
	for i := range a.Gres {
		w.free = append(w.free, a.Capacity.Gres[i]*fraction)
	}
	if w.size%poolBlockSize == 0 {
		w.blockMax = append(w.blockMax, w.free[from:]...)
	}
	w.size++
	w.ids = append(w.ids, a.ForecastIndex)
	w.reserved, w.event = append(w.reserved, 0), append(w.event, 0)
	for i := range w.cpusAbove {
		w.cpusAbove[i]++
	}
}

func toMiB(b core.Bytes) int64 { return int64((b + core.MiB - 1) / core.MiB) }

// addRunning takes what a job holds on a node off what is free, until it ends.
func (o *forecastModel) addRunning(a *ledger.Node, na *core.NodeAlloc, h *ledger.Allocation, end core.Time,
	first bool,
) {
	if a.ForecastIndex < 0 || int(a.ForecastIndex) >= len(o.nodes) {
		return
	}
	e := modelEnd{
		at: max(end, o.now+alloc.OverdueDelay), node: a.ForecastIndex, use: int32(len(o.uses)), times: 1,
		share: fraction,
	}
	u := &o.tmp
	*u = ledger.Resources{Gres: append(u.Gres[:0], a.Capacity.Gres...)}
	clear(u.Gres)
	a.Book(u, nil, na, h.Terms, 1)
	if h.Terms.Exclusive {
		u.Cpus = max(u.Cpus, a.Capacity.Cpus)
	}
	o.uses = append(o.uses, int64(u.Cpus)*fraction, toMiB(u.Mem)*fraction)
	for _, g := range u.Gres {
		o.uses = append(o.uses, g*fraction)
	}
	if i := o.byBase[h.ArrayBase]; i != 0 && first {
		e.array, e.tasks = i, 1
		o.arrays[i].running++
	}
	if first {
		e.release = o.bookRunning(h, end)
	}
	o.addEnd(&e)
}

// addEnd books something that comes free again.
func (o *forecastModel) addEnd(e *modelEnd) {
	e.seq = o.seq
	o.seq++
	o.book(e, -1)
	o.ends.Insert(*e)
}

// book gives what an end frees back to its node, or with sign -1 takes it.
func (o *forecastModel) book(e *modelEnd, sign int64) {
	n := o.nodes[e.node]
	w := &o.pools[n.pool]
	at := int(n.place) * w.width
	free := w.free[at : at+w.width]
	was := free[0]
	o.add(free, e, sign)
	lo, hi := min(was, free[0])/fraction, max(was, free[0])/fraction
	for i := max(0, lo); i < min(hi, int64(len(w.cpusAbove))); i++ {
		w.cpusAbove[i] += int32(sign)
	}
	block := int(n.place) / poolBlockSize
	most := w.blockMax[block*w.width : (block+1)*w.width]
	if sign > 0 {
		for i, v := range free {
			most[i] = max(most[i], v)
		}
		return
	}
	clear(most)
	for k := block * poolBlockSize; k < min((block+1)*poolBlockSize, w.size); k++ {
		for i, v := range w.free[k*w.width : (k+1)*w.width] {
			most[i] = max(most[i], v)
		}
	}
}

// add gives what an end frees to an amount of a node, or takes it from it.
func (o *forecastModel) add(to []int64, e *modelEnd, sign int64) {
	for i, u := range o.uses[e.use : int(e.use)+len(to)] {
		to[i] += sign * (u * e.times * e.share / fraction)
	}
}

// addClass works out where the jobs of a class may be.
func (o *forecastModel) addClass(c *classInfo, spec *core.Spec) int32 {
	oc := modelClass{partition: c.firstUsable().part.index}
	o.setClassLimits(&oc, c.firstUsable(), spec)
	for i := range c.partitions {
		s := &c.partitions[i]
		if s.reason != nil {
			continue
		}
		n := s.req
		n.Excluded = nil // a name or two out of a pool do not count
		oc.tasks, oc.onePerNode = int64(n.Tasks), n.NodesMin > 1
		per := n.Tasks
		switch {
		case oc.onePerNode:
			per = (n.Tasks + n.NodesMin - 1) / n.NodesMin
		case n.NodesMax > 1 && n.MemPerNode == 0 && len(n.Gres) == 0 && n.MinCPUs <= n.CpusPerTask && !n.Exclusive &&
			n.Detail == nil:
			per = 1 // it goes wherever there is a place for a task
		}
		empty := ledger.View{IfIdle: true}
		for k := range o.pools {
			w := &o.pools[k]
			if w.partitions[s.part.index/8]&(1<<(s.part.index%8)) == 0 || oc.hasPool(int32(k)) || !n.Accepts(w.sample,
				&ledger.View{}) {
				continue
			}
			room := n.TasksAt(&empty, w.sample)
			if room <= 0 || room < per && n.NodesMax <= 1 {
				continue
			}
			tasks := min(per, room)
			oc.pools = append(oc.pools, classPool{pool: int32(k), use: int32(len(o.uses)), tasks: int64(tasks)})
			u := n.Usage(w.sample, tasks, &w.sample.Capacity)
			o.uses = append(o.uses, int64(u.Cpus)*fraction, toMiB(u.Mem)*fraction)
			for g := range w.sample.Gres {
				v := int64(0)
				if g < len(u.Gres) {
					v = u.Gres[g]
				}
				o.uses = append(o.uses, v*fraction)
			}
		}
	}
	o.classes = append(o.classes, oc)
	return int32(len(o.classes) - 1)
}

func (c *modelClass) hasPool(pool int32) bool {
	return slices.ContainsFunc(c.pools, func(h classPool) bool { return h.pool == pool })
}

// addWaiting puts down a job.
func (o *forecastModel) addWaiting(j *core.Job, class, gate int32) {
	w := modelJob{id: j.ID, timeLimit: alloc.TimeLimit(j.Spec), class: class, gate: gate}
	if j.IsArray() {
		w.array = int32(len(o.arrays))
		o.arrays = append(o.arrays, modelArray{left: int64(j.Array.Tasks.Len()), throttle: int64(j.Spec.Throttle)})
		o.byBase[j.Array.Base] = w.array
	}
	if j.Eligible > o.now {
		o.ineligible, o.eligibleAt = append(o.ineligible, w), append(o.eligibleAt, j.Eligible)
		return
	}
	o.enqueue(w)
}

// enqueue puts a job behind those that wait.
func (o *forecastModel) enqueue(w modelJob) {
	c := &o.classes[w.class]
	if c.jobs++; c.jobs == 1 {
		o.liveClasses++
	}
	o.waiting = append(o.waiting, w)
}
