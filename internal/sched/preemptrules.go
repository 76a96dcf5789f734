package sched

import (
	"math"

	"bireme.dev/bireme/internal/core"
)

// rankVacated is the rank of jobs for which others were preempted.
const rankVacated = math.MaxInt8

// withRank sets the rank: jobs with vacated nodes come first, so that they get these nodes; jobs of a QOS that may
// preempt come before their victims. Between partitions tiers order the queues anyway.
func (e queueEntry) withRank() queueEntry {
	switch s := e.class; {
	case e.job.Room != nil:
		e.rank, e.shortKey, e.priority, e.since = rankVacated, 0, math.MaxUint32, core.Time(e.job.Room.Seq)
	case s != nil && s.preemptor != nil && s.preemptor.Qos != nil:
		e.rank = s.preemptor.Qos.Level
	}
	return e
}
