package preempt

import (
	"math"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/alloc"
)

// Rules says who may preempt whom, and how. It is never changed: when policy changes, a new one is made.
//
// No QOS may preempt another that, directly or through others, may preempt it, so no two jobs preempt each other in
// turn. Within a QOS preemption goes by priority, which age may reverse; there, a job never preempts the one it was
// preempted for.
type Rules struct {
	Cfg        core.Preemption
	qos        map[core.QOSName]*qosRank
	parts      map[core.PartitionName]*core.Partition
	lowestTier int32 // the lowest tier
	// byPriority: some jobs are preempted only by jobs of a higher priority.
	byPriority bool
	// Suspends: some jobs may be suspended.
	Suspends     bool
	LongestGrace core.Seconds // the longest grace time of any job
}

// qosRank is a QOS with those it preempts.
type qosRank struct {
	q        *core.QOS
	Level    int8 // above all those it preempts
	preempts map[core.QOSName]bool
	within   bool // also its own jobs, by priority
}

// NewRules returns the rules of settings, partitions and QOS.
func NewRules(cfg core.Preemption, parts []core.Partition, qos []*core.QOS) *Rules {
	t := &Rules{
		Cfg: cfg, qos: map[core.QOSName]*qosRank{}, parts: map[core.PartitionName]*core.Partition{},
		lowestTier: math.MaxInt32,
	}
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

func (t *Rules) noteMode(m core.PreemptMode, grace core.Seconds) {
	t.LongestGrace = max(t.LongestGrace, grace)
	t.byPriority = t.byPriority || m.Says(core.PreemptPriority)
	t.Suspends = t.Suspends || m.How() == core.PreemptSuspend
}

// rank computes a QOS's level, and drops from its list what could preempt it in turn.
func (t *Rules) rank(r *qosRank) int8 {
	if r.preempts != nil {
		return r.Level
	}
	r.preempts = map[core.QOSName]bool{}
	level := int8(0)
	for _, name := range r.q.Preempt {
		if v := t.qos[name]; v != nil && !t.canReach(v, r.q.Name, map[core.QOSName]bool{}) {
			r.preempts[name] = true
			level = max(level, min(t.rank(v), math.MaxInt8-2)+1)
		}
	}
	r.Level = level
	return level
}

func (t *Rules) canReach(from *qosRank, to core.QOSName, seen map[core.QOSName]bool) bool {
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

// Preemptor is the jobs of a class that may preempt others.
type Preemptor struct {
	Rules *Rules
	Qos   *qosRank
	tier  int32
}

// Preemptor returns whom jobs of a QOS may preempt in a partition; nil: no jobs.
func (t *Rules) Preemptor(qos core.QOSName, part *core.Partition) *Preemptor {
	if t == nil {
		return nil
	}
	if t.Cfg.Type == core.PreemptByTier {
		if part.PriorityTier > t.lowestTier {
			return &Preemptor{Rules: t, tier: part.PriorityTier}
		}
		return nil
	}
	if t.QosPreempts(qos) {
		return &Preemptor{Rules: t, Qos: t.qos[qos]}
	}
	return nil
}

// QosPreempts reports whether jobs of a QOS may preempt because of the QOS.
func (t *Rules) QosPreempts(qos core.QOSName) bool {
	if t == nil || t.Cfg.Type != core.PreemptByQOS {
		return false
	}
	r := t.qos[qos]
	return r != nil && (len(r.preempts) > 0 || r.within)
}

// MayPreempt reports whether a job of the preemptor may preempt v, ignoring v's exemption.
func (pu *Preemptor) MayPreempt(j *core.Job, v *Candidate) bool {
	if v == nil || v.byPriority && j.Priority <= v.priority || j.Pushed != nil && j.Pushed.For == v.Id {
		return false
	}
	if pu.Qos == nil {
		return pu.tier > v.tier
	}
	return pu.Qos.preempts[v.qos] || pu.Qos.within && v.qos == pu.Qos.q.Name && j.Priority > v.priority
}

// DependsOnPriority reports whether a job's own priority decides which jobs it may preempt.
func (pu *Preemptor) DependsOnPriority() bool {
	return pu.Qos != nil && pu.Qos.within || pu.Rules.byPriority
}

// Candidate is a job that holds nodes as one that may be preempted.
type Candidate struct {
	Id          core.JobID
	qos         core.QOSName
	tier        int32
	Rank        int64 // the lowest goes first: the priority of its QOS, or its tier
	Mode        core.PreemptMode
	Grace       core.Seconds
	ExemptUntil core.Time // its exemption ends
	priority    uint32
	byPriority  bool // only jobs of a higher priority preempt it
	Suspended   bool // it is suspended already and what is left of it can be had as well
	lostSince   core.Time
	Started     core.Time
	Cpus        int64
}

// Candidate returns how a running job may be preempted; nil: it may not.
func (t *Rules) Candidate(j *core.Job) *Candidate {
	// others may be on the same CPUs
	if t == nil || j.Alloc == nil || alloc.IsOver(j) || alloc.TermsOf(j.Spec, j.Alloc).MaxSharing > 1 {
		return nil
	}
	part := t.parts[j.Alloc.Partition]
	if part == nil {
		part = &core.Partition{}
	}
	v := &Candidate{
		Id: j.ID, qos: j.Spec.QOS, tier: part.PriorityTier, priority: j.Priority, Started: j.Start,
		lostSince: max(j.Start, j.Checkpoint), Suspended: j.Parked(),
	}
	mode, grace := part.PreemptMode, part.Grace
	v.Rank = int64(part.PriorityTier)
	if t.Cfg.Type == core.PreemptByQOS {
		mode, grace, v.Rank = core.PreemptDefault, 0, 0
		if r := t.qos[j.Spec.QOS]; r != nil {
			mode, grace, v.Rank = r.q.PreemptMode, r.q.Grace, int64(r.q.Priority)
			if mode.How() == core.PreemptOff { // as Slurm: of a QOS, off is the cluster's
				mode = core.PreemptDefault
			}
		}
	}
	v.byPriority = mode.Says(core.PreemptPriority) || t.Cfg.Mode.Says(core.PreemptPriority)
	if v.Mode = mode.How(); v.Mode == core.PreemptDefault {
		v.Mode = t.Cfg.Mode.How()
	}
	if v.Grace = grace; grace == 0 {
		v.Grace = t.Cfg.Grace
	}
	switch v.Mode {
	case core.PreemptRequeue:
		if !j.Spec.Requeue || j.Spec.Kind != core.Batch {
			v.Mode = core.PreemptCancel
		}
	case core.PreemptCancel:
	case core.PreemptSuspend:
		// One that an administrator suspended stays as it is, and nodes that are one user's stay so.
		if j.State == core.Suspended && !v.Suspended || alloc.TermsOf(j.Spec, j.Alloc).User != "" {
			return nil
		}
	default:
		return nil
	}
	if v.Suspended {
		v.Mode = core.PreemptSuspend
	}
	if x := t.exemptTime(j.Spec.QOS, part.QOS); x > 0 && !v.Suspended {
		v.ExemptUntil = j.Start.Add(x.Duration() + j.PausedFor)
	}
	for i := range j.Alloc.Nodes {
		v.Cpus += int64(j.Alloc.Nodes[i].CPUs)
	}
	return v
}

// exemptTime returns how long a job runs before it may be preempted: as its partition's QOS says, else its own, else
// the cluster. A QOS may override the partition's.
func (t *Rules) exemptTime(own, part core.QOSName) core.Seconds {
	a, b := t.qos[part], t.qos[own]
	if b != nil && b.q.Flags&core.OverPartQOS != 0 {
		a, b = b, a
	}
	for _, r := range []*qosRank{a, b} {
		if r != nil && r.q.PreemptExempt > 0 {
			return r.q.PreemptExempt
		}
	}
	return t.Cfg.Exempt
}

// Cost is what pushing a job aside costs, beside the rank of its QOS or tier.
func (v *Candidate) Cost(order core.PreemptOrder, now core.Time) int64 {
	switch {
	case v.Mode == core.PreemptSuspend && order == core.LeastLost: // it only waits
		return 0
	case order == core.Youngest:
		return int64(now - v.Started)
	case order == core.Smallest:
		return v.Cpus
	}
	return int64(max(0, now-v.lostSince)/1000) * v.Cpus
}

// Victim is how a job is preempted.
type Victim struct {
	How   core.PreemptMode // cancel, requeue or suspend
	Grace core.Seconds
}

// MayPreempt reports whether a pending job may preempt another to start in a partition, and how.
func (t *Rules) MayPreempt(j *core.Job, in core.PartitionName, other *core.Job, now core.Time) (Victim, bool) {
	if t == nil || t.parts[in] == nil {
		return Victim{}, false
	}
	pu, v := t.Preemptor(j.Spec.QOS, t.parts[in]), t.Candidate(other)
	if pu == nil || v == nil || v.ExemptUntil > now || !pu.MayPreempt(j, v) {
		return Victim{}, false
	}
	return Victim{How: v.Mode, Grace: v.Grace}, true
}
