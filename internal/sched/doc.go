// Package sched decides what starts where: placement of jobs on nodes, in order, with a reason for every job that waits.
//
//	 changed jobs, nodes      ┌──────────── Planner ────────────┐
//	────────────────────────► │ queues: one a partition, ordered │   Pass(now)
//	      Apply               │ ledger: what each node has free  │ ──────────► Plan: starts, reasons, wake-me-at
//	                          └──────────────────────────────────┘
//
// A Planner is a deterministic value. Law: after any sequence of Apply, Pass gives what a Planner built cold from the
// same jobs and nodes would give. Pass leaves the Planner as it found it: the plan is a wish, and only what the engine
// made of it comes back, through Apply.
//
// A pass goes through each partition's queue by priority, then age, then id. A job that cannot start now but could on
// these nodes blocks its partition's queue behind it (reason Resources; those behind: Priority). A job that could not
// start even if nothing ran (its nodes are down, its partition is too small) is not in the queue: it has its reason and
// blocks nobody. Which those are depends on the request and on the nodes alone, so it is worked out a class of equal
// requests at a time, when a class appears and when nodes change. Walking stops when every queue is empty or blocked, so
// a pass costs what it starts, not what waits.
package sched
