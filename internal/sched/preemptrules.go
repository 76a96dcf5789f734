package sched

import (
	"math"

	"bireme.dev/bireme/internal/core"
)

// rankVacated is the level of jobs that others were preempted for.
const rankVacated = math.MaxInt8

// withRank says where a job stands in every queue: one that others were preempted for before all, so that what they
// left is its own, and those who may push others aside before these. Tiers order queues anyway.
func (e queueEntry) withRank() queueEntry {
	switch s := e.class; {
	case e.job.Room != nil:
		e.rank, e.shortKey, e.priority, e.since = rankVacated, 0, math.MaxUint32, core.Time(e.job.Room.Seq)
	case s != nil && s.preemptor != nil && s.preemptor.Qos != nil:
		e.rank = s.preemptor.Qos.Level
	}
	return e
}
