// Package errno knows the numbers of Slurm's errors.
package errno

import (
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm"
)

// Slurm's numbers for errors that have no reason of the engine.
const (
	Unspecified  = -1
	Connection   = 1001
	Auth         = 1007
	Unchanged    = 1900
	Environment  = 2127
	Parsing      = 9001
	Description  = 9002
	NothingFound = 9003
	Path         = 9200
	MIME         = 9204
)

// errnos are Slurm's numbers by reason.
var errnos = map[string]int{
	slurm.ReasonInvalidPartition: 2000, slurm.ReasonNoPartition: 2001, slurm.ReasonAccessDenied: 2002,
	slurm.ReasonGroupDenied: 2003, slurm.ReasonNodesNotInPart: 2004, slurm.ReasonTooManyCPUs: 2005,
	slurm.ReasonTooManyNodes: 2006, slurm.ReasonNodeCount: 2006, slurm.ReasonNoScript: 2009,
	slurm.ReasonInvalidUser: 2010, slurm.ReasonImmediate: 2013, slurm.ReasonNodeConfig: 2014,
	slurm.ReasonMemory: 2014, slurm.ReasonPartitionConfig: 2015, slurm.ReasonNodesBusy: 2016,
	slurm.ReasonInvalidJobID: 2017, slurm.ReasonInvalidNode: 2018, slurm.ReasonTryLater: 2020,
	slurm.ReasonJobFinished: 2021, slurm.ReasonJobPending: 2024, slurm.ReasonInvalidFeature: 2029,
	slurm.ReasonNotSupported: 2036, slurm.ReasonDisabled: 2037, slurm.ReasonDependency: 2038,
	slurm.ReasonJobHeld: 2042, slurm.ReasonTaskMemory: 2044, slurm.ReasonInvalidAccount: 2045,
	slurm.ReasonInvalidLicense: 2048, slurm.ReasonPolicy: 2050, slurm.ReasonJobsPerUser: 2050,
	slurm.ReasonTasksPerUser: 2050, slurm.ReasonCronPerUser: 2050, slurm.ReasonTimeLimit: 2051, slurm.ReasonTimeMin: 2124,
	slurm.ReasonReservationAccess: 2052, slurm.ReasonInvalidResv: 2053, slurm.ReasonInvalidTime: 2054,
	slurm.ReasonResvBusy: 2055, slurm.ReasonResvOverlap: 2058, slurm.ReasonInvalidQOS: 2066,
	slurm.ReasonNodeNotAvail: 2068, slurm.ReasonPartitionDown: 2070, slurm.ReasonCircular: 2071,
	slurm.ReasonInvalidGres: 2072, slurm.ReasonJobRunning: 2073, slurm.ReasonJobNotPending: 2073,
	slurm.ReasonStepsPerJob: 2076, slurm.ReasonResvEmpty: 2080, slurm.ReasonInvalidArray: 2081,
	slurm.ReasonResvName: 2082, slurm.ReasonJobNotSuspended: 2087, slurm.ReasonMissingTimeLimit: 8000,
	slurm.ReasonMissingSize: 2008, slurm.ReasonSubmitPlugin: -1,
}

// Reason is the reason that stands for one of Slurm's numbers; slurm.ReasonUnspecified where none does.
func Reason(n int) string {
	found := slurm.ReasonUnspecified
	for reason, number := range errnos {
		if number == n && n > 0 && (found == slurm.ReasonUnspecified || reason < found) {
			found = reason
		}
	}
	return found
}

// Number is Slurm's number for an error; -1 where it has none.
func Number(err error) int {
	if client.Unreachable(err) {
		return Connection
	}
	if n, ok := errnos[core.ReasonOf(err)]; ok {
		return n
	}
	switch core.CodeOf(err) {
	case core.Denied:
		return errnos[slurm.ReasonAccessDenied]
	case core.Unknown:
		return Auth
	default:
	}
	if core.ReasonOf(err) == "bad_json" {
		return Parsing
	}
	return Unspecified
}

// Text is Slurm's text of one of its numbers; empty: it has none.
func Text(n int) (text string) {
	for r, number := range errnos { // several reasons may have one number
		if t := slurm.ErrorText(core.Errorf(core.Invalid, "").Because(r)); number == n && t > text {
			text = t
		}
	}
	return text
}
