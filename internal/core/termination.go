package core

// Termination is what ended an attempt of a job, in the words that dstack's clients match on.
type Termination string

// The terminations that happen here; dstack has more, for clouds and gateways.
const (
	EndNone             Termination = "" // it has not ended
	EndNoCapacity       Termination = "failed_to_start_due_to_no_capacity"
	EndInterrupted      Termination = "interrupted_by_no_capacity"
	EndUnreachable      Termination = "instance_unreachable"
	EndByUser           Termination = "terminated_by_user"
	EndAborted          Termination = "aborted_by_user"
	EndByServer         Termination = "terminated_by_server"
	EndDone             Termination = "done_by_runner"
	EndInactivity       Termination = "inactivity_duration_exceeded"
	EndUtilization      Termination = "terminated_due_to_utilization_policy"
	EndScaledDown       Termination = "scaled_down"
	EndExitStatus       Termination = "container_exited_with_error"
	EndPorts            Termination = "ports_binding_failed"
	EndContainer        Termination = "creating_container_error"
	EndExecutor         Termination = "executor_error"
	EndMaxDuration      Termination = "max_duration_exceeded"
	RunEndJobsDone      Termination = "all_jobs_done" // of runs
	RunEndJobFailed     Termination = "job_failed"
	RunEndRetryExceeded Termination = "retry_limit_exceeded"
	RunEndStopped       Termination = "stopped_by_user"
	RunEndAborted       Termination = "aborted_by_user"
	RunEndServer        Termination = "server_error"
)

// Termination tells what ended the job's present attempt; of an earlier one, ask Job.As.
func (j *Job) Termination() Termination {
	switch j.State {
	case Pending, Running, Suspended:
		if j.Flags.Has(Requeueing) {
			return j.sentBack()
		}
		return EndNone
	case Completed:
		return EndDone
	case Cancelled:
		switch {
		case j.Reason == ReasonInactivity:
			return EndInactivity
		case j.Reason == ReasonUtilization:
			return EndUtilization
		case j.Reason == ReasonScaledDown:
			return EndScaledDown
		case j.Stop == nil || j.Stop.By == "":
			return EndByServer
		case j.Stop.Abort:
			return EndAborted
		}
		return EndByUser
	case Timeout, DeadlineMissed:
		return EndMaxDuration
	case Preempted:
		return EndInterrupted
	case NodeFail, BootFail:
		return EndUnreachable
	case OutOfMemory:
		return EndExitStatus
	default: // Failed
		return failure(j.Reason)
	}
}

// sentBack tells what ended an attempt that goes back to the queue while its state is still that of a job that runs.
func (j *Job) sentBack() Termination {
	switch {
	case j.Stop != nil && j.Stop.As == Preempted:
		return EndInterrupted
	case j.Reason == ReasonNodeDown:
		return EndUnreachable
	case j.Reason == ReasonPortTaken:
		return EndPorts
	default:
		return EndByServer
	}
}

func failure(r Reason) Termination {
	switch r {
	case ReasonNoCapacity:
		return EndNoCapacity
	case ReasonLaunchFailure:
		return EndContainer
	case ReasonPortTaken:
		return EndPorts
	case ReasonProlog, ReasonSystemFailure:
		return EndExecutor
	case ReasonNodeDown:
		return EndUnreachable
	default:
		return EndExitStatus
	}
}

// RunTermination tells what ended the run of a job that has ended for good, in dstack's words.
func (j *Job) RunTermination() Termination {
	switch t := j.Termination(); {
	case t == EndNone, j.Flags.Has(Requeueing):
		return EndNone
	case j.Life != nil && j.Life.Exceeded:
		return RunEndRetryExceeded
	case t == EndDone:
		return RunEndJobsDone
	case t == EndByUser, t == EndInactivity: // nobody used it any more: it did not fail; its job says why it ended
		return RunEndStopped
	case t == EndAborted:
		return RunEndAborted
	case t == EndByServer:
		return RunEndServer
	}
	return RunEndJobFailed
}
