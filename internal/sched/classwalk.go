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
func (ps *pass) shouldWalkByClass(l *queueWalk, headless int) bool {
	return ps.mayWalkByClass(l) && (headless == 0 || ps.steps > maxStepsForHeads)
}

// mayWalkByClass reports whether a queue is eligible for a walk by class.
func (ps *pass) mayWalkByClass(l *queueWalk) bool {
	return ps.p.cfg.Rule == RuleEASY && l.reservationsMade() && l.part.queue.Len >= ps.p.classWalkMinJobs
}

// maxSkipped is how many refused jobs of an eligible queue are skipped one by one; a walk by class skips the others at
// once.
const maxSkipped = 8

// walkByClass continues a walk by class: a heap holds the first startable job of each class that may start anything.
func (ps *pass) walkByClass(l *queueWalk) {
	from := classMemberOf(*l.cursor.Current())
	l.byClass, l.heads = true, l.heads[:0]
	p, part := ps.p, l.part
	p.classWalks++
	slots, since := ps.classesToVisit(part)
	awake := slots[:0]
	for _, s := range slots {
		if s.walkedBy == p.classWalks || s.queued == 0 {
			continue
		}
		s.walkedBy = p.classWalks
		s.catchUp()
		if s.sleepWalk = 0; ps.refuseIfNoRoom(s) && s.refusal.freedSeq > 0 && !s.refusal.improved && s.preemptor == nil {
			part.putToSleep(s, since)
			continue
		}
		awake = append(awake, s)
		r := classHead{slot: s}
		if ps.firstStartable(&r, &from) {
			l.heads = append(l.heads, r)
		} else {
			s.updateMinTime()
		}
	}
	clear(slots[len(awake):])
	part.awakeClasses, part.sleepWalk, part.sleepFreedSeq = awake, since, p.nodes.Freed.Next()
	heap.Init(&l.heads)
}

// classCannotStart reports whether it is known that no job of the class can start in this pass.
func (ps *pass) classCannotStart(s *partitionClass) bool {
	end := alloc.AddTime(ps.plan.Now, s.minTime)
	return ps.isClassRefused(s, end) && (s.preemptor == nil || ps.p.hasOneQueue() && ps.hasNoVictims(s, math.MaxUint32,
		end))
}

// refuseIfNoRoom is classCannotStart for a class that may not have been tried yet. It refuses the class if no node has
// room for a task.
func (ps *pass) refuseIfNoRoom(s *partitionClass) bool {
	if ps.classCannotStart(s) {
		return true
	}
	if s.licenses != nil || len(s.options) > 0 || !ps.noNodeHasRoom(s) {
		return false
	}
	ps.recordNoRoom(s)
	return true
}

// firstStartable finds the first job of a class, at or behind from, that may start. With limits most classes have none,
// so it looks for any job first and seeks to from only then.
func (ps *pass) firstStartable(r *classHead, from *classMember) bool {
	r.cursor = sorted.Cursor[classMember, *classMember]{List: &r.slot.members}
	if ps.p.limits == nil {
		r.cursor = r.slot.members.Seek(from)
	}
	for ps.nextStartable(r) {
		if ps.p.limits == nil || r.cursor.Current().Compare(from) >= 0 {
			return true
		}
		if r.cursor = r.slot.members.Seek(from); ps.nextStartable(r) {
			return true
		}
	}
	return false
}

// nextStartable moves to the class's next job that may start and reports whether there is one.
func (ps *pass) nextStartable(r *classHead) bool {
	for m := r.cursor.Current(); m != nil; m = r.cursor.Current() {
		if m.gate == nil || !ps.p.isLimited(m.gate, r.slot, m.job, m.minTime, ps.plan.Now) {
			if ps.classCannotStart(r.slot) {
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
func (ps *pass) nextByClass(l *queueWalk) {
	l.heads[0].cursor.Next()
	for {
		if ps.nextStartable(&l.heads[0]) {
			heap.Fix(&l.heads, 0)
		} else {
			l.heads.removeFirst()
		}
		if len(l.heads) == 0 || !ps.isRefused(&l.heads[0].head) {
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
