package sched

import (
	"cmp"
	"container/heap"
	"math"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/policy"
)

// member is a job in its class's own queue.
type member struct {
	job      *core.Job
	gate     *policy.Gate
	at       core.Time
	length   core.Time
	priority uint32
	array    bool
	level    int8
}

// member is a job in the queue of a class. What a pass asks of it is here: looking at the job itself would cost more than
// all the rest.
func (s *slot) member(j *core.Job, g *policy.Gate) member { return memberOf(entryOf(j, s, g)) }

func memberOf(e entry) member {
	return member{job: e.job, gate: e.gate, at: e.at, length: e.length, priority: e.priority, array: e.array, level: e.level}
}

// compare is the order of a partition's queue.
func (m *member) compare(o *member) int {
	switch {
	case m.level != o.level:
		return cmp.Compare(o.level, m.level)
	case m.priority != o.priority:
		return cmp.Compare(o.priority, m.priority)
	case m.at != o.at:
		return cmp.Compare(m.at, o.at)
	}
	return cmp.Compare(m.job.ID, o.job.ID)
}

func (m *member) entry(s *slot) entry {
	return entry{job: m.job, slot: s, gate: m.gate, at: m.at, length: m.length, priority: m.priority, array: m.array, level: m.level}
}

// runner is a class that has jobs which may start, and the first of them.
type runner struct {
	slot *slot
	at   walk[member, *member]
	head entry
}

// runners is a heap of them.
type runners []runner

func (r runners) Len() int           { return len(r) }
func (r runners) Less(i, k int) bool { return r[i].head.compare(&r[k].head) < 0 }
func (r runners) Swap(i, k int)      { r[i], r[k] = r[k], r[i] }
func (r *runners) Push(x any)        { *r = append(*r, x.(runner)) }
func (r *runners) Pop() any {
	k := len(*r) - 1
	x := (*r)[k]
	*r = (*r)[:k]
	return x
}

// headsWithin is how many jobs are tried before lanes go deep though others have not met their heads.
const headsWithin = 256

// deepens tells whether a lane whose head is known is walked by classes from here on.
func (ps *pass) deepens(l *lane, headless int) bool {
	return ps.mayDeepen(l) && (headless == 0 || ps.steps > headsWithin)
}

// mayDeepen tells whether that is likely to come.
func (ps *pass) mayDeepen(l *lane) bool {
	return ps.p.cfg.Rule == RuleEASY && l.headed() && l.part.queue.len >= ps.p.deepFrom
}

// passedOver is how many jobs of such a lane are passed over one by one: a dive will pass over the others at once.
const passedOver = 8

// dive lets a lane go on by classes: only those are looked at of which some job may start, and not every job behind it.
func (ps *pass) dive(l *lane) {
	from := memberOf(*l.at.head())
	l.deep, l.runners = true, l.runners[:0]
	p, part := ps.p, l.part
	p.dives++
	slots, since := ps.roused(part)
	awake := slots[:0]
	for _, s := range slots {
		if s.dived == p.dives || s.jobs == 0 {
			continue
		}
		s.dived = p.dives
		s.catchUp()
		if s.slept = 0; ps.forlorn(s) && s.refusal.seen > 0 && !s.refusal.some && s.push == nil {
			part.lull(s, since)
			continue
		}
		awake = append(awake, s)
		r := runner{slot: s}
		if ps.first(&r, &from) {
			l.runners = append(l.runners, r)
		} else {
			s.measure()
		}
	}
	clear(slots[len(awake):])
	part.awake, part.asleep, part.quiet = awake, since, p.gains.next()
	heap.Init(&l.runners)
}

// hopeless tells whether no job of a class can start any more in this pass.
func (ps *pass) hopeless(s *slot) bool {
	end := after(ps.plan.Now, s.shortest)
	return ps.known(s, end) && (s.push == nil || ps.p.alone() && ps.vain(s, math.MaxUint32, end))
}

// forlorn is hopeless for a class of which nothing may be known yet.
func (ps *pass) forlorn(s *slot) bool {
	if ps.hopeless(s) {
		return true
	}
	if s.lic != nil || len(s.ways) > 0 || !ps.bare(s) {
		return false
	}
	ps.refuseBare(s)
	return true
}

// first finds a class's first job from some job on that may start. Most often there is none, by limits: that is found out
// before the order of jobs is looked at.
func (ps *pass) first(r *runner, from *member) bool {
	r.at = walk[member, *member]{q: &r.slot.members}
	if ps.p.limits == nil {
		r.at = r.slot.members.seek(from)
	}
	for ps.advance(r) {
		if ps.p.limits == nil || r.at.head().compare(from) >= 0 {
			return true
		}
		if r.at = r.slot.members.seek(from); ps.advance(r) {
			return true
		}
	}
	return false
}

// advance finds a class's next job that may start.
func (ps *pass) advance(r *runner) bool {
	for m := r.at.head(); m != nil; m = r.at.head() {
		if m.gate == nil || !ps.p.shut(m.gate, r.slot, m.job, m.length, ps.plan.Now) {
			if ps.hopeless(r.slot) {
				return false
			}
			if r.head = m.entry(r.slot); !ps.refused(&r.head) {
				return true
			}
		}
		r.at.next()
	}
	return false
}

// nextRunner goes past a deep lane's first job.
func (ps *pass) nextRunner(l *lane) {
	l.runners[0].at.next()
	for {
		if ps.advance(&l.runners[0]) {
			heap.Fix(&l.runners, 0)
		} else {
			l.runners.drop()
		}
		if len(l.runners) == 0 || !ps.refused(&l.runners[0].head) {
			return
		}
	}
}

// drop takes out the first.
func (r *runners) drop() {
	k := len(*r) - 1
	(*r)[0] = (*r)[k]
	if *r = (*r)[:k]; k > 1 {
		heap.Fix(r, 0)
	}
}

// measure finds out how short the shortest job of a class is, after others have left.
func (s *slot) measure() {
	s.shortest = never
	for _, chunk := range s.members.chunks {
		for i := range chunk {
			s.shortest = min(s.shortest, chunk[i].length)
		}
	}
}
