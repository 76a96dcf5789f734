package servicelife

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/runlife"
)

// Patience is how long a replica of a new version may run without being ready before the update is taken back.
const Patience = 30 * time.Minute

// JobFunc finds a live job.
type JobFunc func(core.JobID) (*core.Job, bool)

// Steps are what is to be done now.
type Steps struct {
	Start    []int32 // groups, one entry a replica
	Drain    []int32 // numbers of replicas that get no more requests
	Stop     []int32 // numbers of replicas whose jobs end now
	RollBack string  // why the newest version is taken back; empty: it is not
}

// None reports that there is nothing to do.
func (s *Steps) None() bool { return len(s.Start)+len(s.Drain)+len(s.Stop) == 0 && s.RollBack == "" }

// planner looks at one service.
type planner struct {
	svc *core.Service
	job JobFunc
	now core.Time
	out Steps
}

// Plan says what is to be done about a service now.
func Plan(svc *core.Service, job JobFunc, now core.Time) Steps {
	p := &planner{svc: svc, job: job, now: now}
	if p.late() {
		return p.out
	}
	for g := range svc.Groups {
		p.group(int32(g))
	}
	p.stops()
	return p.out
}

// late takes an update back of which a replica is not ready for too long.
func (p *planner) late() bool {
	if p.svc.Stop != nil || !CanRollBack(p.svc) {
		return false
	}
	newest := p.svc.Current().Num
	for i := range p.svc.Replicas {
		r := &p.svc.Replicas[i]
		j, live := p.job(r.Job)
		if r.Version == newest && !r.Was && r.Draining == 0 && live && j.State == core.Running &&
			p.now.Sub(j.Start) > Patience {
			p.out.RollBack = fmt.Sprintf("replica %d of deployment %d was not ready within %v", r.Num, newest, Patience)
			if r.Message != "" {
				p.out.RollBack += ": " + r.Message
			}
			return true
		}
	}
	return false
}

// group compares the replicas of a group with what is wanted.
func (p *planner) group(g int32) {
	group, newest := &p.svc.Groups[g], p.svc.Current().Num
	var current, old []*core.Replica // those that stay, as far as is decided
	ready := int32(0)
	for i := range p.svc.Replicas {
		r := &p.svc.Replicas[i]
		switch {
		case r.Group != g || r.Draining != 0 || r.Stopped:
			continue
		case p.svc.Stop != nil:
			p.out.Drain = append(p.out.Drain, r.Num)
			continue
		case r.Version == newest:
			current = append(current, r)
		default:
			old = append(old, r)
		}
		if p.ready(r) {
			ready++
		}
	}
	if p.svc.Stop != nil {
		return
	}
	have, want := int32(len(current)+len(old)), group.Want
	most := want
	if len(old) > 0 {
		most++ // one more while versions change
	}
	if n := min(want-int32(len(current)), most-have); n > 0 && group.RetryAt <= p.now {
		for range n {
			p.out.Start = append(p.out.Start, g)
		}
	}
	p.order(old)
	for _, r := range old { // the least useful first: those that serve nobody can go at once
		if !p.ready(r) && (ready > 0 || p.usable(current)) || p.ready(r) && ready > want {
			if p.ready(r) {
				ready--
			}
			p.out.Drain = append(p.out.Drain, r.Num)
		}
	}
	p.order(current)
	for _, r := range current[:max(0, len(current)-int(want))] {
		p.out.Drain = append(p.out.Drain, r.Num)
	}
}

// usable reports whether one of these replicas exists at all: a new version takes the place of an old one that never
// served.
func (p *planner) usable(list []*core.Replica) bool { return len(list) > 0 }

// order sorts replicas so that those that are missed least come first.
func (p *planner) order(list []*core.Replica) {
	slices.SortStableFunc(list, func(a, b *core.Replica) int {
		return cmp.Or(p.importance(a)-p.importance(b), cmp.Compare(b.Num, a.Num))
	})
}

// importance is as in dstack: one that gets requests before one that runs, and that before one that waits.
func (p *planner) importance(r *core.Replica) int {
	j, live := p.job(r.Job)
	switch {
	case !live:
		return 0
	case r.IsReady(j):
		return 3
	case j.State == core.Running && !j.Flags.Has(core.Requeueing):
		return 2
	}
	return 1
}

func (p *planner) ready(r *core.Replica) bool { return p.importance(r) == 3 }

// stops ends replicas that have no more requests: which the reports say, or which cannot have any.
func (p *planner) stops() {
	for i := range p.svc.Replicas {
		r := &p.svc.Replicas[i]
		if r.Stopped || r.Draining == 0 && !slices.Contains(p.out.Drain, r.Num) {
			continue
		}
		j, live := p.job(r.Job)
		abort := p.svc.Stop != nil && p.svc.Stop.Abort
		idle := !live || j.State != core.Running || r.ReadyIn == 0
		late := r.Draining != 0 && p.now.Sub(r.Draining) >= p.svc.Drain.Duration()
		if abort || idle || late {
			p.out.Stop = append(p.out.Stop, r.Num)
		}
	}
}

// CanRollBack reports whether an update is under way that can be taken back: replicas of an older version serve.
func CanRollBack(svc *core.Service) bool {
	newest := svc.Current().Num
	for i := range svc.Replicas {
		if r := &svc.Replicas[i]; r.Version != newest && r.ReadyIn != 0 && r.Draining == 0 {
			return true
		}
	}
	return false
}

// RollBack makes the newest of the older versions that still serve the one that the service is to have.
func RollBack(svc *core.Service, why string) {
	best := int32(-1)
	newest := svc.Current().Num
	for i := range svc.Replicas {
		if r := &svc.Replicas[i]; r.Version != newest && r.ReadyIn != 0 && r.Draining == 0 {
			best = max(best, r.Version)
		}
	}
	v := svc.Version(best)
	if v == nil {
		return
	}
	back := *v
	isBest := func(x core.ServiceVersion) bool { return x.Num == best }
	svc.Versions = append(slices.DeleteFunc(svc.Versions, isBest), back)
	svc.Message = fmt.Sprintf("deployment %d was taken back: %s", newest, why)
	for g := range svc.Groups {
		svc.Groups[g].Failures, svc.Groups[g].RetryAt = 0, 0
	}
}

// Prune drops versions that no replica has, except the last.
func Prune(svc *core.Service) {
	last := svc.Current().Num
	svc.Versions = slices.DeleteFunc(svc.Versions, func(v core.ServiceVersion) bool {
		return v.Num != last && !slices.ContainsFunc(svc.Replicas, func(r core.Replica) bool { return r.Version == v.Num })
	})
}

// stable is how long a replica lives for its failure not to count as another of a series.
const stable = 10 * time.Minute

// brief is how long a replica runs at least whose end from outside is no failure.
const brief = time.Minute

// Ended notes the end of a replica's job, which is no longer live, and reports whether the run is over with it.
func Ended(svc *core.Service, j *core.Job, job JobFunc, now core.Time) (over bool) {
	r := svc.ReplicaOf(j.ID)
	if r == nil {
		return false
	}
	ended := *r
	svc.Replicas = slices.DeleteFunc(svc.Replicas, func(x core.Replica) bool { return x.Job == j.ID })
	defer Prune(svc)
	if svc.Stop != nil {
		return len(svc.Replicas) == 0
	}
	if ended.Stopped || ended.Draining != 0 {
		return false
	}
	if !failed(j) {
		// One that has itself canceled, or a limit of seconds, again and again is not replaced faster than one that fails.
		if (j.State == core.Cancelled || j.State == core.Timeout) && j.Elapsed(j.End) < brief {
			Fail(svc, ended.Group, fmt.Sprintf("replica %d (job %d) %s", ended.Num, j.ID, j.State.Phrase()), now, false)
		}
		return false
	}
	why := fmt.Sprintf("replica %d (job %d) %s", ended.Num, j.ID, j.State.Phrase())
	if j.Message != "" {
		why += ": " + j.Message
	}
	if !ended.Was && ended.Version == svc.Current().Num && CanRollBack(svc) {
		RollBack(svc, why)
		return false
	}
	ready := slices.ContainsFunc(svc.Replicas, func(x core.Replica) bool {
		other, live := job(x.Job)
		return live && x.IsReady(other)
	})
	if !ready {
		svc.Stop = &core.Stop{At: now, As: core.Cancelled}
		return len(svc.Replicas) == 0
	}
	Fail(svc, ended.Group, why, now, j.Elapsed(j.End) >= stable)
	return false
}

// Fail notes a failure of a group's replica, and when the next one may be started. fresh begins a new series.
func Fail(svc *core.Service, group int32, why string, now core.Time, fresh bool) {
	g := &svc.Groups[group]
	if fresh {
		g.Failures = 0
	}
	svc.Message = why
	if g.Failures > 0 || !fresh {
		g.RetryAt = now.Add(runlife.Backoff(g.Failures).Duration())
	}
	g.Failures++
}

// failed reports whether a job that has ended did so by itself: it failed, or its program left. What users, nodes and
// preemption end is replaced at once.
func failed(j *core.Job) bool {
	switch j.State {
	case core.Failed, core.OutOfMemory, core.Completed, core.BootFail:
		return true
	default:
		return false
	}
}
