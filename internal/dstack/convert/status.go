package convert

import (
	"fmt"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/wire"
)

// ending is what a job's termination reason makes of it.
type ending struct {
	status string
	event  string // of retry; empty: none
	err    string // text of error; empty: none
}

// endings are all reasons that clients know, with the status each leads to.
var endings = map[string]ending{
	"failed_to_start_due_to_no_capacity":   {wire.JobFailed, "no-capacity", ""},
	"interrupted_by_no_capacity":           {wire.JobFailed, "interruption", ""},
	"instance_unreachable":                 {wire.JobFailed, "error", "instance unreachable"},
	"instance_access_revoked":              {wire.JobFailed, "error", "instance access revoked"},
	"waiting_instance_limit_exceeded":      {wire.JobFailed, "error", "waiting instance limit exceeded"},
	"waiting_runner_limit_exceeded":        {wire.JobFailed, "error", "waiting runner limit exceeded"},
	"terminated_by_user":                   {wire.JobTerminated, "", ""},
	"volume_error":                         {wire.JobFailed, "error", "volume error"},
	"gateway_error":                        {wire.JobFailed, "error", "gateway error"},
	"scaled_down":                          {wire.JobTerminated, "", "scaled down"},
	"done_by_runner":                       {wire.JobDone, "", ""},
	"aborted_by_user":                      {wire.JobAborted, "", ""},
	"terminated_by_server":                 {wire.JobTerminated, "", ""},
	"inactivity_duration_exceeded":         {wire.JobTerminated, "", "inactivity duration exceeded"},
	"terminated_due_to_utilization_policy": {wire.JobTerminated, "", "utilization policy"},
	"container_exited_with_error":          {wire.JobFailed, "error", ""},
	"ports_binding_failed":                 {wire.JobFailed, "error", "ports binding failed"},
	"creating_container_error":             {wire.JobFailed, "error", "runner error"},
	"executor_error":                       {wire.JobFailed, "error", "executor error"},
	"max_duration_exceeded":                {wire.JobTerminated, "", "max duration exceeded"},
	"log_quota_exceeded":                   {wire.JobFailed, "error", "log quota exceeded"},
}

// runEndings are the statuses of runs by their termination reason, with the text of error.
var runEndings = map[core.Termination]struct{ status, err string }{
	core.RunEndJobsDone:      {wire.RunDone, ""},
	core.RunEndJobFailed:     {wire.RunFailed, ""},
	core.RunEndRetryExceeded: {wire.RunFailed, "retry limit exceeded"},
	core.RunEndStopped:       {wire.RunTerminated, ""},
	core.RunEndAborted:       {wire.RunTerminated, ""},
	core.RunEndServer:        {wire.RunFailed, "server error"},
	"gateway_error":          {wire.RunFailed, "gateway error"},
}

// noFleets begins the message of a run for which there is no node at all. Clients match on it.
const noFleets = "No matching fleet found"

// endMessage tells why a job ended. A run for which there is no node at all is told so in the words that clients match
// on, with what was tried.
func endMessage(j *core.Job, reason core.Termination) string {
	text := j.Message
	if reason != core.EndNoCapacity || j.Start != 0 {
		return text
	}
	for _, none := range []string{"no node has the feature", "no partition was given"} {
		if strings.HasPrefix(text, none) {
			return noFleets + ": " + text
		}
	}
	return text
}

// jobMessage is the text that clients show for a job.
func jobMessage(status string, reason core.Termination, message string, exit *int32) string {
	switch {
	case status == wire.JobDone:
		return "exited (0)"
	case status == wire.JobFailed && reason == core.EndExitStatus && exit != nil:
		return fmt.Sprintf("exited (%d)", *exit)
	case status == wire.JobFailed && reason == core.EndNoCapacity:
		if strings.HasPrefix(message, noFleets) {
			return "no fleets"
		}
		return "no capacity"
	case status == wire.JobFailed && reason == core.EndInterrupted:
		return "interrupted"
	case status == wire.JobFailed:
		return "error"
	case status == wire.JobTerminated && reason == core.EndByUser:
		return "stopped"
	}
	return status
}

// stage is where an attempt is.
type stage struct {
	status  string
	message string
	reason  core.Termination // why it ends or ended
	exit    *int32
	pull    *wire.ImagePullProgress
	rank    bool // it is that of one of several ranks, not the run's
}

// stageOf tells where a job's present attempt is. waiting is the text for one that waits, launching the status of one
// whose processes are not there yet; empty: they are.
func stageOf(j *core.Job, waiting, launching string) stage {
	x := stage{reason: j.Termination()}
	switch {
	case j.State == core.Pending && x.reason == core.EndNone:
		x.status, x.message = wire.JobSubmitted, waiting
		return x
	case !j.State.Final() && j.Stop != nil, j.State.Final() && j.Flags.Has(core.Completing):
		if x.reason == core.EndNone {
			x.reason = stopReason(j.Stop)
		}
		x.status = wire.JobTerminating
	case x.reason != core.EndNone:
		x.status = endings[string(x.reason)].status
	case launching != "":
		x.status = launching
	default:
		x.status = wire.JobRunning
	}
	if x.reason == core.EndDone || x.reason == core.EndExitStatus {
		code := j.Exit.Code
		if j.Exit.Signal > 0 && j.Exit.Signal < 64 {
			code = 128 + j.Exit.Signal
		}
		x.exit = &code
	}
	x.message = jobMessage(x.status, x.reason, endMessage(j, x.reason), x.exit)
	return x
}

// stopReason is why a job ends that somebody, or the server, asked to end.
func stopReason(s *core.Stop) core.Termination {
	if s == nil {
		return core.EndNone
	}
	ended := core.Job{State: s.As, Stop: s}
	return ended.Termination()
}

// runStatus is the status of a run whose job is at a stage.
func runStatus(j *core.Job, x stage, now core.Time) (status string, reason core.Termination) {
	if final := j.RunTermination(); final != core.EndNone && x.status != wire.JobTerminating {
		return runEndings[final].status, final
	}
	switch x.status {
	case wire.JobSubmitted:
		if j.NextTrigger(now) != 0 || j.Attempt > 0 && j.Eligible > now {
			return wire.RunPending, core.EndNone
		}
		return wire.RunSubmitted, core.EndNone
	case wire.JobProvisioning, wire.JobPulling:
		return wire.RunProvisioning, core.EndNone
	case wire.JobTerminating:
		ended := core.Job{State: j.State, Reason: j.Reason, Stop: j.Stop, Life: j.Life}
		if j.Stop != nil && !j.State.Final() {
			ended.State = j.Stop.As
		}
		return wire.RunTerminating, ended.RunTermination()
	case wire.JobRunning:
		return wire.RunRunning, core.EndNone
	}
	return wire.RunPending, core.EndNone // an attempt has ended and goes back to the queue
}

// Ended is how one rank's part of an attempt ended.
type Ended struct {
	Status  string
	Reason  core.Termination
	Message string
}

// End tells how one rank's part of an attempt that is over ended.
func End(j *core.Job, rank int) Ended {
	reason := j.Termination()
	at := stage{status: endings[string(reason)].status, reason: reason}.of(j, rank)
	out := Ended{at.status, at.reason, ""}
	if at.reason == reason {
		out.Message = endMessage(j, reason)
	}
	return out
}

// RunEnd is the status of a run that has ended for a reason.
func RunEnd(reason core.Termination) string { return runEndings[reason].status }
