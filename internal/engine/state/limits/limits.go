package limits

import (
	"reflect"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/cluster"
	"bireme.dev/bireme/internal/engine/state/conf"
	"bireme.dev/bireme/internal/engine/state/jobs"
	"bireme.dev/bireme/internal/engine/state/live"
	"bireme.dev/bireme/internal/engine/state/named"
	"bireme.dev/bireme/internal/policy"
	"bireme.dev/bireme/internal/sched"
	"bireme.dev/bireme/internal/sched/alloc"
)

// Limits is what jobs are held against: at submission how many there are, at their start once more what the planner
// went by. It is built again, and everything counted again, when a project, a QOS, a partition or the cluster changes
// it; the planner is told.
type Limits struct {
	Rules *policy.Rules
	Tally *policy.Tally // nil: there are none
	Uses  map[core.JobID]*policy.Use

	rec     *live.Records
	cfg     *conf.Config
	cluster *cluster.Cluster
	rebuilt func(ownMinutes bool)
	stale   bool

	exhaustedAt    core.Time // when minutes in all are used up, if known
	exhaustedKnown bool
}

// New makes limits that are stale. rebuilt is called after they were built: ownMinutes says that jobs have, or had,
// minutes of their own, so that the times at which they end have changed.
func New(rec *live.Records, cfg *conf.Config, cl *cluster.Cluster, rebuilt func(ownMinutes bool)) *Limits {
	return &Limits{rec: rec, cfg: cfg, cluster: cl, rebuilt: rebuilt}
}

// MarkStale has limits built again before they are next used.
func (l *Limits) MarkStale() { l.stale = true }

// Current gives the limits as they are, building them if something changed.
func (l *Limits) Current() *Limits {
	if l.stale {
		had := l.Rules.OwnMinutes()
		l.stale, l.exhaustedAt, l.exhaustedKnown = false, 0, false
		l.Rules, l.Uses = l.BuildRules(l.rec.QOSByName()), map[core.JobID]*policy.Use{}
		l.Tally = l.CountAllJobs(l.Rules, l.Uses)
		l.sendPolicy()
		l.rebuilt(had || l.Rules.OwnMinutes())
	}
	return l
}

// BuildRules makes rules of the projects and these QOS.
func (l *Limits) BuildRules(qos map[core.QOSName]*core.QOS) *policy.Rules {
	set := *l.rec.Usage().Decay
	set.Safe, set.Billing, set.Flags = l.cfg.Safe, l.cfg.Charges.Billing, l.cfg.Charges.Flags
	for _, q := range qos {
		if q.Flags&core.Relative != 0 {
			set.Totals = l.clusterTRES()
		}
	}
	rules, err := policy.NewRules(set, l.rec.Associations(), named.Sorted(qos), !l.cfg.NoLimits)
	core.Assert(err == nil, "projects are no tree: %v", err)
	return rules
}

// CountAllJobs counts all live jobs against rules; nil if there is nothing to count for.
func (l *Limits) CountAllJobs(rules *policy.Rules, uses map[core.JobID]*policy.Use) *policy.Tally {
	if !rules.Any() {
		return nil
	}
	t := policy.NewTally(rules)
	if rules.Minutes() {
		for _, m := range l.rec.Usage().List() {
			t.SetMeter(m)
		}
	}
	for j := range l.rec.Jobs() {
		l.CountJob(t, rules, uses, nil, j)
	}
	return t
}

// JobChanged keeps the counts while jobs change.
func (l *Limits) JobChanged(old, j *core.Job) {
	if l.Tally != nil && !l.stale {
		l.CountJob(l.Tally, l.Rules, l.Uses, old, j)
	}
}

// CountJob counts a change of a job against rules; old is nil for a job that is new to them.
func (l *Limits) CountJob(t *policy.Tally, rules *policy.Rules, uses map[core.JobID]*policy.Use, old, j *core.Job) {
	if old != nil && !old.State.Final() {
		t.Submit(l.Gate(t, old), -int64(old.Count()))
	}
	if !j.State.Final() {
		t.Submit(l.Gate(t, j), int64(j.Count()))
	}
	was, is := old != nil && uses[old.ID] != nil, countsAsRunning(j)
	if was && is && old.Alloc == j.Alloc && old.Spec == j.Spec && LatestEnd(old) == LatestEnd(j) {
		return
	}
	if was {
		t.End(uses[old.ID])
		delete(uses, old.ID)
	}
	if is {
		if g := l.Gate(t, j); g != nil {
			uses[j.ID] = t.Start(g, RequestOf(rules, j.Alloc), LatestEnd(j))
		}
	}
}

// countsAsRunning reports whether a job counts among those that run. One that is over does not, though its nodes are
// not clean.
func countsAsRunning(j *core.Job) bool {
	return (j.State == core.Running || j.State == core.Suspended) && j.End == 0 && j.Alloc != nil
}

// LatestEnd is when a job that runs ends at the latest; 0: nobody knows.
func LatestEnd(j *core.Job) core.Time {
	if j.State != core.Running || jobs.TimeLimitOf(j.Spec) == 0 {
		return 0
	}
	return j.Start.Add(j.PausedFor) + jobs.TimeLimitOf(j.Spec)
}

// RequestOf is what an allocation asks of limits.
func RequestOf(rules *policy.Rules, al *core.Alloc) *policy.Request {
	all, node := alloc.AllocatedTRES(al)
	return rules.Request(all, node, al.Partition)
}

// Gate finds the limits of a job: in the partition it runs in, or the first it waits for.
func (l *Limits) Gate(t *policy.Tally, j *core.Job) *policy.Gate {
	part := j.Spec.Partition.First()
	if j.Alloc != nil {
		part = j.Alloc.Partition
	}
	return l.GateIn(t, j.Spec, part)
}

// GateIn finds the limits of a job in a partition.
func (l *Limits) GateIn(t *policy.Tally, spec *core.Spec, part core.PartitionName) *policy.Gate {
	w := policy.Who{Project: spec.Project, User: spec.User, QOS: spec.QOS}
	if info := l.cluster.Partitions[part]; info != nil {
		w.PartitionQOS = info.QOS
	}
	return t.Gate(w)
}

// sendPolicy gives the planner the limits as they are now.
func (l *Limits) sendPolicy() {
	c := sched.Changes{Policy: l.PlannerPolicy()}
	if l.Rules.Minutes() {
		c.Meters = l.rec.Usage().List()
	}
	l.rec.TellPlanner(c)
}

// PlannerPolicy is the limits as the planner is told of them.
func (l *Limits) PlannerPolicy() *sched.Policy {
	return &sched.Policy{Rules: l.Rules, Shares: l.FairShares()}
}

// FairShares is the tree of fair shares, for QOS with a usage threshold; nil if none has one.
func (l *Limits) FairShares() *policy.Tree {
	if l.rec.Ranking() == nil || !l.Rules.Shares() {
		return nil
	}
	return l.rec.Ranking().Tree
}

// SendMeter gives those who count minutes what somebody has used.
func (l *Limits) SendMeter(m *policy.Meter) {
	if l.stale || !l.Rules.Minutes() {
		return
	}
	l.Tally.SetMeter(m)
	l.exhaustedKnown = false
	l.rec.TellPlanner(sched.Changes{Meters: []*policy.Meter{m}})
}

// NodeChanged notes what a node's change means for limits in percent of the cluster.
func (l *Limits) NodeChanged(old, n *core.Node) {
	if !l.Rules.Relative() {
		return
	}
	if old == nil || !reflect.DeepEqual(old.Hardware, n.Hardware) || old.Roles != n.Roles ||
		(old.Flags ^ n.Flags).Any(core.NodeFuture) {
		l.stale = true
	}
}

// ProjectChanged reports whether a change of a project means something for limits and priorities, which are then stale.
func (l *Limits) ProjectChanged(old, p *core.Project) bool {
	if old == nil {
		old = &core.Project{}
	}
	if old.Parent == p.Parent && old.Shares == p.Shares && reflect.DeepEqual(old.Assoc, p.Assoc) &&
		reflect.DeepEqual(membersWithSettings(old), membersWithSettings(p)) {
		return false
	}
	l.stale = true
	return true
}

// membersWithSettings lists the members that carry something of their own.
func membersWithSettings(p *core.Project) (list []core.Member) {
	for _, m := range p.Members {
		if m.Shares != 0 || !reflect.DeepEqual(m.Assoc, core.Association{}) {
			list = append(list, core.Member{User: m.User, Shares: m.Shares, Assoc: m.Assoc})
		}
	}
	return list
}
