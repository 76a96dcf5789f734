package sched

import (
	"math"

	"bireme.dev/bireme/internal/core"
)

// Preemption is who may push whom aside, and how. It is never changed: when policy changes, a new one is made.
//
// Nobody may preempt who, directly or by way of others, could be preempted by the same: so no two jobs take turns
// in pushing each other. Within a QOS it is by priority, which age may turn round; there, a job never preempts the one
// it had to make room for itself.
type Preemption struct {
	cfg        core.Preemption
	qos        map[core.QOSName]*qosRank
	parts      map[core.PartitionName]*core.Partition
	lowestTier int32 // the lowest tier
	// weighs: somewhere only jobs of a higher priority push others aside.
	byPriority bool
	// suspends: somebody may be suspended.
	suspends     bool
	longestGrace core.Seconds // grace of anybody
}

// qosRank is a QOS among those it preempts and that push it.
type qosRank struct {
	q        *core.QOS
	level    int8 // above all those it preempts
	preempts map[core.QOSName]bool
	within   bool // also its own jobs, by priority
}

// NewPreemption makes the table.
func NewPreemption(cfg core.Preemption, parts []core.Partition, qos []*core.QOS) *Preemption {
	t := &Preemption{cfg: cfg, qos: map[core.QOSName]*qosRank{}, parts: map[core.PartitionName]*core.Partition{},
		lowestTier: math.MaxInt32}
	for i := range parts {
		t.parts[parts[i].Name] = &parts[i]
		t.lowestTier = min(t.lowestTier, parts[i].PriorityTier)
		t.noteMode(parts[i].PreemptMode, parts[i].Grace)
	}
	t.noteMode(cfg.Mode, cfg.Grace)
	for _, q := range qos {
		t.qos[q.Name] = &qosRank{q: q}
		t.noteMode(q.PreemptMode, q.Grace)
	}
	if cfg.Type == core.PreemptByQOS {
		for _, r := range t.qos {
			r.within = r.q.PreemptMode.Says(core.PreemptWithin) || cfg.Mode.Says(core.PreemptWithin)
			t.rank(r)
		}
	}
	return t
}

func (t *Preemption) noteMode(m core.PreemptMode, grace core.Seconds) {
	t.longestGrace = max(t.longestGrace, grace)
	t.byPriority = t.byPriority || m.Says(core.PreemptPriority)
	t.suspends = t.suspends || m.How() == core.PreemptSuspend
}

// rank works out a QOS's level, and drops from its list what could push it aside in turn.
func (t *Preemption) rank(r *qosRank) int8 {
	if r.preempts != nil {
		return r.level
	}
	r.preempts = map[core.QOSName]bool{}
	level := int8(0)
	for _, name := range r.q.Preempt {
		if v := t.qos[name]; v != nil && !t.canReach(v, r.q.Name, map[core.QOSName]bool{}) {
			r.preempts[name] = true
			level = max(level, min(t.rank(v), math.MaxInt8-2)+1)
		}
	}
	r.level = level
	return level
}

func (t *Preemption) canReach(from *qosRank, to core.QOSName, seen map[core.QOSName]bool) bool {
	if from.q.Name == to {
		return true
	}
	seen[from.q.Name] = true
	for _, name := range from.q.Preempt {
		if v := t.qos[name]; v != nil && !seen[name] && t.canReach(v, to, seen) {
			return true
		}
	}
	return false
}

// preemptor is the jobs of a class as those who push others aside.
type preemptor struct {
	rules *Preemption
	qos   *qosRank
	tier  int32
}

// preemptor gives what jobs of a QOS may do in a partition; nil: push nobody aside.
func (t *Preemption) preemptor(qos core.QOSName, part *core.Partition) *preemptor {
	if t == nil {
		return nil
	}
	if t.cfg.Type == core.PreemptByTier {
		if part.PriorityTier > t.lowestTier {
			return &preemptor{rules: t, tier: part.PriorityTier}
		}
		return nil
	}
	if t.qosPreempts(qos) {
		return &preemptor{rules: t, qos: t.qos[qos]}
	}
	return nil
}

// qosPreempts tells whether it is by their QOS that jobs of it may push others aside.
func (t *Preemption) qosPreempts(qos core.QOSName) bool {
	if t == nil || t.cfg.Type != core.PreemptByQOS {
		return false
	}
	r := t.qos[qos]
	return r != nil && (len(r.preempts) > 0 || r.within)
}

// rankVacated is the level of jobs that others were preempted for.
const rankVacated = math.MaxInt8

// withRank says where a job stands in every queue: one that others were preempted for before all, so that what they
// left is its own, and those who may push others aside before these. Tiers order queues anyway.
func (e queueEntry) withRank() queueEntry {
	switch s := e.class; {
	case e.job.Room != nil:
		e.rank, e.shortKey, e.priority, e.since = rankVacated, 0, math.MaxUint32, core.Time(e.job.Room.Seq)
	case s != nil && s.preemptor != nil && s.preemptor.qos != nil:
		e.rank = s.preemptor.qos.level
	}
	return e
}

// mayPreempt tells whether a job of the pusher's may push v aside, but for v's exemption.
func (pu *preemptor) mayPreempt(j *core.Job, v *victim) bool {
	if v == nil || v.byPriority && j.Priority <= v.priority || j.Pushed != nil && j.Pushed.For == v.id {
		return false
	}
	if pu.qos == nil {
		return pu.tier > v.tier
	}
	return pu.qos.preempts[v.qos] || pu.qos.within && v.qos == pu.qos.q.Name && j.Priority > v.priority
}

// dependsOnPriority tells whether it depends on a job's own priority whom it may preempt.
func (pu *preemptor) dependsOnPriority() bool {
	return pu.qos != nil && pu.qos.within || pu.rules.byPriority
}

// victim is a job that holds nodes as one that may be preempted.
type victim struct {
	id          core.JobID
	qos         core.QOSName
	tier        int32
	rank        int64 // the lowest goes first: the priority of its QOS, or its tier
	mode        core.PreemptMode
	grace       core.Seconds
	exemptUntil core.Time // its exemption ends
	priority    uint32
	byPriority  bool // only those of a higher priority push it aside
	suspended   bool // it is suspended already and what is left of it can be had as well
	lostSince   core.Time
	started     core.Time
	cpus        int64
}

// victim gives what may become of a job; nil: nothing.
func (t *Preemption) victim(j *core.Job) *victim {
	// others may be on the same CPUs
	if t == nil || j.Alloc == nil || isOver(j) || TermsOf(j.Spec, j.Alloc).MaxSharing > 1 {
		return nil
	}
	part := t.parts[j.Alloc.Partition]
	if part == nil {
		part = &core.Partition{}
	}
	v := &victim{id: j.ID, qos: j.Spec.QOS, tier: part.PriorityTier, priority: j.Priority, started: j.Start,
		lostSince: max(j.Start, j.Checkpoint), suspended: j.Parked()}
	mode, grace := part.PreemptMode, part.Grace
	v.rank = int64(part.PriorityTier)
	if t.cfg.Type == core.PreemptByQOS {
		mode, grace, v.rank = core.PreemptDefault, 0, 0
		if r := t.qos[j.Spec.QOS]; r != nil {
			mode, grace, v.rank = r.q.PreemptMode, r.q.Grace, int64(r.q.Priority)
			if mode.How() == core.PreemptOff { // as Slurm: of a QOS, off is the cluster's
				mode = core.PreemptDefault
			}
		}
	}
	v.byPriority = mode.Says(core.PreemptPriority) || t.cfg.Mode.Says(core.PreemptPriority)
	if v.mode = mode.How(); v.mode == core.PreemptDefault {
		v.mode = t.cfg.Mode.How()
	}
	if v.grace = grace; grace == 0 {
		v.grace = t.cfg.Grace
	}
	switch v.mode {
	case core.PreemptRequeue:
		if !j.Spec.Requeue || j.Spec.Kind != core.Batch {
			v.mode = core.PreemptCancel
		}
	case core.PreemptCancel:
	case core.PreemptSuspend:
		// One that an administrator suspended stays as it is, and nodes that are one user's stay so.
		if j.State == core.Suspended && !v.suspended || TermsOf(j.Spec, j.Alloc).User != "" {
			return nil
		}
	default:
		return nil
	}
	if v.suspended {
		v.mode = core.PreemptSuspend
	}
	if x := t.exemptTime(j.Spec.QOS, part.QOS); x > 0 && !v.suspended {
		v.exemptUntil = j.Start.Add(x.Duration() + j.PausedFor)
	}
	for i := range j.Alloc.Nodes {
		v.cpus += int64(j.Alloc.Nodes[i].CPUs)
	}
	return v
}

// exempted is how long a job runs undisturbed: as its partition's QOS says, else its own, else the cluster's. A QOS may
// stand above the partition's.
func (t *Preemption) exemptTime(own, part core.QOSName) core.Seconds {
	a, b := t.qos[part], t.qos[own]
	if b != nil && b.q.Flags&core.OverPartQOS != 0 {
		a, b = b, a
	}
	for _, r := range []*qosRank{a, b} {
		if r != nil && r.q.PreemptExempt > 0 {
			return r.q.PreemptExempt
		}
	}
	return t.cfg.Exempt
}

// cost is what pushing a job aside costs, beside the rank of its QOS or tier.
func (v *victim) cost(order core.PreemptOrder, now core.Time) int64 {
	switch {
	case v.mode == core.PreemptSuspend && order == core.LeastLost: // it only waits
		return 0
	case order == core.Youngest:
		return int64(now - v.started)
	case order == core.Smallest:
		return v.cpus
	}
	return int64(max(0, now-v.lostSince)/1000) * v.cpus
}

// Victim is how a job is preempted.
type Victim struct {
	How   core.PreemptMode // cancel, requeue or suspend
	Grace core.Seconds
}

// MayPreempt tells whether a job that waits may push another aside to start in a partition, and how.
func (t *Preemption) MayPreempt(j *core.Job, in core.PartitionName, other *core.Job, now core.Time) (Victim, bool) {
	if t == nil || t.parts[in] == nil {
		return Victim{}, false
	}
	pu, v := t.preemptor(j.Spec.QOS, t.parts[in]), t.victim(other)
	if pu == nil || v == nil || v.exemptUntil > now || !pu.mayPreempt(j, v) {
		return Victim{}, false
	}
	return Victim{How: v.mode, Grace: v.grace}, true
}

// Occupied is what a job keeps others from having, and how. One that is suspended while others use its CPUs, or may,
// has no
// node to itself.
func Occupied(j *core.Job) (*core.Alloc, Terms) {
	al := j.Booked()
	t := TermsOf(j.Spec, al)
	if j.Lends() {
		t.Exclusive = false
	}
	return al, t
}
