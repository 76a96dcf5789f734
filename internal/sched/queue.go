package sched

import (
	"cmp"
	"math"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/policy"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/sorted"
)

// queueEntry is a pending job in a queue with its sort key. Fields that a walk needs are copied here, so that it need
// not load the job record.
type queueEntry struct {
	job      *core.Job
	class    *partitionClass
	since    core.Time // submit time; begin time in Planner.ineligible
	shortKey core.Time // time limit, in queues ordered by it; else 0
	minTime  core.Time // the shortest run time it accepts
	priority uint32
	inArray  bool // it is an array, or a task of one
	rank     int8 // jobs that may preempt come before their victims; see withRank
	gate     *policy.Gate
}

func queueEntryOf(j *core.Job, s *partitionClass, g *policy.Gate) queueEntry {
	return queueEntry{
		job: j, class: s, gate: g, since: j.Submit, priority: j.Priority, minTime: alloc.MustFitTime(j.Spec),
		inArray: j.Array != nil,
	}.withRank()
}

// shortestEntryOf returns a job's entry in a queue that is ordered by time limit.
func shortestEntryOf(j *core.Job, s *partitionClass, g *policy.Gate) queueEntry {
	return queueEntry{
		job: j, class: s, gate: g, since: j.Submit, shortKey: alloc.TimeLimit(j.Spec),
		minTime: alloc.MustFitTime(j.Spec), inArray: j.Array != nil,
	}.withRank()
}

// ineligibleEntryOf returns a job's entry among the jobs whose begin time lies ahead.
func ineligibleEntryOf(j *core.Job) queueEntry { return queueEntry{job: j, since: j.Eligible} }

// Compare orders a queue: rank, time limit if shortKey is set, priority, age, id. No two entries are equal.
func (e *queueEntry) Compare(f *queueEntry) int {
	switch {
	case e.rank != f.rank:
		return cmp.Compare(f.rank, e.rank)
	case e.shortKey != f.shortKey:
		return cmp.Compare(e.shortKey, f.shortKey)
	case e.priority != f.priority:
		return cmp.Compare(f.priority, e.priority)
	case e.since != f.since:
		return cmp.Compare(e.since, f.since)
	}
	return cmp.Compare(e.job.ID, f.job.ID)
}

// queue holds pending jobs in order.
type queue = sorted.List[queueEntry, *queueEntry]

type queueCursor = sorted.Cursor[queueEntry, *queueEntry]

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
