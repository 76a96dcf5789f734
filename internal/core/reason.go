package core

import "strings"

// Reason is why a job waits or how it ended, in Slurm's words. Clients match on them.
type Reason string

// Reasons the engine and the scheduler give. The empty Reason prints as "None".
const (
	ReasonNone            Reason = ""
	ReasonPriority        Reason = "Priority"
	ReasonResources       Reason = "Resources"
	ReasonDependency      Reason = "Dependency"
	ReasonDependencyNever Reason = "DependencyNeverSatisfied"
	ReasonBeginTime       Reason = "BeginTime"
	ReasonHeldUser        Reason = "JobHeldUser"
	ReasonHeldAdmin       Reason = "JobHeldAdmin"
	ReasonHoldMaxRequeue  Reason = "JobHoldMaxRequeue"
	ReasonArrayTaskLimit  Reason = "JobArrayTaskLimit"
	ReasonReqNodeNotAvail Reason = "ReqNodeNotAvail"
	ReasonPartitionDown   Reason = "PartitionDown"
	ReasonPartitionNodes  Reason = "PartitionNodeLimit"
	ReasonPartitionTime   Reason = "PartitionTimeLimit"
	ReasonPartitionConfig Reason = "PartitionConfig"
	ReasonBadConstraints  Reason = "BadConstraints"
	// What follows the comma is the detail that squeue shows; clients match on what is before it.
	ReasonReserved          Reason = "ReqNodeNotAvail, May be reserved for other job"
	ReasonMaintenance       Reason = "ReqNodeNotAvail, Reserved for maintenance"
	ReasonLicenses          Reason = "Licenses"
	ReasonReservation       Reason = "Reservation"
	ReasonRequeuedHeld      Reason = "job requeued in held state" // Slurm's words, blanks and all
	ReasonReservationGone   Reason = "ReservationDeleted"
	ReasonReservationBad    Reason = "ReservationInvalid"
	ReasonCleaning          Reason = "Cleaning"
	ReasonNodeDown          Reason = "NodeDown"
	ReasonLaunchFailure     Reason = "JobLaunchFailure"
	ReasonNonZeroExit       Reason = "NonZeroExitCode"
	ReasonRaisedSignal      Reason = "RaisedSignal"
	ReasonTimeLimit         Reason = "TimeLimit"
	ReasonInactive          Reason = "InactiveLimit"
	ReasonOutOfMemory       Reason = "OutOfMemory"
	ReasonDeadline          Reason = "DeadLine"
	ReasonProlog            Reason = "Prolog"
	ReasonSystemFailure     Reason = "SystemFailure"
	ReasonInvalidProject    Reason = "InvalidAccount"
	ReasonInvalidQOS        Reason = "InvalidQOS"
	ReasonProjectNotAllowed Reason = "AccountNotAllowed"
	// Of YAML runs; Slurm has no words for them.
	ReasonNoCapacity  Reason = "NoCapacity"         // it found no nodes in the time it had for that
	ReasonInactivity  Reason = "InactivityDuration" // nobody was connected for too long
	ReasonUtilization Reason = "UtilizationPolicy"  // its GPUs were used too little
	ReasonScaledDown  Reason = "ScaledDown"         // its service needs it no more, or has a newer replica
	ReasonPortTaken   Reason = "PortTaken"          // a port its containers need was taken on a node
)

// Word is the reason without its detail.
func (r Reason) Word() Reason {
	word, _, _ := strings.Cut(string(r), ",")
	return Reason(word)
}

// String prints the empty reason as Slurm does.
func (r Reason) String() string {
	if r == "" {
		return "None"
	}
	return string(r)
}
