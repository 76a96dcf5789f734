package policy

import (
	"math"

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

// scaled is a limit of TRES as it stands after percent and factors.
func scaled(t TRES, factor float64) TRES {
	if factor == 1 || len(t) == 0 {
		return t
	}
	out := make(TRES, len(t))
	for i, a := range t {
		out[i] = Amount{Name: a.Name, Count: int64(float64(a.Count) * factor)}
	}
	return out
}

func (q *QOS) tres(t, totals TRES) TRES {
	if q.Flags&core.Relative == 0 {
		return t
	}
	out := make(TRES, len(t))
	for i, a := range t {
		out[i] = Amount{Name: a.Name, Count: totals.Count(a.Name) * a.Count / 100}
	}
	return out
}

// Tally is what the jobs of somebody hold now.
type Tally struct {
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
func (t *Tally) RunMins(name string, now core.Time) int64 {
	sum := 0.0
	for _, a := range t.Limited {
		if left := a.End.Sub(now); left > 0 {
			sum += float64(a.TRES.Count(name)) * left.Minutes()
		}
	}
	return int64(sum)
}

// Running counts the live jobs for every limit that asks. Jobs are added and taken away as they come, start and end.
type Running struct {
	Now   core.Time
	assoc map[assocKey]*Tally // of an association: the whole subtree
	qos   map[qosKey]*Tally
}

// qosKey names a QOS, or one user or account in it.
type qosKey struct {
	qos     core.QOSName
	user    core.UserName
	account core.ProjectName
}

// NewRunning counts nothing yet.
func NewRunning(now core.Time) *Running {
	return &Running{Now: now, assoc: map[assocKey]*Tally{}, qos: map[qosKey]*Tally{}}
}

// Submit counts a job that waits; Submit with -1 takes it away.
func (r *Running) Submit(j *Job, t *Tree, q QOSPair, k int64) {
	r.each(j, t, q, func(x *Tally) { x.Submits += k * max(1, j.Tasks) })
}

// Start counts a job that was counted by Submit and now runs until end, 0 if it has no limit.
func (r *Running) Start(j *Job, t *Tree, q QOSPair, end core.Time) {
	r.each(j, t, q, func(x *Tally) {
		x.Jobs++
		x.TRES = x.TRES.Plus(j.TRES, 1)
		if end != 0 {
			x.Limited = append(x.Limited, Ahead{end, j.TRES})
		}
	})
}

// End takes away what Start counted, with the same end; Submit with -1 takes away the job itself.
func (r *Running) End(j *Job, t *Tree, q QOSPair, end core.Time) {
	r.each(j, t, q, func(x *Tally) {
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

func (r *Running) each(j *Job, t *Tree, q QOSPair, do func(*Tally)) {
	if t.index[assocKey{j.Account, j.User}] == nil { // a user with no association of its own is counted all the same
		do(tally(r.assoc, assocKey{j.Account, j.User}))
	}
	for n := t.find(j.Account, j.User); n != nil; n = n.parent {
		do(tally(r.assoc, assocKey{n.Account, n.User}))
	}
	for _, x := range q.order() {
		if x == nil {
			continue
		}
		do(tally(r.qos, qosKey{qos: x.Name}))
		do(tally(r.qos, qosKey{qos: x.Name, user: j.User}))
		do(tally(r.qos, qosKey{qos: x.Name, account: j.Account}))
	}
}

func tally[K comparable](m map[K]*Tally, k K) *Tally {
	x := m[k]
	if x == nil {
		x = &Tally{}
		m[k] = x
	}
	return x
}

// see is tally for readers: nothing is made.
func see[K comparable](m map[K]*Tally, k K) *Tally {
	if x := m[k]; x != nil {
		return x
	}
	return &Tally{}
}

// minutes is the job's time limit, endless if it has none.
func (j *Job) minutes() int64 {
	if j.Limit <= 0 || j.Limit == core.Forever {
		return math.MaxInt64
	}
	return int64((j.Limit + 59) / 60)
}

// times multiplies without running over.
func times(a, b int64) int64 {
	if a > 0 && b > math.MaxInt64/a {
		return math.MaxInt64
	}
	return a * b
}

// plus adds without running over.
func plus(a, b int64) int64 {
	if b > math.MaxInt64-a {
		return math.MaxInt64
	}
	return a + b
}
