package jobs

import (
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/jsontext"
	"bireme.dev/bireme/internal/core/taskset"
	"bireme.dev/bireme/internal/engine/state/live"
	"bireme.dev/bireme/internal/engine/state/runlife"
)

// IsOver reports whether nothing of a job should go on: it has ended, or goes back to the queue when its nodes are
// clean.
func IsOver(j *core.Job) bool { return j.State.Final() || j.Flags.Has(core.Requeueing) }

// HoldsNode reports whether a job that has nodes still has this one.
func HoldsNode(j *core.Job, n core.NodeName) bool {
	for i := range j.Alloc.Nodes {
		if na := &j.Alloc.Nodes[i]; na.Node == n && !na.Done {
			return true
		}
	}
	return false
}

// End gives a job its final state; it holds its nodes until they report it clean.
func (e *Edit) End(st core.JobState, why core.Reason, message string) {
	if e.Job.Stop != nil && !e.Job.State.Final() {
		st = e.Job.Stop.As
	}
	if e.Job.State == core.Suspended && e.Job.Paused != 0 {
		e.Job.PausedFor += e.ed.rec.Now().Sub(e.Job.Paused)
		e.Job.Paused = 0
	}
	e.Job.State, e.Job.Reason, e.Job.End = st, why, e.ed.rec.Now()
	if message != "" {
		e.Job.Message = message
	}
	if e.Job.Alloc != nil {
		e.Job.Flags |= core.Completing
	}
	if e.Job.Spec.Recurs() && e.Job.Stop == nil && e.Job.Alloc != nil {
		e.Job.Flags |= core.Requeueing
	}
	if again := runlife.Again(e.Job); again && e.Job.Alloc != nil && e.ed.HetComplete(e.Job) {
		e.Job.Flags |= core.Requeueing
	}
	e.Event(core.JobEnded, core.Event{
		By:   StoppedBy(e.Job),
		Data: e.ed.rec.EventData(live.EndedData, e.Job),
	})
}

// StoppedBy is who ended a job.
func StoppedBy(j *core.Job) core.UserName {
	if j.Stop != nil {
		return j.Stop.By
	}
	return ""
}

// CancelPending ends a job that never started.
func (e *Edit) CancelPending(stop *core.Stop) {
	e.Job.Stop = stop
	e.Job.Start = e.ed.rec.Now() // as Slurm: a job canceled while it waits shows start = end
	e.End(core.Cancelled, "", "")
	e.Commit()
}

// launchFailed sends a job back held because the cluster, not the job, failed to launch it; one that may not go back
// ends.
func (e *Edit) launchFailed(why core.Reason, held, message string) {
	if e.Job.Spec.Rules() == nil && e.Job.Spec.Kind == core.Batch && e.Job.Spec.Requeue && e.Job.Stop == nil {
		e.MarkRequeue("", true, held) // the very words clients match on
		return
	}
	e.End(core.Failed, why, message)
}

// NodeClean notes that a node is clean of a job; the last one closes it. next must be ours to change.
func (e *Edit) NodeClean(node core.NodeName) {
	left := 0
	al := *e.Job.Alloc
	al.Nodes = slices.Clone(al.Nodes)
	for i := range al.Nodes {
		if al.Nodes[i].Node == node {
			al.Nodes[i].Done = true
		}
		if !al.Nodes[i].Done {
			left++
		}
	}
	e.Job.Alloc = &al
	if left == 0 {
		e.close()
		return
	}
	e.CommitSilently() // the last node's tells
}

// close frees what is left of a job: it leaves memory, or goes back to the queue.
func (e *Edit) close() {
	e.ed.endLiveSteps(e.Job)
	if e.Job.Flags.Has(core.Requeueing) {
		e.requeueNow(e.ed.cfg.RequeueDelay)
		return
	}
	ended := true // before this input: then its end was told and its cleaning is news
	if old, ok := e.ed.rec.Job(e.Job.ID); ok {
		ended = old.State.Final()
	}
	e.Job.Flags &^= core.Completing | core.CancelAsked | core.Shelved | core.ScriptEnded
	if ended {
		e.CommitWith(core.JobCleaned, core.Event{})
	} else {
		e.Commit()
	}
}

// MarkRequeue sends a job to the queue again, when its nodes are clean; held if so asked.
func (e *Edit) MarkRequeue(by core.UserName, hold bool, why string) {
	e.Job.Flags |= core.Requeueing
	if hold {
		e.Job.Flags |= core.RequeueHold
	}
	if why != "" {
		e.Job.Message = why
	}
	if !e.Job.State.Final() {
		e.Job.End = e.ed.rec.Now()
	}
	e.Event(core.JobUpdated, core.Event{By: by, Data: []byte(`{"requeue":true}`)})
}

// RequeueEnded puts a job that had left memory back into the queue.
func (e *Edit) RequeueEnded() { e.requeueNow(0) }

// requeueNow puts a job that was on its way back into the queue, where it waits for delay at least.
func (e *Edit) requeueNow(delay core.Seconds) {
	hold, why := e.Job.Flags.Has(core.RequeueHold), e.Job.Reason
	if e.Job.Alloc != nil {
		e.Job.Remember()
	}
	e.Job.Flags &^= core.Requeueing | core.RequeueHold | core.Completing | core.CancelAsked | core.Shelved |
		core.ScriptEnded
	e.Job.State, e.Job.Alloc, e.Job.Stop, e.Job.Accrue = core.Pending, nil, nil, 0
	e.Job.Start, e.Job.End, e.Job.Paused, e.Job.PausedFor = 0, 0, 0, 0
	e.restoreTimeLimit()
	e.Job.Exit, e.Job.Usage, e.Job.Reason = core.Exit{}, core.Usage{}, ""
	e.Job.Submit, e.Job.Eligible = e.ed.rec.Now(), e.ed.rec.Now()
	tries := e.Job.Attempt
	if runlife.Requeued(e.Job, e.ed.rec.Now()) {
		tries = 0
	} else if e.Job.Spec.Recurs() {
		tries = 0
		// It was read when the job came.
		if at, err := runlife.NextCron(e.Job.Spec, e.ed.cfg.Zone.Location, e.ed.rec.Now()); err == nil {
			e.Job.Eligible = at
		}
	}
	if delay > 0 && e.Job.Pushed == nil {
		e.Job.Eligible = max(e.Job.Eligible, e.ed.rec.Now().Add(delay.Duration()))
	}
	if e.Job.Pushed != nil { // a preemption is not the job's fault
		p := *e.Job.Pushed
		p.Until, p.Lent = 0, nil
		e.Job.Pushed = &p
		tries -= p.Times
	}
	switch {
	case tries > e.ed.cfg.MaxRequeues:
		e.Job.Flags |= core.HeldRequeues
		e.Job.Reason = core.ReasonHoldMaxRequeue
	case hold:
		e.Job.Flags |= core.HeldRequeues
		e.Job.Reason = core.ReasonHeldAdmin // as Slurm 22.05, which shows the message in its place
	}
	if e.Job.Flags.Held() {
		e.Job.Priority = 0
		if why == core.ReasonRequeuedHeld {
			e.Job.Reason = why
		}
	}
	e.CommitWith(core.JobRequeued, core.Event{Data: e.ed.rec.EventData(live.EndedData, e.Job)})
}

// FailOnNode ends a job's attempt because one of its nodes failed: back to the queue if it may, else NODE_FAIL. What
// runs on its other nodes is ended by the hub, which sees a job that is over with nodes not clean. A job that asked for
// that goes on without the node.
func (e *Edit) FailOnNode(node core.NodeName, message string) {
	if IsOver(e.Job) || e.dropFailedNode(node, message) {
		return
	}
	if e.Job.Spec.Requeue && e.Job.Stop == nil && e.Job.Spec.Kind == core.Batch && e.ed.HetComplete(e.Job) {
		e.MarkRequeue("", false, message)
		e.Job.Reason = core.ReasonNodeDown // what is kept of the attempt tells it
		return
	}
	e.End(core.NodeFail, core.ReasonNodeDown, message)
}

// dropFailedNode takes a node that failed out of the allocation of a job that asked to survive that, and reports
// whether it did: not the last node, nor the one its script runs on, nor one of a job whose containers are one whole.
// next must be ours to change.
func (e *Edit) dropFailedNode(node core.NodeName, message string) bool {
	al := e.Job.Alloc
	if !e.Job.Spec.NoKill() || len(al.Nodes) < 2 || e.Job.Spec.More().Container != nil || !HoldsNode(e.Job, node) ||
		e.Job.Spec.Batches() && al.Nodes[0].Node == node {
		return false
	}
	e.DropNode(node, message)
	return true
}

// DropNode takes a node out of the allocation of a job that goes on without it. Steps that ran there have failed.
func (e *Edit) DropNode(node core.NodeName, message string) {
	al := e.Job.Alloc
	less := *al
	less.Nodes = slices.DeleteFunc(slices.Clone(al.Nodes), func(na core.NodeAlloc) bool { return na.Node == node })
	e.Job.Alloc = &less
	if e.Job.Pushed != nil { // what it lent there is gone too
		p := *e.Job.Pushed
		p.Lent = slices.DeleteFunc(slices.Clone(p.Lent), func(l core.Lent) bool { return l.Node == node })
		e.Job.Pushed = &p
	}
	e.ed.FailStepsOn(e.Job, node, message)
	data := jsontext.AppendString([]byte(`{"lost":`), string(node))
	e.Event(core.JobUpdated, core.Event{Node: node, Data: append(data, '}')})
}

// SplitTask takes one task off an array that waits, as a record of its own that the caller stores. The last one is the
// array's record itself.
func (ed *Editor) SplitTask(j *core.Job, k int32) *core.Job {
	task := Clone(j)
	ref := *j.Array
	ref.Task, ref.Tasks = k, taskset.Set{}
	task.Array = &ref
	if j.Array.Tasks.Len() > 1 {
		edit := ed.Edit(j)
		left := *j.Array
		left.Tasks = left.Tasks.Remove(int(k))
		edit.Job.Array = &left
		edit.CommitSilently()
		task.ID = ed.rec.TakeJobID()
	}
	return task
}
