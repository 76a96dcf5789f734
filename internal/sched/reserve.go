package sched

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/advance"
	"bireme.dev/bireme/internal/sched/ledger"
	"bireme.dev/bireme/internal/sched/reserve"
)

// reserve finds the earliest time at which a job could start if all running jobs use their time limit, and reserves its
// nodes from then on. Earlier reservations are respected.
func (ps *pass) reserve(s *partitionClass, j *core.Job) {
	if ps.plan.preemptStarts[j.ID] > 0 && ps.plan.expected[j.ID] != 0 { // it has a reservation on nodes of preempted jobs
		return
	}
	ps.reserveStart(s, j)
}

func (ps *pass) reserveStart(s *partitionClass, j *core.Job) {
	if hetRefOf(j) != nil {
		hetPlacement{ps}.reserve(s, j, true)
		return
	}
	if r := ps.reserveNodes(s, j); r != nil {
		ps.plan.addReservation(r)
	}
}

// reserveNodes is reserve without recording the start in the plan.
func (ps *pass) reserveNodes(s *partitionClass, j *core.Job) *ledger.Reservation {
	ps.p.licenses.Placing = j.ID
	if hetRefOf(j) != nil {
		hetPlacement{ps}.reserve(s, j, false)
		return nil
	}
	return ps.reserveOne(s, j)
}

// reserveOne reserves nodes for one job that is not a het job.
func (ps *pass) reserveOne(s *partitionClass, j *core.Job) *ledger.Reservation {
	ps.p.currentJob = j.ID
	if len(s.options) > 0 {
		if s = ps.earliestOption(s, j); s == nil {
			return nil
		}
	}
	req := ps.startRequest(s, j)
	r := ps.p.finder.Find(req)
	if r != nil {
		ps.p.reserved.Add(r, ps.p.finder.Later())
	}
	return r
}

// startRequest is a job of a class as a search for its earliest start needs it.
func (ps *pass) startRequest(s *partitionClass, j *core.Job) reserve.Request {
	return reserve.Request{
		Job: j, Fit: &s.req, Where: &s.Candidates, Licenses: s.licenses, MayDelayAdvance: s.mayDelayAdvance,
		Length: advance.PlannedTime(j.Spec, s.Advance, ps.plan.Now), From: ps.notBefore,
		FillsWindow: j.Spec.More().Fill && s.Advance.ConfinesTime(),
	}
}

// dropReservationsOf drops the reservations of a job that starts now in another of its partitions.
func (ps *pass) dropReservationsOf(id core.JobID) {
	if !ps.p.reserved.DropOf(id) {
		return
	}
	delete(ps.plan.expected, id)
	delete(ps.plan.reservedOn, id)
	ps.reservationDropped = true
	ps.p.refusals.epoch++ // jobs refused because of it may start now
	for _, part := range ps.p.partitions {
		part.deadClasses = 0
	}
}
