package forecast

import (
	"cmp"
	"encoding/binary"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/policy"
	"bireme.dev/bireme/internal/sched/advance"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/fit"
	"bireme.dev/bireme/internal/sched/ledger"
	"bireme.dev/bireme/internal/sched/sorted"
)

// Model is a rough picture of the cluster on which the queue runs off by the rule of a pass: what fits starts, in
// order; the first job of each partition that does not fit gets a reservation on some nodes; those behind it must not
// delay it. It is rough in three ways. Nodes that are alike and in the same partitions are tried together. Only amounts
// count, not which CPUs. And time: the model goes from event to event while there are few, later in steps that grow
// with the distance from now, where a job shorter than a step takes its share of the step.
type Model struct {
	Config
	now    core.Time
	pools  []nodePool
	byKey  map[string]int32
	nodes  []modelNode
	byNode map[*ledger.Node]int32 // index in nodes
	uses   []int64                // what jobs use of a node, laid out as nodePool.free; others have indices into it

	classes    []modelClass
	waiting    []modelJob // in order
	ineligible []modelJob // by begin time
	eligibleAt []core.Time
	arrays     []modelArray
	byBase     map[core.JobID]int32
	ends       sorted.List[modelEnd, *modelEnd]
	seq        int32
	limits

	// The current event.
	eventTime, minStep core.Time // its time, and the least time to the next one
	events             int32
	released           bool // what has ended by then is free
	next               int  // index in waiting
	startedCount       int  // jobs in waiting that have started
	liveClasses        int  // classes with jobs that wait
	deadClasses        int  // of these, the classes of which no job can start in this event any more
	heads              []modelHead
	reserved           []modelReservation
	leaves             []int64 // what reservations leave

	choices  []modelChoice
	tmp      ledger.Resources
	freeThen []int64 // scratch of reserve
	key      []byte
}

// Config is what a model needs beside nodes and jobs.
type Config struct {
	FCFS       bool // no job starts behind one that cannot
	Partitions []Partition
	Advances   []*advance.Reservation
	Licenses   map[string]int64 // totals, by name; the model changes it
	Rules      *policy.Rules    // nil: there are no limits
	Shares     *policy.Tree
}

// Partition is a partition of the cluster.
type Partition struct {
	Name  core.PartitionName
	QOS   core.QOSName
	Nodes map[core.NodeName]bool // nil: all
}

// Class is the request of jobs that are equal to the model.
type Class struct {
	Spec       *core.Spec // of one of them
	Partitions []ClassPartition
	Licenses   *core.LicenseRequest   // nil: none
	Advances   []*advance.Reservation // advance reservations its jobs may run in
	Confined   bool                   // and nowhere else
}

// ClassPartition is what the jobs of a class ask for in a partition that could hold them.
type ClassPartition struct {
	Index int32 // in Config.Partitions
	Fit   *fit.Request
}

// fraction is the number of parts of a unit of a resource, so that a short job can take less than a unit.
const fraction = 1024

// The first exactEvents events are exact; from then on a step is at least the distance from now divided by stepGrain.
const (
	exactEvents = 128
	stepGrain   = 32
)

// nodePool is a set of nodes that are alike.
type nodePool struct {
	sample     *ledger.Node // one of them
	advances   []*advance.Reservation
	width      int
	partitions []byte  // bit i: they are in partition i
	size       int     // nodes
	ids        []int32 // indices in Model.nodes
	free       []int64 // per node: CPUs, MiB of memory, then its kinds of GRES; all in 1/fraction
	blockMax   []int64 // per poolBlockSize nodes: the maximum of free over them
	cpusAbove  []int32 // number of nodes that have more than i CPUs free
	reserved   []int32 // per node: its first reservation, plus 1, if its
	event      []int32 // is the current one
}

const poolBlockSize = 32

// modelNode says where a node is: its pool, and its index there.
type modelNode struct{ pool, place int32 }

// modelClass is where the jobs of a class may run.
type modelClass struct {
	pools        []classPool
	limitRequest *policy.Request // for limits
	licenses     *core.LicenseRequest
	advances     []*advance.Reservation // advance reservations its jobs may run in,
	confined     bool                   // and nowhere else
	tasks        int64                  // of one job
	onePerNode   bool                   // each node takes one part of a job at most
	partition    int32
	jobs         int32 // that wait
	// The event that last refused a job, and the shortest time limit of those it refused; 0: no job can start.
	refusedEvent int32
	minRefused   core.Time
}

// classPool is a pool that a class may use, and what tasks of it use of a node.
type classPool struct {
	pool       int32
	use        int32 // index in Model.uses
	tasks      int64 // that take this use
	freeThenAt int   // index of the pool in Model.freeThen
	closed     bool  // advance reservations keep the class from it
}

// modelChoice is a node and how often a classPool's use is taken of it.
type modelChoice struct {
	place, pool int32
	times       int64
}

// modelJob is a job that waits. There may be 100,000 of them.
type modelJob struct {
	id        core.JobID
	timeLimit core.Time
	class     int32 // -1: it has started
	array     int32 // 0: none
	gate      int32 // 0: it is under no limits
}

// modelArray counts the tasks of an array that wait and run, and how many may run at once; 0: all.
type modelArray struct{ left, running, throttle int64 }

// modelEnd is a time at which something comes free on a node.
type modelEnd struct {
	at           core.Time
	seq          int32
	node, use    int32
	array        int32
	times, share int64 // it frees times*use*share/fraction
	tasks        int64 // of the array that end
	release      *modelRelease
}

func (e *modelEnd) Compare(f *modelEnd) int {
	return cmp.Or(cmp.Compare(e.at, f.at), cmp.Compare(e.seq, f.seq))
}

// modelHead is the head of a partition in an event: when it could start.
type modelHead struct {
	event int32
	at    core.Time
}

// modelReservation is a node reserved for a head. What it leaves is in Model.leaves.
type modelReservation struct {
	head, leaves, next int32
}

// NewModel returns a model without nodes and jobs.
func NewModel(now core.Time, c Config) *Model {
	m := &Model{
		Config: c, now: now, eventTime: now, events: 1, byKey: map[string]int32{}, byNode: map[*ledger.Node]int32{},
		byBase: map[core.JobID]int32{}, heads: make([]modelHead, len(c.Partitions)), arrays: make([]modelArray, 1),
	}
	m.initLimits()
	return m
}

// PoolCount returns the number of pools of nodes. Adding a class costs so much.
func (m *Model) PoolCount() int { return len(m.pools) }

// AddNode adds a node that is up to the pool of nodes that are like it.
func (m *Model) AddNode(node *ledger.Node) {
	hw := &node.Record.Hardware
	k := binary.AppendVarint(m.key[:0], int64(hw.CPUs))
	k = binary.AppendVarint(k, int64(hw.Memory))
	k = binary.AppendVarint(k, int64(hw.TmpDisk))
	k = binary.AppendVarint(k, int64(node.Record.Host.KeptTo()))
	k = append(append(k, node.Record.Project...), 0)
	for i, g := range node.Gres {
		k = append(append(append(append(k, g.Name...), ':'), g.Typ...), 0)
		k = binary.AppendVarint(binary.AppendVarint(binary.AppendVarint(append(k, g.Vendor...), int64(g.Capability)),
			int64(g.Mem)), node.Capacity.Gres[i])
	}
	k = append(k, 0)
	for _, f := range node.Record.Features {
		k = append(append(k, f...), 0)
	}
	k = append(k, 0)
	for i, r := range m.advances {
		if r.Nodes[node.Record.Name] {
			k = binary.AppendVarint(k, int64(i))
		}
	}
	k = append(k, 0)
	at := len(k)
	for i, part := range m.Partitions {
		if i%8 == 0 {
			k = append(k, 0)
		}
		if part.Nodes == nil || part.Nodes[node.Record.Name] {
			k[len(k)-1] |= 1 << (i % 8)
		}
	}
	m.key = k
	n, ok := m.byKey[string(k)]
	if !ok {
		n = int32(len(m.pools))
		m.pools = append(m.pools, nodePool{
			sample: node, width: 2 + len(node.Gres), partitions: slices.Clone(k[at:]),
			cpusAbove: make([]int32, hw.CPUs),
		})
		m.byKey[string(k)] = n
		for _, r := range m.advances {
			if r.Nodes[node.Record.Name] {
				m.pools[n].advances = append(m.pools[n].advances, r)
			}
		}
	}
	pool := &m.pools[n]
	id := int32(len(m.nodes))
	m.byNode[node] = id
	m.nodes = append(m.nodes, modelNode{pool: n, place: int32(pool.size)})
	from := len(pool.free)
	pool.free = append(pool.free, int64(node.Capacity.Cpus)*fraction, toMiB(node.Capacity.Mem)*fraction)
	for i := range node.Gres {
		pool.free = append(pool.free, node.Capacity.Gres[i]*fraction)
	}
	if pool.size%poolBlockSize == 0 {
		pool.blockMax = append(pool.blockMax, pool.free[from:]...)
	}
	pool.size++
	pool.ids = append(pool.ids, id)
	pool.reserved, pool.event = append(pool.reserved, 0), append(pool.event, 0)
	for i := range pool.cpusAbove {
		pool.cpusAbove[i]++
	}
}

func toMiB(b core.Bytes) int64 { return int64((b + core.MiB - 1) / core.MiB) }

// AddRunning books a running job until its end. nodes are its nodes; nil stands for those that are gone.
func (m *Model) AddRunning(h *ledger.Allocation, nodes []*ledger.Node, end core.Time) {
	for i, node := range nodes {
		if na := &h.Alloc.Nodes[i]; node != nil && !na.Done {
			if id, ok := m.byNode[node]; ok {
				m.addRunningOn(id, node, na, h, end, i == 0)
			}
		}
	}
}

func (m *Model) addRunningOn(id int32, node *ledger.Node, na *core.NodeAlloc, h *ledger.Allocation, end core.Time,
	first bool,
) {
	e := modelEnd{
		at: max(end, m.now+alloc.OverdueDelay), node: id, use: int32(len(m.uses)), times: 1, share: fraction,
	}
	u := &m.tmp
	*u = ledger.Resources{Gres: append(u.Gres[:0], node.Capacity.Gres...)}
	clear(u.Gres)
	node.Book(u, nil, na, h.Terms, 1)
	if h.Terms.Exclusive {
		u.Cpus = max(u.Cpus, node.Capacity.Cpus)
	}
	m.uses = append(m.uses, int64(u.Cpus)*fraction, toMiB(u.Mem)*fraction)
	for _, g := range u.Gres {
		m.uses = append(m.uses, g*fraction)
	}
	if i := m.byBase[h.ArrayBase]; i != 0 && first {
		e.array, e.tasks = i, 1
		m.arrays[i].running++
	}
	if first {
		e.release = m.bookRunning(h, end)
	}
	m.addEnd(&e)
}

// addEnd books something that comes free later.
func (m *Model) addEnd(e *modelEnd) {
	e.seq = m.seq
	m.seq++
	m.book(e, -1)
	m.ends.Insert(*e)
}

// book adds what an end frees to its node, or with sign -1 subtracts it.
func (m *Model) book(e *modelEnd, sign int64) {
	n := m.nodes[e.node]
	pool := &m.pools[n.pool]
	at := int(n.place) * pool.width
	free := pool.free[at : at+pool.width]
	was := free[0]
	m.add(free, e, sign)
	lo, hi := min(was, free[0])/fraction, max(was, free[0])/fraction
	for i := max(0, lo); i < min(hi, int64(len(pool.cpusAbove))); i++ {
		pool.cpusAbove[i] += int32(sign)
	}
	block := int(n.place) / poolBlockSize
	most := pool.blockMax[block*pool.width : (block+1)*pool.width]
	if sign > 0 {
		for i, v := range free {
			most[i] = max(most[i], v)
		}
		return
	}
	clear(most)
	for k := block * poolBlockSize; k < min((block+1)*poolBlockSize, pool.size); k++ {
		for i, v := range pool.free[k*pool.width : (k+1)*pool.width] {
			most[i] = max(most[i], v)
		}
	}
}

// add adds what an end frees to an amount, or with sign -1 subtracts it.
func (m *Model) add(to []int64, e *modelEnd, sign int64) {
	for i, u := range m.uses[e.use : int(e.use)+len(to)] {
		to[i] += sign * (u * e.times * e.share / fraction)
	}
}

// AddClass adds a class and returns its number.
func (m *Model) AddClass(c Class) int32 {
	class := modelClass{
		partition: c.Partitions[0].Index, licenses: c.Licenses, advances: c.Advances, confined: c.Confined,
	}
	if m.Rules != nil {
		all, node := alloc.RequestedTRES(c.Spec)
		class.limitRequest = m.Rules.Request(all, node, m.Partitions[class.partition].Name)
	}
	for _, part := range c.Partitions {
		req := *part.Fit
		req.Excluded = nil // a few nodes of a pool do not count
		class.tasks, class.onePerNode = int64(req.Tasks), req.NodesMin > 1
		per := req.Tasks
		switch {
		case class.onePerNode:
			per = (req.Tasks + req.NodesMin - 1) / req.NodesMin
		case req.NodesMax > 1 && req.MemPerNode == 0 && len(req.Gres) == 0 && req.MinCPUs <= req.CpusPerTask &&
			!req.Exclusive &&
			req.Detail == nil:
			per = 1 // its tasks may run anywhere
		}
		empty := ledger.View{IfIdle: true}
		for k := range m.pools {
			pool := &m.pools[k]
			if pool.partitions[part.Index/8]&(1<<(part.Index%8)) == 0 || class.hasPool(int32(k)) ||
				!req.Accepts(pool.sample, &ledger.View{}) {
				continue
			}
			room := req.TasksAt(&empty, pool.sample)
			if room <= 0 || room < per && req.NodesMax <= 1 {
				continue
			}
			tasks := min(per, room)
			class.pools = append(class.pools, classPool{pool: int32(k), use: int32(len(m.uses)), tasks: int64(tasks)})
			u := req.Usage(pool.sample, tasks, &pool.sample.Capacity)
			m.uses = append(m.uses, int64(u.Cpus)*fraction, toMiB(u.Mem)*fraction)
			for g := range pool.sample.Gres {
				v := int64(0)
				if g < len(u.Gres) {
					v = u.Gres[g]
				}
				m.uses = append(m.uses, v*fraction)
			}
		}
	}
	m.classes = append(m.classes, class)
	return int32(len(m.classes) - 1)
}

func (c *modelClass) hasPool(pool int32) bool {
	return slices.ContainsFunc(c.pools, func(slot classPool) bool { return slot.pool == pool })
}

// AddPending adds a pending job behind those added before, and behind its begin time. gate has its limits; nil: none.
func (m *Model) AddPending(j *core.Job, class int32, gate *policy.Gate) {
	w := modelJob{id: j.ID, timeLimit: alloc.TimeLimit(j.Spec), class: class, gate: m.gate(gate)}
	if j.IsArray() {
		w.array = int32(len(m.arrays))
		m.arrays = append(m.arrays, modelArray{left: int64(j.Array.Tasks.Len()), throttle: int64(j.Spec.Throttle)})
		m.byBase[j.Array.Base] = w.array
	}
	if j.Eligible > m.now {
		m.ineligible, m.eligibleAt = append(m.ineligible, w), append(m.eligibleAt, j.Eligible)
		return
	}
	m.enqueue(w)
}

// enqueue adds a job behind those that wait.
func (m *Model) enqueue(w modelJob) {
	c := &m.classes[w.class]
	if c.jobs++; c.jobs == 1 {
		m.liveClasses++
	}
	m.waiting = append(m.waiting, w)
}
