package sched

import "bireme.dev/bireme/internal/core"

// A job that asks for few switches waits for them for a while. Until then it is in a class that is placed on so few
// switches only, afterwards in one without that limit. That time depends on the job alone.

// switchLimit returns how many leaf switches a job wants at most and until when it waits for that; 0: any number.
func (cs *classSet) switchLimit(j *core.Job) (switches int32, until core.Time) {
	x, net := j.Spec.Extra, cs.nodes.Ledger.Net
	if x == nil || x.Switches.Count() == 0 || x.Het != nil || net == nil || net.Sizes != nil {
		return 0, 0
	}
	wait := min(x.Switches.Wait(), cs.cfg.MaxSwitchWait)
	return x.Switches.Count(), max(j.Submit, j.Eligible) + core.Time(wait)*1e6
}

// expireSwitchWaits moves jobs whose wait for few switches is over to a class without that limit, and records the next
// such time.
func (p *Planner) expireSwitchWaits(now core.Time, plan *Plan) {
	for {
		c := queueCursor{List: &p.switchWaiters}
		e := c.Current()
		if e == nil {
			return
		}
		if e.since > now {
			plan.wakeAt(e.since)
			return
		}
		j := e.job
		p.setCurrentJob(j)
		p.removePending(p.pending[j.ID])
		p.enqueueInPartitions(j, 0)
	}
}

// keyAt returns the class of a job at a time.
func (cs *classSet) keyAt(j *core.Job, now core.Time, r *classRules) classKey {
	k := cs.keyOf(j.Spec, r)
	if n, until := cs.switchLimit(j); n > 0 && now < until {
		k.switchLimit = n
	}
	return k
}

// wakeAt lowers WakeAt to a time.
func (p *Plan) wakeAt(at core.Time) {
	if p.WakeAt == 0 || at < p.WakeAt {
		p.WakeAt = at
	}
}
