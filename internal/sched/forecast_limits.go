package sched

import (
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/policy"
	"bireme.dev/bireme/internal/sched/advance"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/ledger"
)

// modelLimits is what a forecast knows beside nodes: advance reservations, licenses and limits. Jobs that wait for
// those are in nobody's way meanwhile, as in a pass.
type modelLimits struct {
	advances     []*advance.Reservation
	advanceTimes []core.Time      // when one of them begins or ends, soonest first
	licenses     map[string]int64 // licenses that are free
	rules        *policy.Rules    // nil: there are no limits
	shares       *policy.Tree
	tally        *policy.Tally
	gates        []*policy.Gate // of jobs, from 1
	gateIndex    map[policy.Who]int32
}

// modelRelease is what a job gives back beside nodes.
type modelRelease struct {
	limitUses []*policy.Stake
	licenses  []core.License
	copies    int64
}

// maxAdvanceTimes is how many occurrences of a reservation a forecast stops at.
const maxAdvanceTimes = 4

func newModelLimits(now core.Time, p *Planner) modelLimits {
	a := modelLimits{licenses: map[string]int64{}, gateIndex: map[policy.Who]int32{}, gates: make([]*policy.Gate, 1)}
	for _, r := range p.advances {
		if r.Nodes == nil || r.IsPartial() {
			continue
		}
		a.advances = append(a.advances, r)
		for _, w := range r.Windows[:min(maxAdvanceTimes, len(r.Windows))] {
			for _, t := range []core.Time{w.Start, w.End} {
				if t > now && t != alloc.Never {
					a.advanceTimes = append(a.advanceTimes, t)
				}
			}
		}
	}
	slices.Sort(a.advanceTimes)
	a.advanceTimes = slices.Compact(a.advanceTimes)
	for name, st := range p.licenses {
		a.licenses[name] = st.total
	}
	if p.limits != nil {
		a.rules, a.shares, a.tally = p.limits.rules, p.limits.shares, policy.NewTally(p.limits.rules)
	}
	return a
}

// mayOpen reports whether a limit may let a job start when something ends.
func (w *forecastBuild) mayOpen(e *queueEntry) bool {
	l := w.p.limits
	if e.gate == nil || l == nil {
		return true
	}
	return l.tally.Opens(e.gate, l.askOf(e.class, e.job.Spec), e.minTime, w.model.now, l.shares)
}

// gate gives the number of a job's limits; 0: it is under none.
func (o *forecastModel) gate(g *policy.Gate) int32 {
	if g == nil || o.tally == nil {
		return 0
	}
	i, ok := o.gateIndex[g.Who]
	if !ok {
		i = int32(len(o.gates))
		o.gates = append(o.gates, o.tally.Gate(g.Who))
		o.gateIndex[g.Who] = i
	}
	return i
}

// setClassLimits works out what the jobs of a class need beside nodes.
func (o *forecastModel) setClassLimits(oc *modelClass, s *partitionClass, spec *core.Spec) {
	oc.licenses, oc.confined = s.licenses, len(s.options) > 0
	for i := range s.options {
		if own := s.options[i].advance; own == nil || !own.ConfinesNodes() {
			oc.confined = false
		}
		if own := s.options[i].advance; own != nil {
			oc.advances = append(oc.advances, own)
		}
	}
	if o.rules != nil {
		all, node := alloc.RequestedTRES(spec)
		oc.limitAsk = o.rules.Ask(all, node, s.part.Name)
	}
}

// bookRunning notes what a job that runs has beside its nodes; nil: nothing.
func (o *forecastModel) bookRunning(h *ledger.Allocation, end core.Time) *modelRelease {
	var b modelRelease
	for _, l := range h.Alloc.Licenses() {
		o.licenses[l.Name] -= l.Total
	}
	b.licenses, b.copies = h.Alloc.Licenses(), 1
	if o.tally != nil && h.Job != nil && h.Job.End == 0 {
		s := h.Job.Spec
		who := policy.Who{Project: s.Project, User: s.User, QOS: s.QOS}
		for _, part := range o.partitions {
			if part.Name == h.Alloc.Partition {
				who.Part = part.QOS
			}
		}
		if g := o.tally.Gate(who); g != nil {
			all, node := alloc.AllocatedTRES(h.Alloc)
			if end == alloc.Never {
				end = 0
			}
			b.limitUses = append(b.limitUses, o.tally.Start(g, o.rules.Ask(all, node, h.Alloc.Partition), end))
		}
	}
	if len(b.licenses)+len(b.limitUses) == 0 {
		return nil
	}
	return &b
}

// release takes back what a job that ended had beside its nodes.
func (o *forecastModel) release(b *modelRelease) {
	if b == nil {
		return
	}
	for _, l := range b.licenses {
		o.licenses[l.Name] += l.Total * b.copies
	}
	for _, s := range b.limitUses {
		o.tally.End(s)
	}
}

// isLimited reports whether a job needs something beside nodes that may not be there.
func (o *forecastModel) isLimited(j *modelJob, c *modelClass) bool {
	return j.gate != 0 || c.licenses != nil
}

// allowsStart reports whether limits and licenses let a job start in this event.
func (o *forecastModel) allowsStart(j *modelJob, c *modelClass) bool {
	if j.gate != 0 {
		if g := o.gates[j.gate]; g != nil && o.tally.Shut(g, c.limitAsk, j.timeLimit, o.eventTime, o.shares,
			int64(o.events)) {
			return false
		}
	}
	return c.licenses == nil || o.freeLicenses(c.licenses) != nil
}

// freeLicenses finds the licenses of an ask, nil if they are not free.
func (o *forecastModel) freeLicenses(ask *alloc.LicenseRequest) []core.License {
	for i := range ask.List {
		free := o.licenses[ask.List[i].Name] >= ask.List[i].Total
		if free && ask.Any {
			return ask.List[i : i+1]
		}
		if !free && !ask.Any {
			return nil
		}
	}
	if ask.Any {
		return nil
	}
	return ask.List
}

// bookStart notes what a job that starts has beside its nodes.
func (o *forecastModel) bookStart(j *modelJob, c *modelClass) *modelRelease {
	if !o.isLimited(j, c) {
		return nil
	}
	b := &modelRelease{copies: 1}
	if c.licenses != nil {
		b.licenses = o.freeLicenses(c.licenses)
		for _, l := range b.licenses {
			o.licenses[l.Name] -= l.Total
		}
	}
	if g := o.gates[j.gate]; j.gate != 0 && g != nil {
		end := alloc.AddTime(o.eventTime, j.timeLimit)
		if end == alloc.Never {
			end = 0
		}
		b.limitUses = append(b.limitUses, o.tally.Start(g, c.limitAsk, end))
	}
	return b
}

// advanceAllows reports whether advance reservations let a job of a class be on the nodes of a pool from one moment to
// another.
func (o *forecastModel) advanceAllows(c *modelClass, w *nodePool, from, end core.Time) bool {
	inside := false
	for _, r := range w.advances {
		if slices.Contains(c.advances, r) {
			if _, fits := r.WindowFor(from, end); r.ConfinesTime() && !fits {
				return false
			}
			inside = true
		} else if r.Overlaps(from, end, 0) {
			return false
		}
	}
	return inside || !c.confined
}
