package state

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/sched"
)

// apply applies one placement of a plan, after checking it again: the plan was made beside us and the world moved on.
func (in *Start) apply(s *State) (*Started, error) {
	j, err := s.liveJob(in.Job)
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
	j, err := s.liveJob(in.Job)
	if err != nil {
		return nil, err
	}
	if j.State != core.Pending || sched.IsBlocked(j) || j.Eligible > s.view.now {
		return nil, core.Errorf(core.Conflict, "job %d does not wait to start", j.ID)
	}
	if s.partitions[in.Alloc.Partition] == nil {
		return nil, core.Errorf(core.Conflict, "there is no partition %s any more", in.Alloc.Partition)
	}
	if j.IsArray() && !j.Array.Tasks.Contains(int(in.Task)) {
		return nil, core.Errorf(core.Conflict, "task %d of array %d does not wait", in.Task, j.ID)
	}
	if j.Array != nil && j.Spec.Throttle > 0 && s.runningTasks(j.Array.Base) >= int(j.Spec.Throttle) {
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
		run.ID = s.view.nextJob
	}
	lenders, err := s.lendersFor(j, in, run.ID)
	if err != nil {
		return nil, err
	}
	if !s.placementFreeWith(j, in.Alloc, lenders) {
		return nil, core.Errorf(core.Conflict, "job %d: what the plan gives it is not free", j.ID)
	}
	if j.IsArray() {
		run.Array = &core.ArrayRef{Base: j.Array.Base, Task: in.Task, Count: j.Array.Count, Min: j.Array.Min,
			Max: j.Array.Max, Step: j.Array.Step}
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
			s.putJob(&rest)
			s.view.nextJob++
		}
	}
	if in.Limit != 0 {
		s.shortenTimeLimit(&run, in.Limit)
	}
	run.Room, run.Checkpoint = nil, 0
	s.suspendLenders(lenders)
	run.State, run.Start, run.Alloc, run.Reason, run.Message = core.Running, s.view.now, in.Alloc, "", ""
	run.Attempt++
	s.putJob(&run)
	s.event(core.JobStarted, core.Event{Job: run.ID, User: run.Spec.User, Data: s.eventData(startData, &run)})
	return &Started{ID: run.ID}, nil
}

// runningTasks counts the tasks of an array that hold nodes.
func (s *State) runningTasks(base core.JobID) (n int) {
	for _, id := range s.arrays[base] {
		if j, ok := s.view.jobs.Get(int64(id)); ok && j.Alloc != nil {
			n++
		}
	}
	return n
}

// placementFree checks that nodes are usable and that nothing of the placement is taken.
func (s *State) placementFree(j *core.Job, al *core.Alloc) bool {
	for i := range al.Nodes {
		n, ok := s.view.Node(al.Nodes[i].Node)
		if !ok || !n.Usable() {
			return false
		}
	}
	terms := sched.TermsOf(j.Spec, al)
	for i := range al.Nodes {
		if !s.ledger.Allocate(&al.Nodes[i], terms) {
			for k := range i {
				s.ledger.Release(&al.Nodes[k], terms)
			}
			return false
		}
	}
	for i := range al.Nodes { // putJob books it for good
		s.ledger.Release(&al.Nodes[i], terms)
	}
	return true
}

func startData(j *core.Job) json.RawMessage {
	b := append(make([]byte, 0, 96), `{"attempt":`...)
	b = strconv.AppendInt(b, int64(j.Attempt), 10)
	b = append(b, `,"nodes":`...)
	b = appendJSON(b, NodeList(j.Alloc))
	if j.Array != nil {
		b = append(b, fmt.Sprintf(`,"array":%d,"task":%d`, j.Array.Base, j.Array.Task)...)
	}
	return append(b, '}')
}

// NodeList folds the nodes of an allocation.
func NodeList(al *core.Alloc) string {
	if al == nil || len(al.Nodes) == 0 {
		return ""
	}
	if len(al.Nodes) == 1 {
		return string(al.Nodes[0].Node)
	}
	names := make([]string, len(al.Nodes))
	for i := range al.Nodes {
		names[i] = string(al.Nodes[i].Node)
	}
	return hostlist.Fold(names)
}

// isOver tells whether nothing of a job should go on: it has ended, or goes back to the queue when its nodes are clean.
func isOver(j *core.Job) bool { return j.State.Final() || j.Flags.Has(core.Requeueing) }

// apply takes the report of a step's end. It may come twice, late, or for an attempt that is long over.
func (in *Exited) apply(s *State) (None, error) {
	j, ok := s.view.jobs.Get(int64(in.Job))
	if !ok || j.Attempt != in.Attempt || j.Alloc == nil || !holdsNode(j, in.Node) {
		return none, nil // over and recorded, or never ours: the agent may forget it
	}
	clean := in.JobDone
	if in.Cause == CauseUnkillable {
		s.drainNode(in.Node, "Kill task failed")
		clean = true // what is left is the administrator's; the node takes nothing new until then
	}
	next := cloneJob(j)
	if in.Step == "batch" {
		if j.Usage == (core.Usage{}) && j.Exit == (core.Exit{}) {
			next.Exit, next.Usage, next.Image = in.Exit, in.Usage, in.Image
		}
		if !isOver(j) {
			s.applyBatchExit(next, in)
			if isOver(next) && next.End == s.view.now {
				next.End = s.reportedEnd(in, next.Start)
			}
		}
	} else if in.Step == "extern" {
		if !isOver(j) {
			s.applyContainerExit(next, in)
		}
	} else {
		s.stepExited(j, in)
		if !isOver(j) {
			s.applyStepExit(next, in)
		}
	}
	if clean && isOver(next) { // a job that goes on is not done, whatever a step's end says
		s.markNodeClean(next, in.Node)
		return none, nil
	}
	s.putJobIfChanged(j, next)
	return none, nil
}

// lateReport is how much later than it happened an end may be told to count as told at once.
const lateReport = 2 * time.Second

// reportedEnd is when something ended that began at start: now, unless its node could not tell before.
func (s *State) reportedEnd(in *Exited, start core.Time) core.Time {
	if in.At == 0 || s.view.now.Sub(in.At) < lateReport {
		return s.view.now
	}
	return max(in.At, start)
}

// putJobIfChanged replaces j by next unless they are the same: a report that comes twice writes nothing.
func (s *State) putJobIfChanged(j, next *core.Job) {
	if *next != *j {
		s.putJob(next)
	}
}

// applyBatchExit gives a job that runs its final state (or sends it back) by how its batch step ended.
func (s *State) applyBatchExit(next *core.Job, in *Exited) {
	switch in.Cause {
	case CauseLost, CauseFenced:
		s.failOnNode(next, in.Node, in.Message)
		return
	case CauseProlog:
		s.drainNode(in.Node, "Prolog error")
		s.launchFailed(next, core.ReasonProlog, "launch failed requeued held", in.Message)
		return
	case CauseEnv:
		s.launchFailed(next, core.ReasonLaunchFailure, "user env retrieval failed requeued held", in.Message)
		return
	case CausePort, CauseLaunch:
		if in.Cause == CausePort && next.Spec.Kind == core.Batch && next.Spec.Requeue && next.Stop == nil {
			s.markRequeue(next, "", false, in.Message)
			return
		}
		next.Exit = core.ExitLaunch
		s.endJob(next, core.Failed, core.ReasonLaunchFailure, in.Message)
	case CauseTimeout:
		if at := deadlineOf(next); at != 0 && at <= s.view.now+1e6 { // its limit was what was left until then
			s.missDeadline(next)
			return
		}
		s.endJob(next, core.Timeout, core.ReasonTimeLimit, in.Message)
	case CauseOOM:
		next.Exit = core.ExitOOM
		s.endJob(next, core.OutOfMemory, core.ReasonOutOfMemory, in.Message)
	case CauseCancelled:
		s.endJob(next, core.Cancelled, "", in.Message)
	default:
		switch {
		case in.Exit.Signal != 0:
			s.endJob(next, core.Failed, core.ReasonRaisedSignal, in.Message)
		case in.Exit.Code != 0:
			s.endJob(next, core.Failed, core.ReasonNonZeroExit, in.Message)
		default:
			s.endJob(next, core.Completed, "", in.Message)
		}
	}
}

// applyContainerExit ends a job whose container on one of its nodes is gone before the job is: without it the others
// are no job.
func (s *State) applyContainerExit(next *core.Job, in *Exited) {
	lost := *in
	lost.Message = strings.TrimSuffix("the container on "+string(in.Node)+": "+in.Message, ": ")
	if lost.Cause == CauseExit && lost.Exit == (core.Exit{}) {
		lost.Exit.Signal = 9 // it holds until it is ended
	}
	next.Exit = lost.Exit
	s.applyBatchExit(next, &lost)
}

// applyStepExit ends a job whose numbered step shows that its node cannot go on with it. A step that merely ends,
// however badly, is its creator's affair.
func (s *State) applyStepExit(next *core.Job, in *Exited) {
	switch in.Cause {
	case CauseLost, CauseFenced:
		s.failOnNode(next, in.Node, in.Message)
	case CauseProlog:
		s.drainNode(in.Node, "Prolog error")
		s.launchFailed(next, core.ReasonProlog, "launch failed requeued held", in.Message)
	default:
	}
}

// launchFailed sends a job back held because the cluster, not the job, failed to launch it; one that may not go back
// ends.
func (s *State) launchFailed(next *core.Job, why core.Reason, held, message string) {
	if next.Spec.Kind == core.Batch && next.Spec.Requeue && next.Stop == nil {
		s.markRequeue(next, "", true, held) // the very words clients match on
		return
	}
	s.endJob(next, core.Failed, why, message)
}

// endJob gives a job its final state; it holds its nodes until they report it clean.
func (s *State) endJob(next *core.Job, st core.JobState, why core.Reason, message string) {
	if next.Stop != nil && !next.State.Final() {
		st = next.Stop.As
	}
	if next.State == core.Suspended && next.Paused != 0 {
		next.PausedFor += s.view.now.Sub(next.Paused)
		next.Paused = 0
	}
	next.State, next.Reason, next.End = st, why, s.view.now
	if message != "" {
		next.Message = message
	}
	if next.Alloc != nil {
		next.Flags |= core.Completing
	}
	if next.Spec.Recurs() && next.Stop == nil && next.Alloc != nil {
		next.Flags |= core.Requeueing
	}
	s.event(core.JobEnded, core.Event{Job: next.ID, User: next.Spec.User, By: stoppedBy(next),
		Data: s.eventData(endData, next)})
}

func stoppedBy(j *core.Job) core.UserName {
	if j.Stop != nil {
		return j.Stop.By
	}
	return ""
}

func endData(j *core.Job) json.RawMessage {
	b := append(make([]byte, 0, 96), `{"state":"`...)
	b = append(b, j.State.String()...)
	b = append(b, `","code":`...)
	b = strconv.AppendInt(b, int64(j.Exit.Code), 10)
	b = append(b, `,"signal":`...)
	b = strconv.AppendInt(b, int64(j.Exit.Signal), 10)
	if j.Message != "" {
		b = append(b, `,"message":`...)
		b = appendJSON(b, j.Message)
	}
	return append(b, '}')
}

// markNodeClean notes that a node is clean of a job; the last one closes it. next must be ours to change.
func (s *State) markNodeClean(next *core.Job, node core.NodeName) {
	left := 0
	al := *next.Alloc
	al.Nodes = slices.Clone(al.Nodes)
	for i := range al.Nodes {
		if al.Nodes[i].Node == node {
			al.Nodes[i].Done = true
		}
		if !al.Nodes[i].Done {
			left++
		}
	}
	next.Alloc = &al
	if left == 0 {
		s.closeJob(next)
		return
	}
	s.putJob(next)
}

// closeJob frees what is left of a job: it leaves memory, or goes back to the queue.
func (s *State) closeJob(next *core.Job) {
	s.endLiveSteps(next)
	if next.Flags.Has(core.Requeueing) {
		s.requeueNow(next)
		return
	}
	ended := true // before this input: then its end was told and its cleaning is news
	if old, ok := s.view.jobs.Get(int64(next.ID)); ok {
		ended = old.State.Final()
	}
	next.Flags &^= core.Completing | core.CancelAsked | core.Shelved
	s.putJob(next)
	if ended {
		s.event(core.JobCleaned, core.Event{Job: next.ID, User: next.Spec.User})
	}
}

// endRunOf closes the run of a job that has ended.
func (s *State) endRunOf(j *core.Job) {
	if j.Spec.Run == "" {
		return
	}
	if r, ok := s.view.runs[runKey{j.Spec.Project, j.Spec.Run}]; ok && slices.Contains(r.Jobs, j.ID) {
		done := *r
		done.Ended = s.view.now
		s.putRunRecord(&done)
	}
}

// markRequeue sends a job to the queue again, when its nodes are clean; held if so asked.
func (s *State) markRequeue(next *core.Job, by core.UserName, hold bool, why string) {
	next.Flags |= core.Requeueing
	if hold {
		next.Flags |= core.RequeueHold
	}
	if why != "" {
		next.Message = why
	}
	if !next.State.Final() {
		next.End = s.view.now
	}
	s.event(core.JobUpdated, core.Event{Job: next.ID, User: next.Spec.User, By: by, Data: []byte(`{"requeue":true}`)})
}

// requeueNow puts a job that was on its way back into the queue.
func (s *State) requeueNow(next *core.Job) {
	hold := next.Flags.Has(core.RequeueHold)
	if next.Alloc != nil {
		next.Remember()
	}
	next.Flags &^= core.Requeueing | core.RequeueHold | core.Completing | core.CancelAsked | core.Shelved
	next.State, next.Alloc, next.Stop, next.Accrue = core.Pending, nil, nil, 0
	next.Start, next.End, next.Paused, next.PausedFor = 0, 0, 0, 0
	s.restoreTimeLimit(next)
	next.Exit, next.Usage, next.Reason = core.Exit{}, core.Usage{}, ""
	next.Submit, next.Eligible = s.view.now, s.view.now
	tries := next.Attempt
	if next.Spec.Recurs() {
		tries = 0
		if at, err := s.nextCronTime(next.Spec); err == nil { // it was read when the job came
			next.Eligible = at
		}
	}
	if next.Pushed != nil { // that he had to go is not the job's fault
		p := *next.Pushed
		p.Until, p.Lent = 0, nil
		next.Pushed = &p
		tries -= p.Times
	}
	switch {
	case tries > s.cfg.MaxRequeues:
		next.Flags |= core.HeldRequeues
		next.Reason = core.ReasonHoldMaxRequeue
	case hold:
		next.Flags |= core.HeldRequeues
		next.Reason = core.ReasonHeldAdmin // as Slurm 22.05, which shows the message in its place
	}
	if next.Flags.Held() {
		next.Priority = 0
	}
	s.putJob(next)
	s.event(core.JobRequeued, core.Event{Job: next.ID, User: next.Spec.User, Data: s.eventData(endData, next)})
}

// failOnNode ends a job's attempt because a node of it failed: back to the queue if it may, else NODE_FAIL. What runs
// on its other nodes is ended by the hub, which sees a job that is over with nodes not clean. A job that asked for that
// goes on without the node.
func (s *State) failOnNode(next *core.Job, node core.NodeName, message string) {
	if isOver(next) || s.dropFailedNode(next, node, message) {
		return
	}
	if next.Spec.Requeue && next.Stop == nil && next.Spec.Kind == core.Batch && s.hetComplete(next) {
		s.markRequeue(next, "", false, message)
		next.Reason = core.ReasonNodeDown // what is kept of the attempt tells it
		return
	}
	s.endJob(next, core.NodeFail, core.ReasonNodeDown, message)
}

// apply takes an agent's word that a node is clean of a job.
func (in *NodeDone) apply(s *State) (None, error) {
	j, ok := s.view.jobs.Get(int64(in.Job))
	if !ok || j.Attempt != in.Attempt || j.Alloc == nil {
		return none, nil
	}
	if !isOver(j) || !holdsNode(j, in.Node) {
		return none, nil // a job that goes on is not done, whatever a late message says
	}
	s.markNodeClean(cloneJob(j), in.Node)
	return none, nil
}

// apply ends an interactive job that its creator gives back.
func (in *AllocDone) apply(s *State) (None, error) {
	j, err := s.liveJob(in.Job)
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
	next := cloneJob(j)
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
	s.endJob(next, st, why, "")
	s.putJob(next)
	return none, nil
}

// apply ends interactive jobs whose time is up or that nobody ever used, and jobs that miss their deadline or whose
// minutes have run out, and works priorities out anew when they are due.
func (*Tick) apply(s *State) (None, error) {
	var due []core.JobID
	for id, at := range s.jobDeadlines {
		if at <= s.view.now {
			due = append(due, id)
		}
	}
	slices.Sort(due)
	for _, id := range due {
		j, ok := s.view.jobs.Get(int64(id))
		if !ok || s.jobDeadlines[id] == 0 { // another component of its job has taken it along
			continue
		}
		next := cloneJob(j)
		if at := deadlineOf(j); at != 0 && at <= s.view.now {
			s.missDeadline(next)
			s.putJob(next)
			continue
		}
		why, message := core.ReasonTimeLimit, ""
		if at := s.idleAllocationEnd(j); at != 0 && at <= s.view.now {
			why, message = core.ReasonInactive,
				fmt.Sprintf("no step was started in it within %v; whoever asked for it is gone", s.cfg.InteractiveIdle.Duration())
		}
		if at := s.ownMinutesEnd(j); at != 0 && at <= s.view.now {
			_, message = s.limits.tally.Lasts(s.limits.stakes[id])
		}
		s.endJob(next, core.Timeout, why, message)
		s.putJob(next)
	}
	s.endJobsOutOfMinutes()
	s.runReservationTimers()
	s.runNodeTimers()
	s.recalcPriorities()
	return none, nil
}

func cloneJob(j *core.Job) *core.Job { c := *j; return &c }
