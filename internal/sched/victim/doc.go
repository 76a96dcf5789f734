// Package victim finds the running jobs to preempt for a pending job: which nodes it gets, and who must leave them. Who
// may preempt whom is in package preempt; what follows from a preemption is in package sched.
package victim
