package slurm

import (
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
)

// Slurm's numbers for errors that have no reason of the engine.
const (
	ErrnoUnspecified  = -1
	ErrnoConnection   = 1001
	ErrnoAuth         = 1007
	ErrnoUnchanged    = 1900
	ErrnoEnvironment  = 2127
	ErrnoParsing      = 9001
	ErrnoDescription  = 9002
	ErrnoNothingFound = 9003
	ErrnoPath         = 9200
	ErrnoMIME         = 9204
)

// errnos are Slurm's numbers by reason.
var errnos = map[string]int{
	ReasonInvalidPartition: 2000, ReasonNoPartition: 2001, ReasonAccessDenied: 2002, ReasonGroupDenied: 2003,
	ReasonNodesNotInPart: 2004, ReasonTooManyCPUs: 2005, ReasonTooManyNodes: 2006, ReasonNodeCount: 2006,
	ReasonNoScript: 2009, ReasonInvalidUser: 2010, ReasonImmediate: 2013, ReasonNodeConfig: 2014, ReasonMemory: 2014,
	ReasonPartitionConfig: 2015, ReasonNodesBusy: 2016, ReasonInvalidJobID: 2017, ReasonInvalidNode: 2018,
	ReasonTryLater: 2020, ReasonJobFinished: 2021, ReasonJobPending: 2024, ReasonInvalidFeature: 2029,
	ReasonNotSupported: 2036, ReasonDisabled: 2037, ReasonDependency: 2038, ReasonJobHeld: 2042,
	ReasonTaskMemory: 2044, ReasonInvalidAccount: 2045, ReasonInvalidLicense: 2048, ReasonPolicy: 2050,
	ReasonJobsPerUser: 2050, ReasonTasksPerUser: 2050, ReasonCronPerUser: 2050, ReasonTimeLimit: 2051,
	ReasonReservationAccess: 2052, ReasonInvalidResv: 2053, ReasonInvalidTime: 2054, ReasonResvBusy: 2055,
	ReasonResvOverlap: 2058, ReasonInvalidQOS: 2066, ReasonNodeNotAvail: 2068, ReasonPartitionDown: 2070,
	ReasonCircular: 2071, ReasonInvalidGres: 2072, ReasonJobRunning: 2073, ReasonJobNotPending: 2073,
	ReasonStepsPerJob: 2076, ReasonResvEmpty: 2080, ReasonInvalidArray: 2081, ReasonResvName: 2082,
	ReasonJobNotSuspended: 2087,
}

// ErrorNumber is Slurm's number for an error; -1 where it has none.
func ErrorNumber(err error) int {
	if client.Unreachable(err) {
		return ErrnoConnection
	}
	if n, ok := errnos[core.ReasonOf(err)]; ok {
		return n
	}
	switch core.CodeOf(err) {
	case core.Denied:
		return errnos[ReasonAccessDenied]
	case core.Unknown:
		return ErrnoAuth
	default:
	}
	if core.ReasonOf(err) == "bad_json" {
		return ErrnoParsing
	}
	return ErrnoUnspecified
}

// NumberText is Slurm's text of one of its numbers; empty: it has none.
func NumberText(n int) (text string) {
	for r, number := range errnos { // several reasons may have one number
		if t := texts()[r]; number == n && t > text {
			text = t
		}
	}
	return text
}
