package slurm

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
)

// Reasons that the engine gives in core.Error.Reason, for which Slurm has a text of its own.
const (
	ReasonInvalidPartition  = "invalid_partition"
	ReasonNoPartition       = "no_default_partition"
	ReasonAccessDenied      = "access_denied"
	ReasonGroupDenied       = "group_denied"
	ReasonNodesNotInPart    = "nodes_not_in_partition"
	ReasonTooManyCPUs       = "too_many_cpus"
	ReasonTooManyNodes      = "too_many_nodes"
	ReasonMaxJobs           = "max_jobs"
	ReasonJobsPerUser       = "jobs_per_user"
	ReasonTasksPerUser      = "array_tasks_per_user"
	ReasonCronPerUser       = "cron_jobs_per_user"
	ReasonStepsPerJob       = "steps_per_job"
	ReasonNoScript          = "no_script"
	ReasonNodeConfig        = "node_config_unavailable"
	ReasonMemory            = "memory_unsatisfiable"
	ReasonPartitionConfig   = "partition_config_unavailable"
	ReasonNodesBusy         = "nodes_busy"
	ReasonInvalidJobID      = "invalid_job_id"
	ReasonInvalidNode       = "invalid_node"
	ReasonTryLater          = "job_state" // it does not fit what the job is doing
	ReasonJobFinished       = "job_finished"
	ReasonNotRunning        = "job_not_running"
	ReasonNoStep            = "no_such_step"
	ReasonJobPending        = "job_pending"
	ReasonJobRunning        = "job_running"
	ReasonJobNotPending     = "job_not_pending"
	ReasonJobNotSuspended   = "job_not_suspended"
	ReasonInvalidFeature    = "invalid_feature"
	ReasonDependency        = "invalid_dependency"
	ReasonCircular          = "circular_dependency"
	ReasonJobHeld           = "job_held"
	ReasonInvalidAccount    = "invalid_account"
	ReasonInvalidLicense    = "invalid_license"
	ReasonPolicy            = "policy_limit"
	ReasonTimeLimit         = "time_limit"
	ReasonTimeMin           = "time_min"
	ReasonReservationAccess = "reservation_access"
	ReasonInvalidResv       = "invalid_reservation"
	ReasonInvalidTime       = "invalid_time_value"
	ReasonResvBusy          = "reservation_busy"
	ReasonResvOverlap       = "reservation_overlap"
	ReasonResvName          = "reservation_exists"
	ReasonResvEmpty         = "reservation_empty"
	ReasonNodeCount         = "invalid_node_count"
	ReasonNoWorkDir         = "no_workdir"
	ReasonInvalidQOS        = "invalid_qos"
	ReasonNodeNotAvail      = "node_not_available"
	ReasonPartitionDown     = "partition_inactive"
	ReasonInvalidGres       = "invalid_gres"
	ReasonInvalidArray      = "invalid_array"
	ReasonNotSupported      = "not_supported"
	ReasonInvalidUser       = "invalid_user"
	ReasonImmediate         = "immediate_impossible"
	ReasonDisabled          = "no_requeue"
	ReasonTaskMemory        = "task_memory"
	ReasonCPUBind           = "cpu_bind"
	ReasonBillingWeights    = "invalid_billing_weights"
	ReasonFeatures          = "features_not_available"
	ReasonNodeState         = "invalid_node_state"
	ReasonNoReboot          = "no_reboot"
	ReasonMissingTimeLimit  = "missing_time_limit"
	ReasonMissingSize       = "missing_size"
	ReasonUnspecified       = "unspecified"   // a job_submit plug-in refused it and gave no number
	ReasonSubmitPlugin      = "submit_plugin" // a job_submit plug-in cannot say what it thinks of it
)

// ToldPath marks the faults of an error that are lines for the submitter, as a job_submit plug-in worded them.
const ToldPath = "job_submit"

// texts are Slurm's, by reason.
var texts = sync.OnceValue(func() map[string]string {
	return map[string]string{
		ReasonInvalidPartition: "Invalid partition name specified",
		ReasonBillingWeights:   "Invalid TRESBillingWeights specification",
		ReasonNodeState:        "Invalid node state specified",
		ReasonNoReboot:         "Invalid node state specified",
		ReasonMissingTimeLimit: "Time limit specification required, but not provided",
		ReasonMissingSize:      "Job size specification needs to be provided",
		ReasonUnspecified:      "Unspecified error",
		ReasonSubmitPlugin:     "Unspecified error",
		ReasonFeatures:         "Active features not subset of available features",
		ReasonNoPartition:      "No partition specified or system default partition",
		ReasonAccessDenied:     "Access/permission denied",
		ReasonGroupDenied:      "User's group not permitted to use this partition",
		ReasonNodesNotInPart:   "Requested nodes not in this partition",
		ReasonTooManyCPUs:      "More processors requested than permitted",
		ReasonTooManyNodes:     "Node count specification invalid",
		ReasonMaxJobs:          "MaxJobCount limit reached",
		ReasonJobsPerUser: "Job violates accounting/QOS policy (job submit limit, user's size and/or " +
			"time limits)",
		ReasonTasksPerUser: "Job violates accounting/QOS policy (job submit limit, user's size and/or " +
			"time limits)",
		ReasonCronPerUser: "Job violates accounting/QOS policy (job submit limit, user's size and/or " +
			"time limits)",
		ReasonStepsPerJob:     "Step limit reached for this job",
		ReasonNoScript:        "Job script not specified",
		ReasonNodeConfig:      "Requested node configuration is not available",
		ReasonMemory:          "Requested node configuration is not available",
		ReasonPartitionConfig: "Requested partition configuration not available now",
		ReasonNodesBusy:       "Requested nodes are busy",
		ReasonInvalidJobID:    "Invalid job id specified",
		ReasonInvalidNode:     "Invalid node name specified",
		ReasonTryLater:        "Job can not be altered now, try again later",
		ReasonJobFinished:     "Job/step already completing or completed",
		ReasonJobPending:      "Job is pending execution",
		ReasonJobRunning:      "Job is no longer pending execution",
		ReasonJobNotPending:   "Job is no longer pending execution",
		ReasonJobNotSuspended: "Job is not suspended",
		ReasonInvalidFeature:  "Invalid feature specification",
		ReasonDependency:      "Job dependency problem",
		ReasonCircular:        "Circular job dependency",
		ReasonJobHeld:         "Job is in held state, pending scheduler release",
		ReasonInvalidAccount:  "Invalid account or account/partition combination specified",
		ReasonInvalidLicense:  "Invalid license specification",
		ReasonPolicy: "Job violates accounting/QOS policy (job submit limit, user's size and/or " +
			"time limits)",
		ReasonTimeMin:           "Invalid time-min specification (exceeds job's time or other limits)",
		ReasonTimeLimit:         "Requested time limit is invalid (missing or exceeds some limit)",
		ReasonReservationAccess: "Access denied to requested reservation",
		ReasonInvalidResv:       "Requested reservation is invalid",
		ReasonInvalidTime:       "Invalid time specified",
		ReasonResvBusy:          "Requested reservation is in use",
		ReasonResvOverlap:       "Requested reservation overlaps with another reservation",
		ReasonResvName:          "Duplicate reservation name",
		ReasonResvEmpty:         "Reservation request lacks users, groups or accounts",
		ReasonNodeCount:         "Node count specification invalid",
		ReasonNoWorkDir:         "Job cannot be submitted without the current working directory specified.",
		ReasonInvalidQOS:        "Invalid qos specification",
		ReasonNodeNotAvail:      "Required node not available (down, drained or reserved)",
		ReasonPartitionDown:     "Required partition not available (inactive or drain)",
		ReasonInvalidGres:       "Invalid generic resource (gres) specification",
		ReasonInvalidArray:      "Invalid job array specification",
		ReasonNotSupported:      "Requested operation not supported on this system",
		ReasonInvalidUser:       "Invalid user id",
		ReasonImmediate:         "Immediate execution impossible, insufficient priority",
		ReasonTaskMemory:        "Memory required by task is not available",
		ReasonCPUBind:           "Unable to satisfy cpu bind request",
		ReasonDisabled:          "Requested operation is presently disabled",
	}
})

// codeReasons stand in for errors without a reason, or with one that Slurm has no word for.
var codeReasons = map[core.Code]string{
	core.Denied: ReasonAccessDenied,
}

// NotContacted is what Slurm's commands say when nobody answers.
const NotContacted = "Unable to contact slurm controller (connect failure)"

// ErrorText is err in Slurm's words; where Slurm has none, the server's own sentence.
func ErrorText(err error) string {
	if client.Unreachable(err) && core.ReasonOf(err) != client.ReasonUntrusted {
		return NotContacted
	}
	var e *core.Error
	if errors.As(err, &e) {
		switch task := 0; e.Reason {
		case "no_program":
			if n, _ := fmt.Sscanf(e.Message, "task %d", &task); n == 1 {
				return fmt.Sprintf("No executable program specified for task %d", task)
			}
		case ReasonTimeLimit:
			if strings.HasPrefix(e.Message, "time_min:") {
				return texts()[ReasonTimeMin]
			}
		}
	}
	if t, ok := texts()[core.ReasonOf(err)]; ok {
		return t
	}
	if t, ok := texts()[codeReasons[core.CodeOf(err)]]; ok {
		return t
	}
	return err.Error()
}

// ErrorPreface is what Slurm prints before the error of a submission, a line each: what the server adds about the
// cause.
func ErrorPreface(err error, s *core.Spec) []string {
	if told := toldLines(err); len(told) > 0 {
		return told
	}
	switch core.ReasonOf(err) {
	case ReasonInvalidPartition:
		if s.Partition.IsZero() { // it is another component's, which the hint names
			return nil
		}
		name := s.Partition.String()
		var e *core.Error
		if errors.As(err, &e) { // of a list, the first that is unknown
			for p := range s.Partition.All() {
				if strings.Contains(e.Message, strconv.Quote(string(p))) {
					name = string(p)
					break
				}
			}
		}
		return []string{"invalid partition specified: " + name}
	case ReasonMemory:
		return []string{"Memory specification can not be satisfied"}
	case ReasonNodeConfig:
		if s.More().TmpDisk > 0 && tmpDiskShort(err, s.More().TmpDisk) {
			return []string{"Temporary disk specification can not be satisfied"}
		}
	}
	var e *core.Error
	if !errors.As(err, &e) {
		return nil
	}
	var lines []string
	switch {
	case e.Reason == ReasonPolicy: // as Slurm: the limit's own word
		word, _, _ := strings.Cut(e.Message, ":")
		lines = append(lines, word)
	case e.Code == core.Denied: // Slurm's text does not tell what is denied
		lines = append(lines, e.Message)
	}
	return append(lines, faultLines(e)...)
}

// toldLines are what a job_submit plug-in said to the submitter.
func toldLines(err error) (lines []string) {
	for _, f := range core.FaultsOf(err) {
		if f.Path == ToldPath {
			lines = append(lines, f.Message)
		}
	}
	return lines
}

// faultLines words the faults of an error that its message does not tell, a line each.
func faultLines(e *core.Error) (lines []string) {
	for _, f := range e.Faults {
		if !strings.Contains(e.Message, f.Message) {
			lines = append(lines, strings.TrimPrefix(f.Path+": "+f.Message, ": "))
		}
	}
	return lines
}

// ErrorTexts is ErrorText, with a line for each fault of an error that has several.
func ErrorTexts(err error) string {
	text := ErrorText(err)
	if e := (*core.Error)(nil); errors.As(err, &e) && text == err.Error() {
		text = strings.Join(append([]string{text}, faultLines(e)...), "\n")
	}
	return text
}

// tmpDiskShort reports whether a refusal names less temporary disk than is asked for.
func tmpDiskShort(err error, asked core.Bytes) bool {
	words := strings.Fields(err.Error())
	for i := len(words) - 4; i > 0; i-- {
		if words[i] == "MiB" && words[i+2] == "temporary" {
			n, err := strconv.ParseInt(words[i-1], 10, 64)
			return err == nil && core.Bytes(n)*core.MiB < asked
		}
	}
	return false
}
