package state

import (
	"slices"

	"bireme.dev/bireme/internal/core"
)

// # Jobs
//
//	           Start                    Suspend, Preempt (suspend)
//	PENDING ───────────► RUNNING ◄─────────────────────► SUSPENDED
//	 │  ▲                 │   │                           │   │
//	 │  │  nodes clean    │   │ Requeue, NODE_FAIL        │   │
//	 │  └─────────────────┼───┴──── flag Requeueing ◄─────┼───┘
//	 │                    │                               │
//	 │ Cancel, deadline   │ Exited, Tick, Cancel, Fenced  │
//	 └────────────────────┴───────────────┬───────────────┘
//	                                      ▼
//	     COMPLETED FAILED CANCELLED TIMEOUT NODE_FAIL PREEMPTED DEADLINE OUT_OF_MEMORY
//	                       │ flag Completing until all nodes are clean (NodeDone)
//	                       ▼
//	               the record leaves memory
//
// A job on its way back to the queue keeps its state, with the flag Requeueing, until its nodes are clean. One that
// recurs goes back from a final state. One that is canceled on its way back ends instead.
var jobTransitions = map[core.JobState][]core.JobState{
	core.Pending:   append([]core.JobState{core.Running}, finalStates...),
	core.Running:   append([]core.JobState{core.Suspended, core.Pending}, finalStates...),
	core.Suspended: append([]core.JobState{core.Running, core.Pending}, finalStates...),
}

// finalStates are those of a job or a step that has ended. From each a job that recurs, or that was marked for requeue,
// goes back to PENDING, and one that is canceled meanwhile ends as CANCELLED.
var finalStates = []core.JobState{
	core.Completed, core.Cancelled, core.Failed, core.Timeout, core.NodeFail,
	core.Preempted,
	core.BootFail, core.DeadlineMissed, core.OutOfMemory,
}

// jobMayMove reports whether a job's state may change so. A state may stay as it is.
func jobMayMove(from, to core.JobState) bool {
	if from.Final() {
		return !(to == core.Running || to == core.Suspended)
	}
	return from == to || slices.Contains(jobTransitions[from], to)
}

// # Steps
//
//	CreateStep          Exited on its last node, or the end of the attempt
//	──────────► RUNNING ───────────────────────────────────────────────────► a final state, for good
var stepTransitions = map[core.JobState][]core.JobState{core.Running: finalStates}

// stepMayMove reports whether a step's state may change so. A state may stay as it is.
func stepMayMove(from, to core.JobState) bool {
	return from == to || slices.Contains(stepTransitions[from], to)
}

// # Nodes
//
// A node has flags, several at a time; without any it is up and takes jobs.
//
//	flag          set by                                   cleared by
//	────────────  ───────────────────────────────────────  ─────────────────────────────────────────────
//	Unknown       PutNode (never heard of)                  Register
//	Silent        NodeSilence                               Register, NodeSilence{Back}
//	Drain         drain, reboot_asap, faults, RemoveNode    resume, undrain, recovery, end of the restart
//	Down          down, a timeout, RemoveNode{Now}          resume, a late return (Power.Return)
//	Fail          fail                                      resume
//	Future        future                                    resume
//	Reboot        reboot: waits until it is empty           cancel_reboot, resume, becomes Rebooting
//	Rebooting     it is empty and restarts                  Register with a new boot id, timeout
//	PowerDown     power_down, or idle for SuspendTime       power_up, becomes PoweringDown or PoweredDown
//	PoweringDown  it is empty and powers down               becomes PoweredDown after SuspendTimeout
//	PoweredDown   it sleeps                                 power_up: becomes PoweringUp
//	PoweringUp    power_up, or an offer is being made       Register, ResumeTimeout
//
// applyVerb has what people ask for, timerExpired what time brings, runIdleActions what waits for an empty node.

// # Runs
//
//	Submit with a run           its last job has ended
//	─────────────────► open ───────────────────────────► ended: leaves memory
