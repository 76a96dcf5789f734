// Package state holds every rule of a job's, a node's and a run's life as a function of state, input and time: no I/O,
// no clock, no randomness. One goroutine (package engine) owns a State; the simulator and tests drive the same code.
//
//	           input, now                             Flush: core.Changes ──► store (one transaction)
//	callers ───────────────► Apply ── apply(*State) ► reply ───────────────► caller, after the commit
//	agents, planner               │                   PlannerChanges ───────► planner
//	                              ▼
//	                   jobs.Edit, nodes.Edit: copy, change, event, commit
//	                              │
//	                              ▼
//	                   jobChanged, nodeChanged: all that is derived follows, in written order
//	                              │
//	                              ▼
//	                   live.Records: tables, changes of the batch ──► Snapshot (copy on write) ──► readers
//
// # Where to begin reading
//
//   - inputs.go lists every input; each has an apply method in the file of its subject.
//   - transitions.go has the states of jobs, steps, nodes and runs, with diagrams and tables that tests check.
//   - changed.go has jobChanged and nodeChanged: what follows from a change, in order.
//   - jobs/edit.go and nodes/edit.go are the only way to change a job or a node.
//
// # A worked example
//
// An agent reports that the batch step of job 7 ended with exit code 1 on node n1, which is clean of the job:
//
//	Exited{Node: "n1", Job: 7, Attempt: 1, Step: "batch", Exit: {Code: 1}, JobDone: true}
//
// apply (exit.go) finds the job running in that attempt and begins an edit. BatchExited decides FAILED with reason
// NonZeroExitCode; End sets state, reason and end, and emits job.ended. The node is clean and was the last one, so
// NodeClean ends the steps and commits. jobChanged takes the job out of its limits, the counts of its user, the
// licenses in use, the ledger of nodes and the deadlines, stops what its project pays, closes its run, notes the record
// for the store and for the planner, and lets jobs that depend on it look again: a job with afternotok:7 becomes
// eligible, in the same transaction. The next Flush has both records and the events; PlannerChanges has both jobs, and
// the planner's next pass may use n1.
//
// An input either changes everything it should or, when it returns an error, nothing: checks come before the first
// edit.
//
// # To change X look at Y
//
//	what                                                where
//	──────────────────────────────────────────────────  ────────────────────────────────────────────────────────
//	an input: add one                                   its type in input.go, apply with its subject, a line in inputs.go
//	a field of a submission                             core.Spec, then speccheck/spec_tables.go; a test tells
//	what a spec may say by itself                       speccheck
//	what the cluster admits; defaults; order of faults  admit: Admission.Admit and Shape
//	limits on jobs per user, submit keys                admit: Counts, Keys
//	limits of projects, QOS, partitions; minutes        limits (arithmetic: package policy)
//	what usage costs, fair share                        charge (meters: usage)
//	priorities, age                                     ranking; the formula: package policy
//	dependencies                                        depend
//	advance reservations                                advance; those a job asks for: admit/access.go
//	what is checked once more at a start                start.go: Start.start and recheck; the planner has it too (sched)
//	preemption, suspended jobs that lend CPUs           preemption (who may preempt whom: sched/preempt)
//	how a job ends, is requeued, fails on a node        jobs/life.go; exits: jobs/exit.go
//	steps                                               jobs/steps.go; where they run: steplayout
//	het jobs                                            jobs/het.go and het.go
//	array tasks                                         update_tasks.go, cancel.go; jobs.Editor.SplitTask
//	YAML runs: retry, schedule, idle                    runlife; their records: run.go
//	what time alone does to jobs                        jobs/deadlines.go and tick.go
//	what is asked of a node, power, restarts, health    nodes/verbs.go, power.go, timers.go, health.go
//	joining, leaving and keys of nodes                  nodes/register.go and leave.go, node_register.go, node_key.go
//	users, projects, tokens; who may steer a job        people
//	fleets, credentials                                 fleets, credentials
//	a policy: checks, differences, what names a QOS     policyset
//	what jobs hold: ledger, partitions, licenses        cluster
//	tables, events, what the store and planner learn    live
//	settings                                            conf; their replacement: reconfigure.go
//	what recordings leave out                           redact
//
// Something derived from jobs or nodes is a type with a JobChanged or NodeChanged method that indexJob, jobChanged or
// nodeChanged calls; New and rederive rebuild it. Something that time alone does is a moment in NextWake and what is
// due in Tick.apply. Recordings name inputs by their type, so a type and its fields keep their names.
//
// # Parts
//
// Imports go down only:
//
//	state                                   inputs, State: the order of work
//	  admit                                 what is let in
//	    advance, depend, preemption, nodes, ranking, charge
//	      limits
//	        jobs, cluster                   edits of jobs; what jobs hold
//	          live                          tables and changes
//	            people, fleets, credentials, usage, conf, speccheck, policyset, steplayout, runlife, redact, named
//
// No sub-package knows State. Each is given the records, the settings and the parts below it that it needs. Two calls
// go up, as functions that New passes: an edit of a job or a node calls jobChanged or nodeChanged, and limits that were
// built again call limitsRebuilt.
package state
