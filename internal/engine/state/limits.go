package state

import (
	"reflect"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/cluster"
	"bireme.dev/bireme/internal/engine/state/jobs"
	"bireme.dev/bireme/internal/engine/state/named"
	"bireme.dev/bireme/internal/policy"
	"bireme.dev/bireme/internal/sched"
	"bireme.dev/bireme/internal/sched/alloc"
)

// limits is what jobs are held against: at submit how many there are, at their start once more what the planner went
// by. It is made anew, and everything counted again, when a project, a QOS or a partition changes it; the planner is
// told.
type limits struct {
	rules  *policy.Rules
	tally  *policy.Tally // nil: there are none
	stakes map[core.JobID]*policy.Stake
	stale  bool

	exhaustedAt    core.Time // when minutes in all are used up, if known
	exhaustedKnown bool
}

// currentLimits gives the limits as they are, making them if something changed.
func (s *State) currentLimits() *limits {
	if s.limits.stale {
		had := s.limits.rules.OwnMinutes()
		s.limits = limits{rules: s.buildRules(s.rec.QOSByName()), stakes: map[core.JobID]*policy.Stake{}}
		s.limits.tally = s.countAllJobs(s.limits.rules, s.limits.stakes)
		if had || s.limits.rules.OwnMinutes() {
			s.resetJobDeadlines()
		}
		s.sendPolicy()
		s.refreshPreemption()
	}
	return &s.limits
}

// buildRules makes rules of the projects and these QOS.
func (s *State) buildRules(qos map[core.QOSName]*core.QOS) *policy.Rules {
	set := *s.rec.Usage().Decay
	set.Safe, set.Billing, set.Flags = s.cfg.Safe, s.cfg.Charges.Billing, s.cfg.Charges.Flags
	for _, q := range qos {
		if q.Flags&core.Relative != 0 {
			set.Totals = s.clusterTRES()
		}
	}
	rules, err := policy.NewRules(set, s.rec.Associations(), named.Sorted(qos), !s.cfg.NoLimits)
	core.Assert(err == nil, "projects are no tree: %v", err)
	return rules
}

// countAllJobs counts all live jobs against rules; nil if there is nothing to count for.
func (s *State) countAllJobs(rules *policy.Rules, stakes map[core.JobID]*policy.Stake) *policy.Tally {
	if !rules.Any() {
		return nil
	}
	t := policy.NewTally(rules)
	if rules.Minutes() {
		for _, m := range s.rec.Usage().List() {
			t.SetMeter(m)
		}
	}
	for j := range s.rec.Jobs() {
		s.countJob(t, rules, stakes, nil, j)
	}
	return t
}

// limitsJobChanged keeps the counts while jobs change.
func (s *State) limitsJobChanged(old, j *core.Job) {
	if l := &s.limits; l.tally != nil && !l.stale {
		s.countJob(l.tally, l.rules, l.stakes, old, j)
	}
}

func (s *State) countJob(t *policy.Tally, rules *policy.Rules, stakes map[core.JobID]*policy.Stake, old, j *core.Job) {
	if old != nil && !old.State.Final() {
		t.Submit(s.gate(t, old), -int64(old.Count()))
	}
	if !j.State.Final() {
		t.Submit(s.gate(t, j), int64(j.Count()))
	}
	was, is := old != nil && stakes[old.ID] != nil, countsAsRunning(j)
	if was && is && old.Alloc == j.Alloc && old.Spec == j.Spec && latestEnd(old) == latestEnd(j) {
		return
	}
	if was {
		t.End(stakes[old.ID])
		delete(stakes, old.ID)
	}
	if is {
		if g := s.gate(t, j); g != nil {
			stakes[j.ID] = t.Start(g, requestOf(rules, j.Alloc), latestEnd(j))
		}
	}
}

// countsAsRunning tells whether a job counts among those that run. One that is over does not, though its nodes are not
// clean.
func countsAsRunning(j *core.Job) bool {
	return (j.State == core.Running || j.State == core.Suspended) && j.End == 0 && j.Alloc != nil
}

// latestEnd is when a job that runs ends at the latest; 0: nobody knows.
func latestEnd(j *core.Job) core.Time {
	if j.State != core.Running || jobs.TimeLimitOf(j.Spec) == 0 {
		return 0
	}
	return j.Start.Add(j.PausedFor) + jobs.TimeLimitOf(j.Spec)
}

func requestOf(rules *policy.Rules, al *core.Alloc) *policy.Ask {
	all, node := alloc.AllocatedTRES(al)
	return rules.Ask(all, node, al.Partition)
}

// gate finds the limits of a job: in the partition it runs in, or the first it waits for.
func (s *State) gate(t *policy.Tally, j *core.Job) *policy.Gate {
	part := firstPartitionOf(j.Spec.Partition)
	if j.Alloc != nil {
		part = j.Alloc.Partition
	}
	return s.gateIn(t, j.Spec, part)
}

func (s *State) gateIn(t *policy.Tally, spec *core.Spec, part core.PartitionName) *policy.Gate {
	w := policy.Who{Project: spec.Project, User: spec.User, QOS: spec.QOS}
	if info := s.cluster.Partitions[part]; info != nil {
		w.Part = info.QOS
	}
	return t.Gate(w)
}

func firstPartitionOf(list core.PartitionName) core.PartitionName {
	first, _, _ := strings.Cut(string(list), ",")
	return core.PartitionName(first)
}

// admitLimits refuses a job that is one too many, or that DenyOnLimit says can never start in any of its partitions.
func (s *State) admitLimits(j *core.Job) error {
	l := s.currentLimits()
	if l.tally == nil {
		return nil
	}
	deny := func(reason core.Reason, text string) error {
		return core.Errorf(core.Denied, "%s: %s", reason, text).Because("policy_limit")
	}
	if reason, text := l.tally.Admit(s.gate(l.tally, j), int64(j.Count())); reason != "" {
		return deny(reason, text)
	}
	all, node := alloc.RequestedTRES(j.Spec)
	var refused error // by the first; one that takes it is enough
	for name := range strings.SplitSeq(string(j.Spec.Partition), ",") {
		part := core.PartitionName(name)
		reason, text := l.tally.Never(s.gateIn(l.tally, j.Spec, part), l.rules.Ask(all, node, part), jobs.TimeLimitOf(j.Spec))
		if reason == "" {
			return nil
		}
		if refused == nil {
			refused = deny(reason, text)
		}
	}
	return refused
}

// maxWallTime bounds a time limit that nobody asked for by what limits allow a job: longer, it could not start.
func (s *State) maxWallTime(spec *core.Spec, part *cluster.Partition) core.Seconds {
	if l := s.currentLimits(); l.tally != nil {
		if g := s.gateIn(l.tally, spec, part.Name); g != nil {
			if m, ok := g.MaxWall(); ok && core.Seconds(m)*60 < spec.TimeLimit && m > 0 {
				return core.Seconds(m) * 60
			}
		}
	}
	return spec.TimeLimit
}

// checkStartLimits holds a start against the limits once more: the plan was made beside us and the world moved on.
func (s *State) checkStartLimits(j *core.Job, al *core.Alloc) error {
	l := s.currentLimits()
	if l.tally == nil {
		return nil
	}
	g := s.gateIn(l.tally, j.Spec, al.Partition)
	if g == nil {
		return nil
	}
	if reason, text := l.tally.Why(g, requestOf(l.rules, al), jobs.TimeLimitOf(j.Spec), s.rec.Now(),
		s.fairShares()); reason != "" {
		return core.Errorf(core.Conflict, "job %d waits: %s: %s", j.ID, reason, text)
	}
	return nil
}

// fairShares is the tree of fair shares, for QOS with a usage threshold; nil if none has one.
func (s *State) fairShares() *policy.Tree {
	if s.rec.Ranking() == nil || !s.limits.rules.Shares() {
		return nil
	}
	return s.rec.Ranking().Tree
}

// sendPolicy gives the planner the limits as they are now.
func (s *State) sendPolicy() {
	c := sched.Changes{Policy: s.plannerPolicy()}
	if s.limits.rules.Minutes() {
		c.Meters = s.rec.Usage().List()
	}
	s.rec.TellPlanner(c)
}

func (s *State) plannerPolicy() *sched.Policy {
	return &sched.Policy{Rules: s.limits.rules, Shares: s.fairShares()}
}

// sendMeter gives those who count minutes what somebody has used.
func (s *State) sendMeter(m *policy.Meter) {
	l := &s.limits
	if l.stale || !l.rules.Minutes() {
		return
	}
	l.tally.SetMeter(m)
	l.exhaustedKnown = false
	s.rec.TellPlanner(sched.Changes{Meters: []*policy.Meter{m}})
}

// projectChanged notes what a project's change means for limits and priorities.
func (s *State) projectChanged(old, p *core.Project) {
	if old == nil {
		old = &core.Project{}
	}
	if old.Parent != p.Parent || old.Shares != p.Shares || !reflect.DeepEqual(old.Assoc, p.Assoc) ||
		!reflect.DeepEqual(membersWithSettings(old), membersWithSettings(p)) {
		s.limits.stale = true
		s.recalcPrioritiesSoon()
	}
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

// qosChanged notes what a QOS's change means for limits, for what its jobs cost and for priorities.
func (s *State) qosChanged(old, q *core.QOS) {
	s.limits.stale = true
	s.recalcPrioritiesSoon()
	if old != nil && (q == nil || old.Factor() != q.Factor() || (old.Flags^q.Flags)&core.NoDecay != 0) || old == nil {
		s.recomputeRates()
	}
}

// nodeResourcesChanged notes what a node's change means for limits in percent of the cluster.
func (s *State) nodeResourcesChanged(old, n *core.Node) {
	if old == nil || !reflect.DeepEqual(old.Hardware, n.Hardware) || old.Roles != n.Roles ||
		(old.Flags ^ n.Flags).Any(core.NodeFuture) {
		s.limits.stale = true
	}
}

// clusterTRES are the resources of all nodes, and the licenses.
func (s *State) clusterTRES() policy.TRES {
	var t policy.TRES
	for n := range s.rec.Nodes() {
		if n.Roles&core.Compute != 0 && !n.Flags.Any(core.NodeFuture) {
			t = t.Plus(nodeTRES(n), 1)
		}
	}
	return t.Plus(s.licenseTRES(), 1)
}

// licenseTRES are the licenses there are.
func (s *State) licenseTRES() (t policy.TRES) {
	for _, l := range s.cfg.Licenses {
		t = t.Plus(policy.TRES{{Name: "license/" + l.Name, Count: l.Total}}, 1)
	}
	return t
}

func nodeTRES(n *core.Node) policy.TRES {
	t := policy.Of(policy.Amount{Name: "node", Count: 1}, policy.Amount{Name: "cpu", Count: int64(n.Hardware.CPUs)},
		policy.Amount{Name: "mem", Count: int64(n.Hardware.Memory / core.MiB)})
	for _, g := range n.Hardware.Gres {
		t = t.Plus(policy.TRES{{Name: "gres/" + g.Name, Count: g.Count}}, 1)
		if g.Type != "" {
			t = t.Plus(policy.TRES{{Name: "gres/" + g.Name + ":" + g.Type, Count: g.Count}}, 1)
		}
	}
	return t
}
