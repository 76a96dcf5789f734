package slurm

import (
	"errors"
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
)

// slurmText is a text of Slurm's with the number that REST gives as error_number.
type slurmText struct {
	number int
	text   string
}

// texts are Slurm's, by reason.
var texts = sync.OnceValue(func() map[string]slurmText {
	return map[string]slurmText{
		ReasonInvalidPartition: {2000, "Invalid partition name specified"},
		ReasonNoPartition:      {2001, "No partition specified or system default partition"},
		ReasonAccessDenied:     {2002, "Access/permission denied"},
		ReasonGroupDenied:      {2003, "User's group not permitted to use this partition"},
		ReasonNodesNotInPart:   {2004, "Requested nodes not in this partition"},
		ReasonTooManyCPUs:      {2005, "More processors requested than permitted"},
		ReasonTooManyNodes:     {2006, "Node count specification invalid"},
		ReasonMaxJobs:          {2007, "MaxJobCount limit reached"},
		ReasonJobsPerUser: {2050, "Job violates accounting/QOS policy (job submit limit, user's size and/or " +
			"time limits)"},
		ReasonTasksPerUser: {2050, "Job violates accounting/QOS policy (job submit limit, user's size and/or " +
			"time limits)"},
		ReasonCronPerUser: {2050, "Job violates accounting/QOS policy (job submit limit, user's size and/or " +
			"time limits)"},
		ReasonStepsPerJob:     {2050, "Step limit reached for this job"},
		ReasonNoScript:        {2009, "Job script not specified"},
		ReasonNodeConfig:      {2014, "Requested node configuration is not available"},
		ReasonMemory:          {2014, "Requested node configuration is not available"},
		ReasonPartitionConfig: {2015, "Requested partition configuration not available now"},
		ReasonNodesBusy:       {2016, "Requested nodes are busy"},
		ReasonInvalidJobID:    {2017, "Invalid job id specified"},
		ReasonInvalidNode:     {2018, "Invalid node name specified"},
		ReasonTryLater:        {2020, "Job can not be altered now, try again later"},
		ReasonJobFinished:     {2021, "Job/step already completing or completed"},
		ReasonJobPending:      {2024, "Job is pending execution"},
		ReasonJobRunning:      {2020, "Job is no longer pending execution"},
		ReasonJobNotPending:   {2020, "Job is no longer pending execution"},
		ReasonJobNotSuspended: {2022, "Job is not suspended"},
		ReasonInvalidFeature:  {2029, "Invalid feature specification"},
		ReasonDependency:      {2038, "Job dependency problem"},
		ReasonCircular:        {2071, "Circular job dependency"},
		ReasonJobHeld:         {2042, "Job is in held state, pending scheduler release"},
		ReasonInvalidAccount:  {2045, "Invalid account or account/partition combination specified"},
		ReasonInvalidLicense:  {2048, "Invalid license specification"},
		ReasonPolicy: {2050, "Job violates accounting/QOS policy (job submit limit, user's size and/or " +
			"time limits)"},
		ReasonTimeLimit:         {2051, "Requested time limit is invalid (missing or exceeds some limit)"},
		ReasonReservationAccess: {2052, "Access denied to requested reservation"},
		ReasonInvalidResv:       {2053, "Requested reservation is invalid"},
		ReasonInvalidTime:       {2054, "Invalid time specified"},
		ReasonResvBusy:          {2055, "Requested reservation is in use"},
		ReasonResvOverlap:       {2058, "Requested reservation overlaps with another reservation"},
		ReasonResvName:          {2053, "Duplicate reservation name"},
		ReasonResvEmpty:         {2053, "Reservation request lacks users, groups or accounts"},
		ReasonNodeCount:         {2006, "Node count specification invalid"},
		ReasonNoWorkDir:         {2063, "Job cannot be submitted without the current working directory specified."},
		ReasonInvalidQOS:        {2066, "Invalid qos specification"},
		ReasonNodeNotAvail:      {2068, "Required node not available (down, drained or reserved)"},
		ReasonPartitionDown:     {2070, "Required partition not available (inactive or drain)"},
		ReasonInvalidGres:       {2072, "Invalid generic resource (gres) specification"},
		ReasonInvalidArray:      {2081, "Invalid job array specification"},
		ReasonNotSupported:      {2015, "Requested operation not supported on this system"},
		ReasonInvalidUser:       {2010, "Invalid user id"},
		ReasonImmediate:         {2041, "Immediate execution impossible, insufficient priority"},
		ReasonTaskMemory:        {2044, "Memory required by task is not available"},
		ReasonCPUBind:           {2104, "Unable to satisfy cpu bind request"},
		ReasonDisabled:          {2049, "Requested operation is presently disabled"},
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
	if t, ok := texts()[core.ReasonOf(err)]; ok {
		return t.text
	}
	if t, ok := texts()[codeReasons[core.CodeOf(err)]]; ok {
		return t.text
	}
	return err.Error()
}

// ErrorNumber is Slurm's number for err, 0 where there is none.
func ErrorNumber(err error) int { return texts()[core.ReasonOf(err)].number }

// ErrorPreface is what Slurm prints before the error of a submission, a line each: what the server adds about the
// cause.
func ErrorPreface(err error, s *core.Spec) []string {
	switch core.ReasonOf(err) {
	case ReasonInvalidPartition:
		if s.Partition == "" { // it is another component's, which the hint names
			return nil
		}
		return []string{"invalid partition specified: " + string(s.Partition)}
	case ReasonMemory:
		return []string{"Memory specification can not be satisfied"}
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
