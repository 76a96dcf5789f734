package jobs

import (
	"fmt"

	"bireme.dev/bireme/internal/core"
)

// A het job is several jobs, its components, with ids that follow each other. They wait, start and go back to the queue
// together. Only the first has a script, and when it ends all end as it did. One of the others that ends while they run
// takes all with it, as its nodes are what the script counts on, unless somebody canceled just that one.

// HetComponent finds a live component: the job of that number, if it says itself that it is one.
func (ed *Editor) HetComponent(ref *core.HetRef, offset int32) (*core.Job, bool) {
	j, ok := ed.rec.Job(ref.Lead + core.JobID(offset))
	if !ok {
		return nil, false
	}
	if own := j.Spec.More().Het; own == nil || own.Lead != ref.Lead || own.Count != ref.Count || own.Offset != offset {
		return nil, false
	}
	return j, true
}

// HetComplete reports whether a job is none of several components, or all of them are live.
func (ed *Editor) HetComplete(j *core.Job) bool {
	ref := j.Spec.More().Het
	if ref == nil {
		return true
	}
	for k := range ref.Count {
		if _, ok := ed.HetComponent(ref, k); !ok {
			return false
		}
	}
	return true
}

// ErrHetComponent refuses what is done with the first component only.
func ErrHetComponent(j *core.Job, ref *core.HetRef, what string) error {
	return core.Errorf(core.Conflict, "job %d is component %d of job %d, which is %s as a whole", j.ID, ref.Offset,
		ref.Lead, what).Because("het_component")
}

// HetJobChanged lets the other components follow one that has just ended or goes back to the queue.
func (ed *Editor) HetJobChanged(old, j *core.Job, ref *core.HetRef) {
	if old == nil {
		return
	}
	// It was on its way back to the queue and ends instead.
	calledOff := old.Flags.Has(core.Requeueing) && !j.Flags.Has(core.Requeueing) && j.State.Final()
	if IsOver(old) && !calledOff || !IsOver(j) && !wasRequeued(old, j) {
		return
	}
	if ref.Offset == 0 {
		for k := int32(1); k < ref.Count; k++ {
			switch f, ok := ed.HetComponent(ref, k); {
			case !ok:
			case !IsOver(f):
				ed.followComponent(f, j, "")
			case j.State.Final() && !j.Flags.Has(core.Requeueing) && f.Flags.Has(core.Requeueing): // it would come back alone
				edit := ed.Edit(f)
				next := edit.Job
				next.Flags &^= core.Requeueing | core.RequeueHold
				next.Stop = j.Stop
				edit.End(j.State, j.Reason, "")
				edit.Commit()
			}
		}
		return
	}
	if old.State != core.Pending && j.Stop != nil && j.Stop.As == core.Cancelled {
		return // just this one
	}
	if lead, ok := ed.HetComponent(ref, 0); ok && !IsOver(lead) {
		ed.followComponent(lead, j, fmt.Sprintf("component %d+%d ended as %s", ref.Lead, ref.Offset, j.State))
	}
}

// wasRequeued reports whether a job that ran is in the queue again.
func wasRequeued(old, j *core.Job) bool { return old.Alloc != nil && j.State == core.Pending }

// followComponent ends a component as another one did, or sends it back to the queue with it.
func (ed *Editor) followComponent(f, after *core.Job, message string) {
	edit := ed.Edit(f)
	next := edit.Job
	switch {
	case after.Flags.Has(core.Requeueing) || after.State == core.Pending:
		if f.Alloc == nil { // it is back already
			return
		}
		edit.MarkRequeue(StoppedBy(after), after.Flags.Any(core.RequeueHold|core.HeldRequeues), after.Message)
		next.Flags |= after.Flags & (core.HeldUser | core.HeldAdmin)
	case after.Stop != nil && f.State == core.Pending:
		next.Stop = after.Stop
		next.Start = ed.rec.Now() // as Slurm: see cancelPending
		edit.End(after.State, after.Reason, "")
	default:
		if after.Stop != nil {
			next.Stop = after.Stop
			next.Flags |= after.Flags & core.CancelAsked
		}
		next.Exit = after.Exit
		edit.End(after.State, after.Reason, message)
	}
	edit.Commit()
}
