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
// A node has flags, several at a time; without any it is up and takes jobs. nodeFlagCauses has for each flag what sets
// and clears it: inputs by their name, and what is asked of a node by UpdateNode in lower case. nodes/verbs.go has what
// people ask for, nodes/timers.go what time brings (Tick), RunIdleActions what waits until the node is empty:
//
//	reboot ──► Reboot ── node is empty ──► Rebooting ── Register with a new boot id ──► as asked: resume, down, as it was
//	                                        └── Tick: RebootTimeout ──► Down
//
//	power_down, idle for SuspendTime           SuspendTimeout
//	──► PowerDown ── node is empty ──► PoweringDown ──► PoweredDown ── power_up ──► PoweringUp ── Register ──► up
//	                                                                                 └── Tick: ResumeTimeout ──► Down
var nodeFlagCauses = map[core.NodeFlag]flagCauses{
	core.NodeUnknown: {
		set:     []string{"PutNode", "PutFleet", "UseToken", "Reconfigure"}, // never heard of
		cleared: []string{"Register"},
	},
	core.NodeSilent: {
		set:     []string{"NodeSilence"},
		cleared: []string{"NodeSilence", "Register", "Tick", "power_up", nodeIsEmpty},
	},
	core.NodeDrain: {
		set: []string{
			"drain", "reboot_asap", "reboot_failed", "NodeHealth", "UnitHealth", "Exited", "RemoveNode", "Reconfigure",
			"Register", "PutFleet", // blocks that the hardware cannot be split into
		},
		cleared: []string{
			"resume", "undrain", "down", "cancel_reboot", "NodeHealth", "UnitHealth", "RemoveNode", "Register", "PutFleet",
			"Tick",
		},
	},
	core.NodeDown: {
		set:     []string{"down", "resume_failed", "RemoveNode", "PutFleet", "DropFleet", "Register", "Tick"},
		cleared: []string{"resume", "Register", "Tick"}, // Register: late, with Power.Return
	},
	core.NodeFailFlag: {
		set:     []string{"fail"},
		cleared: []string{"resume", "Register", "Tick"},
	},
	core.NodeFuture: {
		set:     []string{"future"},
		cleared: []string{"resume", "Tick"},
	},
	core.NodeReboot: {
		set:     []string{"reboot", "reboot_asap"},
		cleared: []string{"cancel_reboot", "resume", "Register", "Tick", nodeIsEmpty},
	},
	core.NodeRebooting: {
		set:     []string{nodeIsEmpty},
		cleared: []string{"resume", "reboot_failed", "Register", "Tick"},
	},
	core.NodePowerDown: {
		set:     []string{"power_down", "power_down_asap", "power_down_force", "Tick"},
		cleared: []string{"power_up", "resume", "Tick", nodeIsEmpty},
	},
	core.NodePoweringDown: {
		set:     []string{nodeIsEmpty},
		cleared: []string{"resume", "Tick"},
	},
	core.NodePoweredDown: {
		set:     []string{"Tick", nodeIsEmpty},
		cleared: []string{"power_up", "resume", "Register", "Tick"},
	},
	core.NodePoweringUp: {
		set: []string{"power_up", "PutNode", "Tick"}, // PutNode: of an offer that is being made
		cleared: []string{
			"power_down", "power_down_asap", "power_down_force", "resume", "resume_failed", "Register", "Tick",
		},
	},
}

// flagCauses are the inputs that set a flag of a node, and those that clear it.
type flagCauses struct{ set, cleared []string }

// nodeIsEmpty is any input after which no job is on the node.
const nodeIsEmpty = "any input that leaves the node empty"

// # Runs
//
//	Submit with a run           its last job has ended                    DeleteRun
//	─────────────────► open ───────────────────────────► ended ──────────────────────────► deleted
//	                   EditRun keeps it open             leaves memory    only in the store
type runState uint8

const (
	runUnknown runState = iota
	runOpen
	runEnded
	runDeleted
)

var runTransitions = map[runState][]runState{
	runUnknown: {runOpen, runEnded}, // one may end in the batch that opens it
	runOpen:    {runOpen, runEnded},
	runEnded:   {runDeleted},
}

func runStateOf(r *core.Run) runState {
	switch {
	case r.Deleted != 0:
		return runDeleted
	case r.Ended != 0:
		return runEnded
	}
	return runOpen
}
