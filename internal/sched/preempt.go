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
	cfg   core.Preemption
	qos   map[core.QOSName]*qosRank
	parts map[core.PartitionName]*core.Partition
	low   int32 // the lowest tier
	// weighs: somewhere only jobs of a higher priority push others aside.
	weighs bool
	// suspends: somebody may be suspended.
	suspends bool
	longest  core.Seconds // grace of anybody
}

// qosRank is a QOS among those it preempts and that push it.
type qosRank struct {
	q      *core.QOS
	level  int8 // above all those it preempts
	over   map[core.QOSName]bool
	within bool // also its own jobs, by priority
}

// NewPreemption makes the table.
func NewPreemption(cfg core.Preemption, parts []core.Partition, qos []*core.QOS) *Preemption {
	t := &Preemption{cfg: cfg, qos: map[core.QOSName]*qosRank{}, parts: map[core.PartitionName]*core.Partition{}, low: math.MaxInt32}
	for i := range parts {
		t.parts[parts[i].Name] = &parts[i]
		t.low = min(t.low, parts[i].PriorityTier)
		t.says(parts[i].PreemptMode, parts[i].Grace)
	}
	t.says(cfg.Mode, cfg.Grace)
	for _, q := range qos {
		t.qos[q.Name] = &qosRank{q: q}
		t.says(q.PreemptMode, q.Grace)
	}
	if cfg.Type == core.PreemptByQOS {
		for _, r := range t.qos {
			r.within = r.q.PreemptMode.Says(core.PreemptWithin) || cfg.Mode.Says(core.PreemptWithin)
			t.rank(r)
		}
	}
	return t
}

func (t *Preemption) says(m core.PreemptMode, grace core.Seconds) {
	t.longest = max(t.longest, grace)
	t.weighs = t.weighs || m.Says(core.PreemptPriority)
	t.suspends = t.suspends || m.How() == core.PreemptSuspend
}

// rank works out a QOS's level, and drops from its list what could push it aside in turn.
func (t *Preemption) rank(r *qosRank) int8 {
	if r.over != nil {
		return r.level
	}
	r.over = map[core.QOSName]bool{}
	level := int8(0)
	for _, name := range r.q.Preempt {
		if v := t.qos[name]; v != nil && !t.reaches(v, r.q.Name, map[core.QOSName]bool{}) {
			r.over[name] = true
			level = max(level, min(t.rank(v), math.MaxInt8-2)+1)
		}
	}
	r.level = level
	return level
}

func (t *Preemption) reaches(from *qosRank, to core.QOSName, seen map[core.QOSName]bool) bool {
	if from.q.Name == to {
		return true
	}
	seen[from.q.Name] = true
	for _, name := range from.q.Preempt {
		if v := t.qos[name]; v != nil && !seen[name] && t.reaches(v, to, seen) {
			return true
		}
	}
	return false
}

// pusher is the jobs of a class as those who push others aside.
type pusher struct {
	t    *Preemption
	qos  *qosRank
	tier int32
}

// pusher gives what jobs of a QOS may do in a partition; nil: push nobody aside.
func (t *Preemption) pusher(qos core.QOSName, part *core.Partition) *pusher {
	if t == nil {
		return nil
	}
	if t.cfg.Type == core.PreemptByTier {
		if part.PriorityTier > t.low {
			return &pusher{t: t, tier: part.PriorityTier}
		}
		return nil
	}
	if t.pushy(qos) {
		return &pusher{t: t, qos: t.qos[qos]}
	}
	return nil
}

// pushy tells whether it is by their QOS that jobs of it may push others aside.
func (t *Preemption) pushy(qos core.QOSName) bool {
	if t == nil || t.cfg.Type != core.PreemptByQOS {
		return false
	}
	r := t.qos[qos]
	return r != nil && (len(r.over) > 0 || r.within)
}

// roomMade is the level of jobs that others were preempted for.
const roomMade = math.MaxInt8

// levelled says where a job stands in every queue: one that others were preempted for before all, so that what they
// left is its own, and those who may push others aside before these. Tiers order queues anyway.
func (e entry) levelled() entry {
	switch s := e.slot; {
	case e.job.Room != nil:
		e.level, e.short, e.priority, e.at = roomMade, 0, math.MaxUint32, core.Time(e.job.Room.Seq)
	case s != nil && s.push != nil && s.push.qos != nil:
		e.level = s.push.qos.level
	}
	return e
}

// may tells whether a job of the pusher's may push v aside, but for v's exemption.
func (pu *pusher) may(j *core.Job, v *victim) bool {
	if v == nil || v.weigh && j.Priority <= v.priority || j.Pushed != nil && j.Pushed.For == v.id {
		return false
	}
	if pu.qos == nil {
		return pu.tier > v.tier
	}
	return pu.qos.over[v.qos] || pu.qos.within && v.qos == pu.qos.q.Name && j.Priority > v.priority
}

// picky tells whether it depends on a job's own priority whom it may preempt.
func (pu *pusher) picky() bool { return pu.qos != nil && pu.qos.within || pu.t.weighs }

// victim is a job that holds nodes as one that may be preempted.
type victim struct {
	id       core.JobID
	qos      core.QOSName
	tier     int32
	class    int64 // the lowest goes first: the priority of its QOS, or its tier
	how      core.PreemptMode
	grace    core.Seconds
	from     core.Time // its exemption ends
	priority uint32
	weigh    bool // only those of a higher priority push it aside
	parked   bool // it is suspended already and what is left of it can be had as well
	lost     core.Time
	began    core.Time
	cpus     int64
}

// victim gives what may become of a job; nil: nothing.
func (t *Preemption) victim(j *core.Job) *victim {
	if t == nil || j.Alloc == nil || over(j) || TermsOf(j.Spec, j.Alloc).Share > 1 { // others may be on the same CPUs
		return nil
	}
	part := t.parts[j.Alloc.Partition]
	if part == nil {
		part = &core.Partition{}
	}
	v := &victim{id: j.ID, qos: j.Spec.QOS, tier: part.PriorityTier, priority: j.Priority, began: j.Start, lost: max(j.Start, j.Checkpoint), parked: j.Parked()}
	mode, grace := part.PreemptMode, part.Grace
	v.class = int64(part.PriorityTier)
	if t.cfg.Type == core.PreemptByQOS {
		mode, grace, v.class = core.PreemptDefault, 0, 0
		if r := t.qos[j.Spec.QOS]; r != nil {
			mode, grace, v.class = r.q.PreemptMode, r.q.Grace, int64(r.q.Priority)
			if mode.How() == core.PreemptOff { // as Slurm: of a QOS, off is the cluster's
				mode = core.PreemptDefault
			}
		}
	}
	v.weigh = mode.Says(core.PreemptPriority) || t.cfg.Mode.Says(core.PreemptPriority)
	if v.how = mode.How(); v.how == core.PreemptDefault {
		v.how = t.cfg.Mode.How()
	}
	if v.grace = grace; grace == 0 {
		v.grace = t.cfg.Grace
	}
	switch v.how {
	case core.PreemptRequeue:
		if !j.Spec.Requeue || j.Spec.Kind != core.Batch {
			v.how = core.PreemptCancel
		}
	case core.PreemptCancel:
	case core.PreemptSuspend:
		// One that an administrator suspended stays as it is, and nodes that are one user's stay so.
		if j.State == core.Suspended && !v.parked || TermsOf(j.Spec, j.Alloc).Owner != "" {
			return nil
		}
	default:
		return nil
	}
	if v.parked {
		v.how = core.PreemptSuspend
	}
	if x := t.exempt(j.Spec.QOS, part.QOS); x > 0 && !v.parked {
		v.from = j.Start.Add(x.Duration() + j.PausedFor)
	}
	for i := range j.Alloc.Nodes {
		v.cpus += int64(j.Alloc.Nodes[i].CPUs)
	}
	return v
}

// exempt is how long a job runs undisturbed: as its partition's QOS says, else its own, else the cluster's. A QOS may
// stand above the partition's.
func (t *Preemption) exempt(own, part core.QOSName) core.Seconds {
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
	case v.how == core.PreemptSuspend && order == core.LeastLost: // it only waits
		return 0
	case order == core.Youngest:
		return int64(now - v.began)
	case order == core.Smallest:
		return v.cpus
	}
	return int64(max(0, now-v.lost)/1000) * v.cpus
}

// Victim is how a job is preempted.
type Victim struct {
	How   core.PreemptMode // cancel, requeue or suspend
	Grace core.Seconds
}

// May tells whether a job that waits may push another aside to start in a partition, and how.
func (t *Preemption) May(j *core.Job, in core.PartitionName, other *core.Job, now core.Time) (Victim, bool) {
	if t == nil || t.parts[in] == nil {
		return Victim{}, false
	}
	pu, v := t.pusher(j.Spec.QOS, t.parts[in]), t.victim(other)
	if pu == nil || v == nil || v.from > now || !pu.may(j, v) {
		return Victim{}, false
	}
	return Victim{How: v.how, Grace: v.grace}, true
}

// Booked is what a job keeps others from having, and how. One that is suspended while others use its CPUs, or may, has no
// node to itself.
func Booked(j *core.Job) (*core.Alloc, Terms) {
	al := j.Booked()
	t := TermsOf(j.Spec, al)
	if j.Lends() {
		t.Whole = false
	}
	return al, t
}
