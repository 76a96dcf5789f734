package state

import (
	"slices"
	"strconv"

	"bireme.dev/bireme/internal/core"
)

// dropFailedNode takes a node that failed out of the allocation of a job that asked to survive that, and tells whether
// it did: not the last node, nor the one its script runs on, nor one of a job whose containers are one whole. next must
// be ours to change.
func (e *jobEdit) dropFailedNode(node core.NodeName, message string) bool {
	al := e.job.Alloc
	if !e.job.Spec.NoKill() || len(al.Nodes) < 2 || e.job.Spec.More().Container != nil || !holdsNode(e.job, node) ||
		e.job.Spec.Batches() && al.Nodes[0].Node == node {
		return false
	}
	less := *al
	less.Nodes = slices.DeleteFunc(slices.Clone(al.Nodes), func(na core.NodeAlloc) bool { return na.Node == node })
	e.job.Alloc = &less
	if e.job.Pushed != nil { // what it lent there is gone too
		p := *e.job.Pushed
		p.Lent = slices.DeleteFunc(slices.Clone(p.Lent), func(l core.Lent) bool { return l.Node == node })
		e.job.Pushed = &p
	}
	e.s.failStepsOn(e.job, node, message)
	data := appendJSON([]byte(`{"lost":`), string(node))
	e.event(core.JobUpdated, core.Event{Node: node, Data: append(data, '}')})
	return true
}

// stepHasEnded tells whether a numbered step of a job has ended, though a node may not know.
func (s *State) stepHasEnded(j *core.Job, step string) bool {
	id, err := strconv.ParseInt(step, 10, 32)
	if err != nil {
		return false
	}
	st, ok := s.rec.Step(j.ID, int32(id))
	return ok && st.State.Final() && st.Attempt == j.Attempt
}

// failStepsOn ends the numbered steps that ran on a node which lost them; the hub ends what is left of them elsewhere.
func (s *State) failStepsOn(j *core.Job, node core.NodeName, message string) {
	for _, st := range s.rec.LiveSteps(j.ID) {
		if !st.State.Final() && slices.Contains(st.Nodes, node) {
			end := *st
			end.State, end.End, end.Left, end.Ended, end.Message = core.NodeFail, s.rec.Now(), 0, nil, message
			s.rec.PutStep(&end)
			s.rec.Event(core.StepEnded, core.Event{Job: j.ID, User: j.Spec.User, Data: stepData(st.ID)})
		}
	}
}
