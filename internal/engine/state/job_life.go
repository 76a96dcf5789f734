package state

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/live"
	"bireme.dev/bireme/internal/engine/state/runlife"
	"bireme.dev/bireme/internal/sched"
)

// apply applies one placement of a plan, after checking it again: the plan was made beside us and the world moved on.
func (in *Start) apply(s *State) (*Started, error) {
	j, err := s.rec.LiveJob(in.Job)
	if err != nil {
		return nil, err
	}
	if ref := j.Spec.More().Het; ref != nil {
		if err := s.checkHetStart(in, ref); err != nil {
			return nil, err
		}
	}
	first, err := s.startJob(in)
	for i := range in.Rest {
		_, failed := s.startJob(&in.Rest[i])
		core.Assert(failed == nil, "component %d could start beside the others, and could not after them: %v",
			in.Rest[i].Job, failed)
	}
	return first, err
}

func (s *State) startJob(in *Start) (*Started, error) {
	j, err := s.rec.LiveJob(in.Job)
	if err != nil {
		return nil, err
	}
	if j.State != core.Pending || sched.IsBlocked(j) || j.Eligible > s.rec.Now() {
		return nil, core.Errorf(core.Conflict, "job %d does not wait to start", j.ID)
	}
	if s.cluster.Partitions[in.Alloc.Partition] == nil {
		return nil, core.Errorf(core.Conflict, "partition %s no longer exists", in.Alloc.Partition)
	}
	if j.IsArray() && !j.Array.Tasks.Contains(int(in.Task)) {
		return nil, core.Errorf(core.Conflict, "task %d of array %d does not wait", in.Task, j.ID)
	}
	if j.Array != nil && j.Spec.Throttle > 0 && s.cluster.RunningTasks(j.Array.Base) >= int(j.Spec.Throttle) {
		return nil, core.Errorf(core.Conflict, "as many tasks of array %d run as its limit allows", j.Array.Base)
	}
	if err := s.checkStartLimits(j, in.Alloc); err != nil {
		return nil, err
	}
	if err := s.recheckStart(j, in); err != nil {
		return nil, err
	}
	run := *j
	if j.IsArray() && j.Array.Tasks.Len() > 1 { // the last task takes the array's own id
		run.ID = s.rec.NextJob()
	}
	lenders, err := s.lendersFor(j, in, run.ID)
	if err != nil {
		return nil, err
	}
	if !s.placementFreeWith(j, in.Alloc, lenders) {
		return nil, core.Errorf(core.Conflict, "job %d: what the plan gives it is not free", j.ID)
	}
	if j.IsArray() {
		run.Array = &core.ArrayRef{
			Base: j.Array.Base, Task: in.Task, Count: j.Array.Count, Min: j.Array.Min,
			Max: j.Array.Max, Step: j.Array.Step,
		}
		if run.ID != j.ID {
			rest := *j
			ref := *j.Array
			ref.Tasks = ref.Tasks.Remove(int(in.Task))
			rest.Array = &ref
			if rest.Room != nil {
				room := *rest.Room
				if rest.Room = &room; room.Starts <= 1 {
					rest.Room = nil
				}
				room.Starts--
			}
			edit := s.editRecord(&rest)
			edit.commitSilently() // the start of the task tells
			s.rec.TakeJobID()
		}
	}
	edit := s.editRecord(&run)
	if in.Limit != 0 {
		edit.shortenTimeLimit(in.Limit)
	}
	run.Room, run.Checkpoint = nil, 0
	s.suspendLenders(lenders)
	run.State, run.Start, run.Alloc, run.Reason, run.Message = core.Running, s.rec.Now(), in.Alloc, "", ""
	run.Attempt++
	runlife.Started(&run)
	edit.commitWith(core.JobStarted, core.Event{Data: s.rec.EventData(live.StartedData, &run)})
	return &Started{ID: run.ID}, nil
}

// isOver tells whether nothing of a job should go on: it has ended, or goes back to the queue when its nodes are clean.
func isOver(j *core.Job) bool { return j.State.Final() || j.Flags.Has(core.Requeueing) }

// apply takes the report of a step's end. It may come twice, late, or for an attempt that is long over.
func (in *Exited) apply(s *State) (None, error) {
	j, ok := s.rec.Job(in.Job)
	if !ok || j.Attempt != in.Attempt || j.Alloc == nil || !holdsNode(j, in.Node) {
		return none, nil // over and recorded, or never ours: the agent may forget it
	}
	clean := in.JobDone
	if in.Cause == CauseUnkillable {
		s.drainNode(in.Node, "Kill task failed")
		clean = true // what is left is the administrator's; the node takes nothing new until then
	}
	edit := s.editJob(j)
	next := edit.job
	if in.Step == "batch" {
		if j.Usage == (core.Usage{}) && j.Exit == (core.Exit{}) {
			next.Exit, next.Usage, next.Image = in.Exit, in.Usage, in.Image
		}
		if !isOver(j) {
			edit.batchExited(in)
			if isOver(next) && next.End == s.rec.Now() {
				next.End = s.reportedEnd(in, next.Start)
			}
		}
	} else if in.Step == "extern" {
		if !isOver(j) {
			edit.containerExited(in)
		}
	} else {
		s.stepExited(j, in)
		if !isOver(j) {
			edit.stepExited(in)
			runlife.Disconnected(next, s.rec.LiveSteps(j.ID), s.rec.Now())
		}
	}
	if clean && isOver(next) { // a job that goes on is not done, whatever a step's end says
		edit.nodeClean(in.Node)
		return none, nil
	}
	edit.commitIfChanged(j)
	return none, nil
}

// lateReport is how much later than it happened an end may be told to count as told at once.
const lateReport = 2 * time.Second

// reportedEnd is when something ended that began at start: now, unless its node could not tell before.
func (s *State) reportedEnd(in *Exited, start core.Time) core.Time {
	if in.At == 0 || s.rec.Now().Sub(in.At) < lateReport {
		return s.rec.Now()
	}
	return max(in.At, start)
}

// batchExited gives a job that runs its final state (or sends it back) by how its batch step ended.
func (e *jobEdit) batchExited(in *Exited) {
	switch in.Cause {
	case CauseLost, CauseFenced:
		e.failOnNode(in.Node, in.Message)
		return
	case CauseProlog:
		e.s.drainNode(in.Node, "Prolog error")
		e.launchFailed(core.ReasonProlog, "launch failed requeued held", in.Message)
		return
	case CauseEnv:
		e.launchFailed(core.ReasonLaunchFailure, "user env retrieval failed requeued held", in.Message)
		return
	case CausePort, CauseLaunch:
		why := core.ReasonLaunchFailure
		if in.Cause == CausePort && e.job.Spec.Rules() != nil {
			why = core.ReasonPortTaken
		}
		if in.Cause == CausePort && e.job.Spec.Kind == core.Batch && e.job.Spec.Requeue && e.job.Stop == nil {
			e.markRequeue("", false, in.Message)
			e.job.Reason = why // what is kept of the attempt tells it
			return
		}
		e.job.Exit = core.ExitLaunch
		e.end(core.Failed, why, in.Message)
	case CauseTimeout:
		if at := deadlineOf(e.job); at != 0 && at <= e.s.rec.Now()+1e6 { // its limit was what was left until then
			e.missDeadline()
			return
		}
		e.end(core.Timeout, core.ReasonTimeLimit, in.Message)
	case CauseOOM:
		e.job.Exit = core.ExitOOM
		e.end(core.OutOfMemory, core.ReasonOutOfMemory, in.Message)
	case CauseCancelled:
		e.end(core.Cancelled, "", in.Message)
	default:
		switch {
		case in.Exit.Signal != 0:
			e.end(core.Failed, core.ReasonRaisedSignal, in.Message)
		case in.Exit.Code != 0:
			e.end(core.Failed, core.ReasonNonZeroExit, in.Message)
		default:
			e.end(core.Completed, "", in.Message)
		}
	}
}

// containerExited ends a job whose container on one of its nodes is gone before the job is: without it the others
// are no job.
func (e *jobEdit) containerExited(in *Exited) {
	lost := *in
	lost.Message = strings.TrimSuffix("the container on "+string(in.Node)+": "+in.Message, ": ")
	if lost.Cause == CauseExit && lost.Exit == (core.Exit{}) {
		lost.Exit.Signal = 9 // it holds until it is ended
	}
	e.job.Exit = lost.Exit
	e.batchExited(&lost)
}

// stepExited ends a job whose numbered step shows that its node cannot go on with it. A step that merely ends,
// however badly, is its creator's affair.
func (e *jobEdit) stepExited(in *Exited) {
	switch in.Cause {
	case CauseLost, CauseFenced:
		e.failOnNode(in.Node, in.Message)
	case CauseProlog:
		e.s.drainNode(in.Node, "Prolog error")
		e.launchFailed(core.ReasonProlog, "launch failed requeued held", in.Message)
	default:
	}
}

// launchFailed sends a job back held because the cluster, not the job, failed to launch it; one that may not go back
// ends.
func (e *jobEdit) launchFailed(why core.Reason, held, message string) {
	if e.job.Spec.Rules() == nil && e.job.Spec.Kind == core.Batch && e.job.Spec.Requeue && e.job.Stop == nil {
		e.markRequeue("", true, held) // the very words clients match on
		return
	}
	e.end(core.Failed, why, message)
}

// end gives a job its final state; it holds its nodes until they report it clean.
func (e *jobEdit) end(st core.JobState, why core.Reason, message string) {
	if e.job.Stop != nil && !e.job.State.Final() {
		st = e.job.Stop.As
	}
	if e.job.State == core.Suspended && e.job.Paused != 0 {
		e.job.PausedFor += e.s.rec.Now().Sub(e.job.Paused)
		e.job.Paused = 0
	}
	e.job.State, e.job.Reason, e.job.End = st, why, e.s.rec.Now()
	if message != "" {
		e.job.Message = message
	}
	if e.job.Alloc != nil {
		e.job.Flags |= core.Completing
	}
	if e.job.Spec.Recurs() && e.job.Stop == nil && e.job.Alloc != nil {
		e.job.Flags |= core.Requeueing
	}
	if again := runlife.Again(e.job); again && e.job.Alloc != nil && e.s.hetComplete(e.job) {
		e.job.Flags |= core.Requeueing
	}
	e.event(core.JobEnded, core.Event{
		By:   stoppedBy(e.job),
		Data: e.s.rec.EventData(live.EndedData, e.job),
	})
}

func stoppedBy(j *core.Job) core.UserName {
	if j.Stop != nil {
		return j.Stop.By
	}
	return ""
}

// nodeClean notes that a node is clean of a job; the last one closes it. next must be ours to change.
func (e *jobEdit) nodeClean(node core.NodeName) {
	left := 0
	al := *e.job.Alloc
	al.Nodes = slices.Clone(al.Nodes)
	for i := range al.Nodes {
		if al.Nodes[i].Node == node {
			al.Nodes[i].Done = true
		}
		if !al.Nodes[i].Done {
			left++
		}
	}
	e.job.Alloc = &al
	if left == 0 {
		e.close()
		return
	}
	e.commitSilently() // the last node's tells
}

// close frees what is left of a job: it leaves memory, or goes back to the queue.
func (e *jobEdit) close() {
	e.s.endLiveSteps(e.job)
	if e.job.Flags.Has(core.Requeueing) {
		e.requeueNow()
		return
	}
	ended := true // before this input: then its end was told and its cleaning is news
	if old, ok := e.s.rec.Job(e.job.ID); ok {
		ended = old.State.Final()
	}
	e.job.Flags &^= core.Completing | core.CancelAsked | core.Shelved
	if ended {
		e.commitWith(core.JobCleaned, core.Event{})
	} else {
		e.commit()
	}
}

// endRunOf closes the run of a job that has ended.
func (s *State) endRunOf(j *core.Job) {
	if j.Spec.Run == "" {
		return
	}
	if r, ok := s.rec.Run(j.Spec.Project, j.Spec.Run); ok && slices.Contains(r.Jobs, j.ID) {
		done := *r
		done.Ended = s.rec.Now()
		s.rec.PutRun(&done)
	}
}

// markRequeue sends a job to the queue again, when its nodes are clean; held if so asked.
func (e *jobEdit) markRequeue(by core.UserName, hold bool, why string) {
	e.job.Flags |= core.Requeueing
	if hold {
		e.job.Flags |= core.RequeueHold
	}
	if why != "" {
		e.job.Message = why
	}
	if !e.job.State.Final() {
		e.job.End = e.s.rec.Now()
	}
	e.event(core.JobUpdated, core.Event{By: by, Data: []byte(`{"requeue":true}`)})
}

// requeueNow puts a job that was on its way back into the queue.
func (e *jobEdit) requeueNow() {
	hold := e.job.Flags.Has(core.RequeueHold)
	if e.job.Alloc != nil {
		e.job.Remember()
	}
	e.job.Flags &^= core.Requeueing | core.RequeueHold | core.Completing | core.CancelAsked | core.Shelved
	e.job.State, e.job.Alloc, e.job.Stop, e.job.Accrue = core.Pending, nil, nil, 0
	e.job.Start, e.job.End, e.job.Paused, e.job.PausedFor = 0, 0, 0, 0
	e.restoreTimeLimit()
	e.job.Exit, e.job.Usage, e.job.Reason = core.Exit{}, core.Usage{}, ""
	e.job.Submit, e.job.Eligible = e.s.rec.Now(), e.s.rec.Now()
	tries := e.job.Attempt
	if runlife.Requeued(e.job, e.s.rec.Now()) {
		tries = 0
	} else if e.job.Spec.Recurs() {
		tries = 0
		// It was read when the job came.
		if at, err := runlife.NextCron(e.job.Spec, e.s.cfg.Zone.Location, e.s.rec.Now()); err == nil {
			e.job.Eligible = at
		}
	}
	if e.job.Pushed != nil { // that he had to go is not the job's fault
		p := *e.job.Pushed
		p.Until, p.Lent = 0, nil
		e.job.Pushed = &p
		tries -= p.Times
	}
	switch {
	case tries > e.s.cfg.MaxRequeues:
		e.job.Flags |= core.HeldRequeues
		e.job.Reason = core.ReasonHoldMaxRequeue
	case hold:
		e.job.Flags |= core.HeldRequeues
		e.job.Reason = core.ReasonHeldAdmin // as Slurm 22.05, which shows the message in its place
	}
	if e.job.Flags.Held() {
		e.job.Priority = 0
	}
	e.commitWith(core.JobRequeued, core.Event{Data: e.s.rec.EventData(live.EndedData, e.job)})
}

// failOnNode ends a job's attempt because one of its nodes failed: back to the queue if it may, else NODE_FAIL. What
// runs on its other nodes is ended by the hub, which sees a job that is over with nodes not clean. A job that asked for
// that goes on without the node.
func (e *jobEdit) failOnNode(node core.NodeName, message string) {
	if isOver(e.job) || e.dropFailedNode(node, message) {
		return
	}
	if e.job.Spec.Requeue && e.job.Stop == nil && e.job.Spec.Kind == core.Batch && e.s.hetComplete(e.job) {
		e.markRequeue("", false, message)
		e.job.Reason = core.ReasonNodeDown // what is kept of the attempt tells it
		return
	}
	e.end(core.NodeFail, core.ReasonNodeDown, message)
}

// apply takes an agent's word that a node is clean of a job.
func (in *NodeDone) apply(s *State) (None, error) {
	j, ok := s.rec.Job(in.Job)
	if !ok || j.Attempt != in.Attempt || j.Alloc == nil {
		return none, nil
	}
	if !isOver(j) || !holdsNode(j, in.Node) {
		return none, nil // a job that goes on is not done, whatever a late message says
	}
	edit := s.editJob(j)
	edit.nodeClean(in.Node)
	return none, nil
}

// apply ends an interactive job that its creator gives back.
func (in *AllocDone) apply(s *State) (None, error) {
	j, err := s.rec.LiveJob(in.Job)
	if err != nil {
		return none, err
	}
	if err := s.authorize(in.By, j); err != nil {
		return none, err
	}
	if j.Spec.Kind != core.Interactive {
		return none, core.Errorf(core.Invalid, "job %d is a batch job; it ends with its script", j.ID)
	}
	if j.State.Final() {
		return none, nil
	}
	edit := s.editJob(j)
	next := edit.job
	next.Exit = in.Exit
	st := core.Completed
	why := core.ReasonNone
	switch in.Exit {
	case core.Exit{}:
	case core.ExitOOM:
		st, why = core.OutOfMemory, core.ReasonOutOfMemory
	default:
		st, why = core.Failed, core.ReasonNonZeroExit
	}
	if j.State == core.Pending {
		st = core.Cancelled
	}
	edit.end(st, why, "")
	edit.commit()
	return none, nil
}

// apply ends interactive jobs whose time is up or that nobody ever used, and jobs that miss their deadline or whose
// minutes have run out, and works priorities out anew when they are due.
func (*Tick) apply(s *State) (None, error) {
	var due []core.JobID
	for id, at := range s.jobDeadlines {
		if at <= s.rec.Now() {
			due = append(due, id)
		}
	}
	slices.Sort(due)
	for _, id := range due {
		j, ok := s.rec.Job(id)
		if !ok || s.jobDeadlines[id] == 0 { // another component of its job has taken it along
			continue
		}
		edit := s.editJob(j)
		if at := deadlineOf(j); at != 0 && at <= s.rec.Now() {
			edit.missDeadline()
			edit.commit()
			continue
		}
		if at := runlife.Due(j); at != 0 && at <= s.rec.Now() {
			edit.runExpired()
			continue
		}
		why, message := core.ReasonTimeLimit, ""
		if at := s.idleAllocationEnd(j); at != 0 && at <= s.rec.Now() {
			why, message = core.ReasonInactive,
				fmt.Sprintf("no step was started in it within %v; whoever asked for it is gone", s.cfg.InteractiveIdle.Duration())
		}
		if at := s.ownMinutesEnd(j); at != 0 && at <= s.rec.Now() {
			_, message = s.limits.tally.Lasts(s.limits.stakes[id])
		}
		edit.end(core.Timeout, why, message)
		edit.commit()
	}
	s.endJobsOutOfMinutes()
	s.runReservationTimers()
	s.runNodeTimers()
	s.recalcPriorities()
	return none, nil
}

func cloneJob(j *core.Job) *core.Job { c := *j; return &c }
