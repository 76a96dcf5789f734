// Package state holds every rule of a job's, a node's and a run's life as a function of state, input and time: no I/O,
// no clock, no randomness. One goroutine (package engine) owns a State; the simulator and tests drive the same code.
//
//	           input, now                             Flush: core.Changes ──► store (one transaction)
//	callers ───────────────► Apply ── apply(*State) ► reply ───────────────► caller, after the commit
//	agents, planner               │                   PlannerChanges ───────► planner
//	                              ▼
//	                   jobEdit, nodeEdit: copy, change, event, commit
//	                              │
//	                              ▼
//	                   jobChanged, nodeChanged: all that is derived follows, in written order
//	                              │
//	                              ▼
//	                          Snapshot (copy on write) ──► readers
//
// # Where to begin reading
//
//   - inputs.go lists every input; each has an apply method in the file of its subject.
//   - transitions.go has the states of jobs, steps, nodes and runs, with diagrams and tables that tests check.
//   - job_edit.go and node_edit.go are the only way to change a job or a node.
//
// # A worked example
//
// An agent reports that the batch step of job 7 ended with exit code 1 on node n1, which is clean of the job:
//
//	Exited{Node: "n1", Job: 7, Attempt: 1, Step: "batch", Exit: {Code: 1}, JobDone: true}
//
// apply finds the job running in that attempt and begins an edit. batchExited decides FAILED with reason
// NonZeroExitCode; end sets state, reason and end, and emits job.ended. The node is clean and was the last one, so
// close ends the steps and commits. jobChanged takes the job out of the counts of its user, its limits, the licenses in
// use, the ledger of nodes and the deadlines, stops what its project pays, closes its run, notes the record for the
// store and for the planner, and lets jobs that depend on it look again: a job with afternotok:7 becomes eligible, in
// the same transaction. The next Flush has both records and the events; PlannerChanges has both jobs, and the planner's
// next pass may use n1.
//
// An input either changes everything it should or, when it returns an error, nothing: checks come before the first
// edit.
//
// # Where to add something
//
//   - An input: its type in input.go, its apply method with its subject, a line in inputs.go. Recordings name it by its
//     type, so a type and its fields keep their names.
//   - A field of a submission: core.Spec, then a line in speccheck/spec_tables.go. A test fails until it is there.
//   - A rule at submission: the admit methods of submit.go, in the order users should meet the faults.
//   - A rule at the start of a job: recheckStart and checkStartLimits; the planner has it too (package sched).
//   - Something derived from jobs or nodes: a method that jobChanged or nodeChanged calls; New and rederive rebuild it.
//   - Something that time alone does: a moment in NextWake and what is due in Tick.apply.
//
// # Parts
//
// Sub-packages know nothing of State: speccheck (what a spec says by itself), policyset (a policy: checks, differences,
// excess), people (users, projects, tokens, node keys), fleets (fleets and their hosts), usage (meters of what was
// used), depend (who waits for whom, endings, cycles), steplayout (where a step runs), named (records with names).
// Types of their own here: limits, priorityCalc, nodeTimers, reservationIndex and preemptionState keep what is derived;
// jobEdit and nodeEdit are changes under way.
//
// Rules of dependencies, limits, reservations, preemption and het jobs are still methods of State: what they decide
// changes other jobs, whose change is told to them again, so that each would need a reference to State and State one to
// each.
package state
