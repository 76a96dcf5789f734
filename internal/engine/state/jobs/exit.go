package jobs

import (
	"slices"
	"strings"
	"time"

	"bireme.dev/bireme/internal/core"
)

// ExitReport is the report of an agent that a step ended on its node. It may come twice.
type ExitReport struct {
	Node    core.NodeName
	Job     core.JobID
	Attempt int32
	Step    string // "batch", "0", …
	Exit    core.Exit
	Cause   ExitCause
	Message string
	Usage   core.Usage
	Elapsed time.Duration
	At      core.Time       `json:",omitempty"` // when it ended; 0: now
	JobDone bool            // the node holds nothing of the job any more
	Image   string          // digest of the image it ran in
	Ranks   []core.RankExit `json:",omitempty"` // of a run on several nodes
}

// ExitCause is why a step ended, when its exit status does not say.
type ExitCause string

// The causes.
const (
	CauseExit      ExitCause = ""
	CauseOOM       ExitCause = "oom"
	CauseTimeout   ExitCause = "timeout"
	CauseCancelled ExitCause = "cancelled"
	CauseLaunch    ExitCause = "launch_failed"
	// somebody on the node has the port of its containers; another attempt has another
	CausePort       ExitCause = "port_taken"
	CauseProlog     ExitCause = "prolog_failed"
	CauseEnv        ExitCause = "env_failed"  // the login environment could not be had
	CauseLost       ExitCause = "keeper_lost" // its keeper died: how it ended is not known
	CauseFenced     ExitCause = "fenced"      // its agent killed it after too long a silence
	CauseUnkillable ExitCause = "unkillable"
)

// BatchExited gives a job that runs its final state, or sends it back to the queue, by how its batch step ended.
func (e *Edit) BatchExited(in *ExitReport) {
	e.batchExited(in)
	if IsOver(e.Job) && e.Job.End == e.ed.rec.Now() {
		e.Job.End = e.ed.reportedEnd(in, e.Job.Start)
	}
}

func (e *Edit) batchExited(in *ExitReport) {
	switch in.Cause {
	case CauseLost, CauseFenced:
		e.FailOnNode(in.Node, in.Message)
		return
	case CauseProlog:
		e.launchFailed(core.ReasonProlog, "launch failed requeued held", in.Message)
		return
	case CauseEnv:
		e.launchFailed(core.ReasonLaunchFailure, "user env retrieval failed requeued held", in.Message)
		return
	case CausePort, CauseLaunch:
		why := core.ReasonLaunchFailure
		if in.Cause == CausePort && e.Job.Spec.Rules() != nil {
			why = core.ReasonPortTaken
		}
		if in.Cause == CausePort && e.Job.Spec.Kind == core.Batch && e.Job.Spec.Requeue && e.Job.Stop == nil {
			e.MarkRequeue("", false, in.Message)
			if e.Job.Spec.Rules() != nil {
				e.Job.Reason = why // what is kept of the attempt tells it
			}
			return
		}
		e.Job.Exit = core.ExitLaunch
		e.End(core.Failed, why, in.Message)
	case CauseTimeout:
		if at := DeadlineOf(e.Job); at != 0 && at <= e.ed.rec.Now()+1e6 { // its limit was what was left until then
			e.MissDeadline()
			return
		}
		e.End(core.Timeout, core.ReasonTimeLimit, in.Message)
	case CauseOOM:
		e.Job.Exit = core.ExitOOM
		e.End(core.OutOfMemory, core.ReasonOutOfMemory, in.Message)
	case CauseCancelled:
		e.End(core.Cancelled, "", in.Message)
	default:
		switch {
		case in.Exit.Signal != 0:
			e.End(core.Failed, core.ReasonRaisedSignal, in.Message)
		case e.requeueByCode(in.Exit.Code):
		case in.Exit.Code != 0:
			e.End(core.Failed, core.ReasonNonZeroExit, in.Message)
		default:
			e.End(core.Completed, "", in.Message)
		}
	}
}

// requeueByCode sends a job back to the queue whose exit code the settings name for that, and holds it if they say so.
// As Slurm 22.05 it does so whatever the job says of being requeued.
func (e *Edit) requeueByCode(code int32) bool {
	cfg, spec := e.ed.cfg, e.Job.Spec
	hold := slices.Contains(cfg.RequeueExitHold, code)
	if !hold && !slices.Contains(cfg.RequeueExit, code) || spec.Kind != core.Batch || e.Job.Stop != nil ||
		spec.Run != "" || spec.More().Het != nil || spec.Recurs() {
		return false
	}
	e.MarkRequeue("", false, "")
	e.Job.Reason = core.ReasonNonZeroExit // what is kept of the attempt tells it
	if hold {
		e.Job.Flags |= core.HeldUser | core.SpecialExit
	}
	return true
}

// ContainerExited ends a job whose container on one of its nodes is gone before the job is: without it the others
// are no job.
func (e *Edit) ContainerExited(in *ExitReport) {
	lost := *in
	lost.Message = strings.TrimSuffix("the container on "+string(in.Node)+": "+in.Message, ": ")
	if lost.Cause == CauseExit && lost.Exit == (core.Exit{}) {
		lost.Exit.Signal = 9 // it holds until it is ended
	}
	e.Job.Exit = lost.Exit
	e.batchExited(&lost)
}

// StepExited ends a job whose numbered step shows that its node cannot go on with it. A step that merely ends,
// however badly, is its creator's affair.
func (e *Edit) StepExited(in *ExitReport) {
	switch in.Cause {
	case CauseLost, CauseFenced:
		e.FailOnNode(in.Node, in.Message)
	case CauseProlog:
		e.launchFailed(core.ReasonProlog, "launch failed requeued held", in.Message)
	default:
	}
}

// lateReport is how much later than it happened an end may be told to count as told at once.
const lateReport = 2 * time.Second

// reportedEnd is when something ended that began at start: now, unless its node could not tell before.
func (ed *Editor) reportedEnd(in *ExitReport, start core.Time) core.Time {
	if in.At == 0 || ed.rec.Now().Sub(in.At) < lateReport {
		return ed.rec.Now()
	}
	return max(in.At, start)
}

// KillsInvalid reports that a job ends when what it waits for can never happen.
func (ed *Editor) KillsInvalid(spec *core.Spec) bool { return spec.KillInvalid(ed.cfg.KillInvalidDep) }
