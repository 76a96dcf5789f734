package ranking

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/live"
	"bireme.dev/bireme/internal/policy"
)

// updateAccrual has as many jobs grow older as limits allow, first come, first served. Who does keeps that until it
// starts or no longer waits for its turn; an array is one of them until its tasks start. It is done with every
// calculation of priorities: between two of them nobody's age is asked for.
func (r *Calc) updateAccrual() {
	l := r.limits.Current()
	if !l.Rules.Accrual() {
		return
	}
	before := r.rec.Ranking()
	var has policy.Accrual
	var change []*core.Job
	due := func(j *core.Job) bool { return live.AccruesAge(j) && j.Eligible <= r.rec.Now() }
	for j := range r.rec.Jobs() {
		switch {
		case j.State != core.Pending || j.Accrue == 0:
		case due(j):
			has.Has(l.Gate(l.Tally, j))
		default:
			change = append(change, j)
		}
	}
	for j := range r.rec.Jobs() {
		if j.State != core.Pending || j.Accrue != 0 || !due(j) {
			continue
		}
		if g := l.Gate(l.Tally, j); has.Admits(g) {
			has.Has(g)
			change = append(change, j)
		}
	}
	for _, j := range change {
		edit := r.jobs.Edit(j)
		next := edit.Job
		if next.Accrue = 0; due(j) && j.Accrue == 0 {
			next.Accrue = max(1, j.Eligible, j.Released)
			if g := l.Gate(l.Tally, j); g.Bounded() && before != nil && before.Accrual && next.Accrue < r.began {
				next.Accrue = r.rec.Now() // it was not its turn until now
			}
		}
		edit.CommitSilently() // priorities show it
	}
}
