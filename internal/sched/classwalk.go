package sched

import (
	"cmp"
	"container/heap"
	"math"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/policy"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/sorted"
)

// classMember is a job in its class's own queue.
type classMember struct {
	job      *core.Job
	gate     *policy.Gate
	since    core.Time
	minTime  core.Time
	priority uint32
	inArray  bool
	rank     int8
}

// member returns the job's entry in the class's own queue. It has all that a walk reads, so that the job record is not
// loaded.
func (s *partitionClass) member(j *core.Job, g *policy.Gate) classMember {
	return classMemberOf(queueEntryOf(j, s, g))
}

func classMemberOf(e queueEntry) classMember {
	return classMember{
		job: e.job, gate: e.gate, since: e.since, minTime: e.minTime, priority: e.priority,
		inArray: e.inArray, rank: e.rank,
	}
}

// Compare is the order of a partition's queue; see queueEntry.Compare.
func (m *classMember) Compare(o *classMember) int {
	switch {
	case m.rank != o.rank:
		return cmp.Compare(o.rank, m.rank)
	case m.priority != o.priority:
		return cmp.Compare(o.priority, m.priority)
	case m.since != o.since:
		return cmp.Compare(m.since, o.since)
	}
	return cmp.Compare(m.job.ID, o.job.ID)
}

func (m *classMember) entry(s *partitionClass) queueEntry {
	return queueEntry{
		job: m.job, class: s, gate: m.gate, since: m.since, minTime: m.minTime, priority: m.priority,
		inArray: m.inArray, rank: m.rank,
	}
}

// classHead is a class with jobs that may start, and the first of them.
type classHead struct {
	slot   *partitionClass
	cursor sorted.Cursor[classMember, *classMember]
	head   queueEntry
}

// classHeads is a heap of classes, by their first startable job.
type classHeads []classHead

func (r classHeads) Len() int           { return len(r) }
func (r classHeads) Less(i, k int) bool { return r[i].head.Compare(&r[k].head) < 0 }
func (r classHeads) Swap(i, k int)      { r[i], r[k] = r[k], r[i] }
func (r *classHeads) Push(x any)        { *r = append(*r, x.(classHead)) }
func (r *classHeads) Pop() any {
	k := len(*r) - 1
	x := (*r)[k]
	*r = (*r)[:k]
	return x
}

// maxStepsForHeads is how many jobs are tried before a queue is walked by class although other queues have not found
// their heads.
const maxStepsForHeads = 256

// shouldWalkByClass reports whether the walk of a queue whose reservations are made goes on by class.
func (w *queueWalk) shouldWalkByClass(headless int) bool {
	return w.mayWalkByClass() && (headless == 0 || w.ps.steps > maxStepsForHeads)
}

// mayWalkByClass reports whether a queue is eligible for a walk by class.
func (w *queueWalk) mayWalkByClass() bool {
	return w.ps.p.cfg.Rule == core.RuleEASY && w.reservationsMade() && w.part.queue.Len >= w.ps.p.classWalkMinJobs
}

// maxSkipped is how many refused jobs of an eligible queue are skipped one by one; a walk by class skips the others at
// once.
const maxSkipped = 8

// walkByClass continues a walk by class: a heap holds the first startable job of each class that may start anything.
func (w *queueWalk) walkByClass() {
	from := classMemberOf(*w.cursor.Current())
	w.byClass, w.heads = true, w.heads[:0]
	ps, p, part := w.ps, w.ps.p, w.part
	p.classWalks++
	slots, since := part.classesToVisit(p)
	awake := slots[:0]
	for _, s := range slots {
		if s.walkedBy == p.classWalks || s.queued == 0 {
			continue
		}
		s.walkedBy = p.classWalks
		s.catchUp()
		if s.sleepWalk = 0; s.refuseIfNoRoom(ps) && s.refusal.freedSeq > 0 && !s.refusal.improved && s.preemptor == nil {
			part.putToSleep(s, since)
			continue
		}
		awake = append(awake, s)
		r := classHead{slot: s}
		if r.firstStartable(ps, &from) {
			w.heads = append(w.heads, r)
		} else {
			s.updateMinTime()
		}
	}
	clear(slots[len(awake):])
	part.awakeClasses, part.sleepWalk, part.sleepFreedSeq = awake, since, p.nodes.Freed.Next()
	heap.Init(&w.heads)
}

// cannotStart reports whether it is known that no job of the class can start in this pass.
func (s *partitionClass) cannotStart(ps *pass) bool {
	end := alloc.AddTime(ps.plan.Now, s.minTime)
	return ps.p.refusals.isRefused(s, end) && (s.preemptor == nil ||
		ps.p.hasOneQueue() && ps.preemptions.hasNoVictims(s, math.MaxUint32, end))
}

// refuseIfNoRoom is cannotStart for a class that may not have been tried yet. It refuses the class if no node has room
// for a task.
func (s *partitionClass) refuseIfNoRoom(ps *pass) bool {
	if s.cannotStart(ps) {
		return true
	}
	if s.licenses != nil || len(s.options) > 0 || !ps.p.refusals.noNodeHasRoom(s) {
		return false
	}
	ps.p.refusals.recordNoRoom(s)
	return true
}

// firstStartable finds the first job of a class, at or behind from, that may start. With limits most classes have none,
// so it looks for any job first and seeks to from only then.
func (r *classHead) firstStartable(ps *pass, from *classMember) bool {
	r.cursor = sorted.Cursor[classMember, *classMember]{List: &r.slot.members}
	if ps.p.limits == nil {
		r.cursor = r.slot.members.Seek(from)
	}
	for r.nextStartable(ps) {
		if ps.p.limits == nil || r.cursor.Current().Compare(from) >= 0 {
			return true
		}
		if r.cursor = r.slot.members.Seek(from); r.nextStartable(ps) {
			return true
		}
	}
	return false
}

// nextStartable moves to the class's next job that may start and reports whether there is one.
func (r *classHead) nextStartable(ps *pass) bool {
	limits, now, epoch := ps.p.limits, ps.plan.Now, ps.p.refusals.epoch
	for m := r.cursor.Current(); m != nil; m = r.cursor.Current() {
		if m.gate == nil || !limits.isBlocked(m.gate, r.slot, m.job, m.minTime, now, epoch) {
			if r.slot.cannotStart(ps) {
				return false
			}
			if r.head = m.entry(r.slot); !ps.isRefused(&r.head) {
				return true
			}
		}
		r.cursor.Next()
	}
	return false
}

// nextByClass moves a walk by class past its first job.
func (w *queueWalk) nextByClass() {
	w.heads[0].cursor.Next()
	for {
		if w.heads[0].nextStartable(w.ps) {
			heap.Fix(&w.heads, 0)
		} else {
			w.heads.removeFirst()
		}
		if len(w.heads) == 0 || !w.ps.isRefused(&w.heads[0].head) {
			return
		}
	}
}

func (r *classHeads) removeFirst() {
	k := len(*r) - 1
	(*r)[0] = (*r)[k]
	if *r = (*r)[:k]; k > 1 {
		heap.Fix(r, 0)
	}
}

// updateMinTime recomputes minTime, which is only a bound after jobs left.
func (s *partitionClass) updateMinTime() {
	s.minTime = alloc.Never
	for _, chunk := range s.members.Chunks {
		for i := range chunk {
			s.minTime = min(s.minTime, chunk[i].minTime)
		}
	}
}
