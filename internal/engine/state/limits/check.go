package limits

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/cluster"
	"bireme.dev/bireme/internal/engine/state/jobs"
	"bireme.dev/bireme/internal/sched/alloc"
)

// Admit refuses a job that is one too many, or that DenyOnLimit says can never start in any of its partitions.
func (l *Limits) Admit(j *core.Job) error {
	l.Current()
	if l.Tally == nil {
		return nil
	}
	deny := func(reason core.Reason, text string) error {
		return core.Errorf(core.Denied, "%s: %s", reason, text).Because("policy_limit")
	}
	if reason, text := l.Tally.Admit(l.Gate(l.Tally, j), int64(j.Count())); reason != "" {
		return deny(reason, text)
	}
	all, node := alloc.RequestedTRES(j.Spec)
	var refused error // by the first; one that takes it is enough
	for part := range j.Spec.Partition.All() {
		gate, request := l.GateIn(l.Tally, j.Spec, part), l.Rules.Request(all, node, part)
		reason, text := l.Tally.Never(gate, request, jobs.TimeLimitOf(j.Spec))
		if reason == "" {
			return nil
		}
		if refused == nil {
			refused = deny(reason, text)
		}
	}
	return refused
}

// MaxWallTime bounds a time limit that nobody asked for by what limits allow a job: longer, it could not start.
func (l *Limits) MaxWallTime(spec *core.Spec, part *cluster.Partition) core.Seconds {
	if l.Current(); l.Tally != nil {
		if g := l.GateIn(l.Tally, spec, part.Name); g != nil {
			if m, ok := g.MaxWall(); ok && core.Seconds(m)*60 < spec.TimeLimit && m > 0 {
				return core.Seconds(m) * 60
			}
		}
	}
	return spec.TimeLimit
}

// CheckStart holds a start against the limits once more: the plan was made beside us and the world moved on.
func (l *Limits) CheckStart(j *core.Job, al *core.Alloc) error {
	l.Current()
	if l.Tally == nil {
		return nil
	}
	g := l.GateIn(l.Tally, j.Spec, al.Partition)
	if g == nil {
		return nil
	}
	if reason, text := l.Tally.Why(g, RequestOf(l.Rules, al), jobs.TimeLimitOf(j.Spec), l.rec.Now(),
		l.FairShares()); reason != "" {
		return core.Errorf(core.Conflict, "job %d waits: %s: %s", j.ID, reason, text)
	}
	return nil
}
