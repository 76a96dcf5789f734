package sched

import (
	"cmp"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/policy"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/sorted"
)

// queueEntry is a pending job in a queue, with the key it was put in under. Job records never change, so the id is read
// from
// there, when all else is equal.
type queueEntry struct {
	job      *core.Job
	class    *partitionClass
	since    core.Time // when it was submitted, or from when on it may start
	shortKey core.Time // how long it may run, in queues that have the shortest first; else 0
	minTime  core.Time // how long it must be able to run
	priority uint32
	inArray  bool // it is one, or of one
	rank     int8 // those who may push others aside stand before these
	gate     *policy.Gate
}

func queueEntryOf(j *core.Job, s *partitionClass, g *policy.Gate) queueEntry {
	return queueEntry{
		job: j, class: s, gate: g, since: j.Submit, priority: j.Priority, minTime: alloc.MustFitTime(j.Spec),
		inArray: j.Array != nil,
	}.withRank()
}

// shortestEntryOf is a job's entry in a queue that has the shortest first.
func shortestEntryOf(j *core.Job, s *partitionClass, g *policy.Gate) queueEntry {
	return queueEntry{
		job: j, class: s, gate: g, since: j.Submit, shortKey: alloc.TimeLimit(j.Spec),
		minTime: alloc.MustFitTime(j.Spec), inArray: j.Array != nil,
	}.withRank()
}

// ineligibleEntryOf is a job's entry among those whose moment has not come.
func ineligibleEntryOf(j *core.Job) queueEntry { return queueEntry{job: j, since: j.Eligible} }

// Compare orders a queue: length where that counts, priority, then age, then id, so that no two entries are equal.
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

// queue is the jobs that wait, in order.
type queue = sorted.List[queueEntry, *queueEntry]

// queueCursor walks a queue.
type queueCursor = sorted.Cursor[queueEntry, *queueEntry]
