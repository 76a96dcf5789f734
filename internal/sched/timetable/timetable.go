package timetable

import (
	"slices"
	"sort"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/alloc"
)

// Timetable is the plan of conservative backfill on a machine that is one node and one partition, as traces describe
// them: every job has a place in time from its arrival on, and moves only to earlier times, in the order of the queue,
// when something ends before its time. It is not a cache: the places that jobs got at their arrival cannot be computed
// again later.
type Timetable struct {
	Jobs  map[core.JobID]*Job
	steps []step // free CPUs by time; the last lasts forever
}

// step is a time from which on so many CPUs are free.
type step struct {
	at   core.Time
	free int64
}

// Job is a job with its place in time.
type Job struct {
	At, Length core.Time
	CPUs       int64
	Running    bool
}

// New returns an empty timetable.
func New() *Timetable { return &Timetable{Jobs: map[core.JobID]*Job{}} }

// Place gives a job the first place that has enough CPUs free for all of its time.
func (t *Timetable) Place(b *Job, now core.Time) {
	at := now
	for i := 0; i < len(t.steps); i++ {
		if s := &t.steps[i]; s.free < b.CPUs {
			if i+1 < len(t.steps) {
				at = t.steps[i+1].at
				continue
			}
			at = alloc.Never
		} else if i+1 < len(t.steps) && t.steps[i+1].at < alloc.AddTime(at, b.Length) {
			continue
		}
		break
	}
	b.At = at
	t.add(at, alloc.AddTime(at, b.Length), -b.CPUs)
}

// Move gives a job that has not started the first place that is free now.
func (t *Timetable) Move(b *Job, now core.Time) {
	t.add(max(b.At, now), alloc.AddTime(b.At, b.Length), b.CPUs)
	t.Place(b, now)
}

// AddRunning adds a job that runs already.
func (t *Timetable) AddRunning(id core.JobID, b *Job, now core.Time) {
	b.At, b.Running = now, true
	t.add(now, alloc.AddTime(now, b.Length), -b.CPUs)
	t.Jobs[id] = b
}

// Remove removes a job and reports whether that frees CPUs it was planned to have from now on.
func (t *Timetable) Remove(id core.JobID, now core.Time) (early bool) {
	b := t.Jobs[id]
	if end := alloc.AddTime(b.At, b.Length); end > now {
		t.add(max(b.At, now), end, b.CPUs)
		early = true
	}
	delete(t.Jobs, id)
	return early
}

// Forget drops what lies before now. A new timetable begins with so many CPUs free.
func (t *Timetable) Forget(now core.Time, cpus int64) {
	if len(t.steps) == 0 {
		t.steps = append(t.steps, step{free: cpus})
	}
	i := t.find(now)
	t.steps = slices.Delete(t.steps, 0, i)
	t.steps[0].at = now
}

// find returns the index of the step that a time falls into.
func (t *Timetable) find(at core.Time) int {
	return sort.Search(len(t.steps), func(i int) bool { return t.steps[i].at > at }) - 1
}

// split makes a step begin at a time and returns its index.
func (t *Timetable) split(at core.Time) int {
	i := t.find(at)
	if t.steps[i].at == at {
		return i
	}
	t.steps = slices.Insert(t.steps, i+1, step{at, t.steps[i].free})
	return i + 1
}

// add changes the free CPUs between two times.
func (t *Timetable) add(from, to core.Time, cpus int64) {
	if from >= to {
		return
	}
	i, end := t.split(from), len(t.steps)
	if to < alloc.Never {
		end = t.split(to)
	}
	for k := i; k < end; k++ {
		t.steps[k].free += cpus
	}
	for _, k := range [...]int{end, i} { // equal steps become one
		if k > 0 && k < len(t.steps) && t.steps[k].free == t.steps[k-1].free {
			t.steps = slices.Delete(t.steps, k, k+1)
		}
	}
}
