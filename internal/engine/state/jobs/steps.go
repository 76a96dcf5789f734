package jobs

import (
	"slices"
	"strconv"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/speccheck"
	"bireme.dev/bireme/internal/engine/state/steplayout"
)

// PrepareStep checks and places a step. Those that the same command makes before it are there already.
func (ed *Editor) PrepareStep(by core.Identity, step *core.Step, request *core.StepRequest, before []*core.Step) (
	*core.Step, error,
) {
	j, err := ed.rec.LiveJob(step.Job)
	if err != nil {
		return nil, err
	}
	if !by.Admin && by.User != j.Spec.User { // it runs as the job's owner: more than a manager may
		return nil, core.Errorf(core.Denied, "job %d belongs to %s", j.ID, j.Spec.User).Because("access_denied")
	}
	if j.State != core.Running || j.Flags.Any(core.CancelAsked|core.Requeueing) {
		return nil, core.Errorf(core.Conflict, "job %d %s", j.ID, j.State.Phrase()).Because("job_not_running")
	}
	number, others := j.Steps, ed.rec.LiveSteps(j.ID)
	for _, o := range before {
		if o.Job == j.ID {
			number, others = number+1, append(slices.Clip(others), o)
		}
	}
	if most := ed.cfg.StepsPerJob; most > 0 && int(number) >= most {
		return nil, core.Errorf(core.Exhausted, "job %d has had %d steps; the limit is %d (limits.steps_per_job)", j.ID,
			number, most).Because("steps_per_job")
	}
	st := *step
	if request != nil {
		placed, err := steplayout.Place(j, others, step.Name, request)
		if err != nil {
			return nil, err
		}
		st = *placed
		st.Options = step.Options
	}
	if err := speccheck.Step(&st); err != nil {
		return nil, err
	}
	places := core.NodePlaces{List: j.Alloc.Nodes}
	for _, n := range st.Nodes {
		if at := places.Of(n); at < 0 || j.Alloc.Nodes[at].Done {
			return nil, core.Errorf(core.Invalid, "node %s is not in job %d", n, j.ID).Because("invalid_node")
		}
	}
	if request == nil { // else it was placed on what is free
		if err := stepFits(j, others, &st); err != nil {
			return nil, err
		}
	}
	st.ID, st.State, st.Start, st.Attempt, st.Left = number, core.Running, ed.rec.Now(), j.Attempt, int32(len(st.Nodes))
	return &st, nil
}

// stepFits checks that what a step would have to itself is no other step's.
func stepFits(j *core.Job, others []*core.Step, st *core.Step) error {
	if len(st.Holds) == 0 {
		return nil
	}
	if len(st.Holds) != len(st.Nodes) {
		return core.Errorf(core.Internal, "a step on %d nodes holds something on %d", len(st.Nodes), len(st.Holds))
	}
	free := steplayout.Free(j, others)
	for i, n := range st.Nodes {
		at := slices.IndexFunc(free, func(na core.NodeAlloc) bool { return na.Node == n })
		if at < 0 || !steplayout.CanHold(&free[at], &st.Holds[i], &j.Alloc.Nodes[at]) {
			return core.Errorf(core.Conflict, "other steps of job %d have node %s", j.ID, n).Because("nodes_busy")
		}
	}
	return nil
}

// StepExited takes the end of a numbered step on one node; the last node ends it.
func (ed *Editor) StepExited(j *core.Job, in *ExitReport) {
	id, err := strconv.ParseInt(in.Step, 10, 32)
	if err != nil {
		return
	}
	old, ok := ed.rec.Step(j.ID, int32(id))
	if !ok || old.State.Final() || old.Attempt != in.Attempt {
		return
	}
	at := int32(slices.Index(old.Nodes, in.Node))
	if at < 0 || slices.Contains(old.Ended, at) {
		return
	}
	st := *old
	st.Ended = append(slices.Clone(old.Ended), at)
	st.Left--
	if in.Exit.Code > st.Exit.Code {
		st.Exit.Code = in.Exit.Code
	}
	if in.Exit.Signal > st.Exit.Signal {
		st.Exit.Signal = in.Exit.Signal
	}
	st.Usage.User += in.Usage.User
	st.Usage.Sys += in.Usage.Sys
	st.Usage.MaxRSS = max(st.Usage.MaxRSS, in.Usage.MaxRSS)
	st.Usage.GPUUtil, st.Usage.GPUUtilAve = max(st.Usage.GPUUtil, in.Usage.GPUUtil),
		max(st.Usage.GPUUtilAve, in.Usage.GPUUtilAve)
	st.Usage.GPUMem, st.Usage.GPUMemAve = max(st.Usage.GPUMem, in.Usage.GPUMem),
		max(st.Usage.GPUMemAve, in.Usage.GPUMemAve)
	if in.Message != "" {
		st.Message = in.Message
	}
	if st.Left == 0 {
		st.End, st.Ended = ed.reportedEnd(in, st.Start), nil
		switch {
		case in.Cause == CauseOOM:
			st.Exit = core.ExitOOM
			st.State = core.OutOfMemory
		case in.Cause == CauseTimeout:
			st.State = core.Timeout
		case in.Cause == CauseCancelled || j.State == core.Cancelled:
			st.State = core.Cancelled
		case in.Cause == CauseLost || in.Cause == CauseFenced:
			st.State = core.NodeFail
		case st.Exit != core.Exit{} || in.Cause == CauseLaunch:
			st.State = core.Failed
		default:
			st.State = core.Completed
		}
		ed.rec.Event(core.StepEnded, core.Event{Job: j.ID, User: j.Spec.User, Data: StepData(st.ID)})
	}
	ed.rec.PutStep(&st)
}

// endLiveSteps ends the numbered steps of an attempt that is over: of those whose nodes never said how they ended, it
// is known only that they did.
func (ed *Editor) endLiveSteps(j *core.Job) {
	for _, st := range ed.rec.LiveSteps(j.ID) {
		if st.State.Final() || st.Attempt != j.Attempt {
			continue
		}
		end := *st
		end.State, end.End, end.Left, end.Ended = core.Cancelled, ed.rec.Now(), 0, nil
		if j.State == core.NodeFail || j.State == core.Timeout {
			end.State = j.State
		}
		if end.Message == "" {
			end.Message = j.Message
		}
		ed.rec.PutStep(&end)
		ed.rec.Event(core.StepEnded, core.Event{Job: j.ID, User: j.Spec.User, Data: StepData(st.ID)})
	}
}

// StepHasEnded reports whether a numbered step of a job has ended, though a node may not know.
func (ed *Editor) StepHasEnded(j *core.Job, step string) bool {
	id, err := strconv.ParseInt(step, 10, 32)
	if err != nil {
		return false
	}
	st, ok := ed.rec.Step(j.ID, int32(id))
	return ok && st.State.Final() && st.Attempt == j.Attempt
}

// FailStepsOn ends the numbered steps that ran on a node which lost them; the hub ends what is left of them elsewhere.
func (ed *Editor) FailStepsOn(j *core.Job, node core.NodeName, message string) {
	for _, st := range ed.rec.LiveSteps(j.ID) {
		if !st.State.Final() && slices.Contains(st.Nodes, node) {
			end := *st
			end.State, end.End, end.Left, end.Ended, end.Message = core.NodeFail, ed.rec.Now(), 0, nil, message
			ed.rec.PutStep(&end)
			ed.rec.Event(core.StepEnded, core.Event{Job: j.ID, User: j.Spec.User, Data: StepData(st.ID)})
		}
	}
}
