package sched

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
)

// A job that asks for few switches waits for them for a while: until then it is in a class that is placed on so few only,
// afterwards in one that is not. The moment follows from the job alone.

// few gives how many leaf switches a job wants at most and until when it waits for that; 0: it does not say, or there are
// no switches.
func (p *Planner) few(j *core.Job) (switches int32, until core.Time) {
	x, net := j.Spec.Extra, p.ledger.net
	if x == nil || x.Switches == "" || x.Het != nil || net == nil || net.sizes != nil {
		return 0, 0
	}
	n, wait, err := grammar.ParseSwitches(x.Switches)
	if err != nil {
		return 0, 0
	}
	most := int64(p.cfg.MaxSwitchWait)
	if wait == grammar.Unlimited || wait > most {
		wait = most
	}
	return n, max(j.Submit, j.Eligible) + core.Time(wait)*1e6
}

// loosen lets jobs whose patience is over be placed on as many switches as it takes, and finds the next one's moment.
func (p *Planner) loosen(now core.Time, plan *Plan) {
	for {
		c := cursor{q: &p.patient}
		e := c.head()
		if e == nil {
			return
		}
		if e.at > now {
			plan.wake(e.at)
			return
		}
		j := e.job
		p.look(j)
		p.forget(p.pending[j.ID])
		p.stand(j, 0)
	}
}

// keyAt names the class a job is in at a moment.
func (p *Planner) keyAt(j *core.Job, now core.Time, r *ruling) classKey {
	k := p.keyOf(j.Spec, r)
	if n, until := p.few(j); n > 0 && now < until {
		k.few = n
	}
	return k
}

// wake makes sure the plan is looked at again at a moment.
func (p *Plan) wake(at core.Time) {
	if p.WakeAt == 0 || at < p.WakeAt {
		p.WakeAt = at
	}
}

// loose is the need without the wish for few switches.
func (n *need) loose() *need {
	if n.wish == nil || n.wish.switches == 0 {
		return n
	}
	m, w := *n, *n.wish
	w.switches, m.wish = 0, &w
	return &m
}
