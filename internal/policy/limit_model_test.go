package policy

import (
	"bireme.dev/bireme/internal/core"
)

// QOS is a quality of service with what its jobs have used.
type QOS struct {
	*core.QOS
	Used Usage
}

// QOSPair is the two that a job may be under; either may be nil.
type QOSPair struct{ Job, Partition *QOS }

// order is which of them is asked first.
func (p QOSPair) order() [2]*QOS {
	if p.Job != nil && p.Job.Flags&core.OverPartQOS != 0 {
		return [2]*QOS{p.Job, p.Partition}
	}
	if p.Job == p.Partition {
		return [2]*QOS{p.Job}
	}
	return [2]*QOS{p.Partition, p.Job}
}

func (p QOSPair) limitFactor() float64 {
	if p.Job == nil || p.Job.LimitFactor == 0 {
		return 1
	}
	return p.Job.LimitFactor
}

func (q *QOS) tres(t, totals TRES) TRES {
	if q.Flags&core.Relative == 0 {
		return t
	}
	out := make(TRES, len(t))
	for i, a := range t {
		out[i] = Amount{Name: a.Name, Count: times(totals.Count(a.Name), a.Count) / 100}
	}
	return out
}

// modelTally is what the jobs of somebody hold now.
type modelTally struct {
	Jobs    int64   // running
	Submits int64   // running and waiting
	TRES    TRES    // of the running ones
	Limited []Ahead // of the running ones that have a time limit
}

// Ahead is what is left of running jobs that end together at the latest: TRES-minutes are worked out from it at now.
type Ahead struct {
	End  core.Time
	TRES TRES
}

// RunMins is TRES × remaining minutes of what runs.
func (t *modelTally) RunMins(name string, now core.Time) int64 {
	sum := int64(0)
	for _, a := range t.Limited {
		if left := a.End - now; left > 0 {
			sum += a.TRES.Count(name) * int64((left+minute-1)/minute)
		}
	}
	return sum
}

// Running counts the live jobs for every limit that asks: the model that Tally is held against.
type Running struct {
	Now    core.Time
	Totals TRES
	Safe   bool
	assoc  map[assocKey]*modelTally // of an association: the whole subtree
	qos    map[qosKey]*modelTally
}

// qosKey names a QOS, or one user or account in it.
type qosKey struct {
	qos     core.QOSName
	user    core.UserName
	account core.ProjectName
}

// NewRunning counts nothing yet.
func NewRunning(now core.Time) *Running {
	return &Running{Now: now, assoc: map[assocKey]*modelTally{}, qos: map[qosKey]*modelTally{}}
}

// Submit counts a job that waits; Submit with -1 takes it away.
func (r *Running) Submit(j *Job, t *Tree, q QOSPair, k int64) {
	r.each(j, t, q, func(x *modelTally) { x.Submits += k * max(1, j.Tasks) })
}

// Start counts a job that was counted by Submit and now runs until end, 0 if it has no limit.
func (r *Running) Start(j *Job, t *Tree, q QOSPair, end core.Time) {
	r.each(j, t, q, func(x *modelTally) {
		x.Jobs++
		x.TRES = x.TRES.Plus(j.TRES, 1)
		if end != 0 {
			x.Limited = append(x.Limited, Ahead{end, j.TRES})
		}
	})
}

// End takes away what Start counted, with the same end; Submit with -1 takes away the job itself.
func (r *Running) End(j *Job, t *Tree, q QOSPair, end core.Time) {
	r.each(j, t, q, func(x *modelTally) {
		x.Jobs--
		x.TRES = x.TRES.Plus(j.TRES, -1)
		for i := range x.Limited {
			if x.Limited[i].End == end && x.Limited[i].TRES.String() == j.TRES.String() {
				last := len(x.Limited) - 1
				x.Limited[i] = x.Limited[last]
				x.Limited = x.Limited[:last]
				break
			}
		}
	})
}

func (r *Running) each(j *Job, t *Tree, q QOSPair, do func(*modelTally)) {
	if t.index[assocKey{j.Project, j.User}] == nil { // a user with no association of its own is counted all the same
		do(tallyOf(r.assoc, assocKey{j.Project, j.User}))
	}
	for n := t.find(j.Project, j.User); n != nil; n = n.parent {
		do(tallyOf(r.assoc, assocKey{n.Project, n.User}))
	}
	for _, x := range q.order() {
		if x == nil {
			continue
		}
		do(tallyOf(r.qos, qosKey{qos: x.Name}))
		do(tallyOf(r.qos, qosKey{qos: x.Name, user: j.User}))
		do(tallyOf(r.qos, qosKey{qos: x.Name, account: j.Project}))
	}
}

func tallyOf[K comparable](m map[K]*modelTally, k K) *modelTally {
	x := m[k]
	if x == nil {
		x = &modelTally{}
		m[k] = x
	}
	return x
}

// see is tally for readers: nothing is made.
func see[K comparable](m map[K]*modelTally, k K) *modelTally {
	if x := m[k]; x != nil {
		return x
	}
	return &modelTally{}
}

func (j *Job) minutes() int64 { return minutesOf(j.length()) }

func (j *Job) length() core.Time {
	if j.Limit <= 0 || j.Limit == core.Forever {
		return 0
	}
	return core.Time(j.Limit) * 1e6
}
