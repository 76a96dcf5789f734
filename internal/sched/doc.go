// Package sched decides what starts where: placement of jobs on nodes, in order, with a reason for every job that
// waits.
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
// A pass goes through each partition's queue by priority, then age, then id, and starts what fits. The first job of a
// queue that cannot start now but could on these nodes (reason Resources; those behind: Priority) gets a reservation:
// the
// earliest moment at which it could start if all that runs lasts as long as it may, and nodes kept for it from then on,
// in all dimensions. Every job behind it, however deep, starts if it does not delay that: it ends before, or uses what
// the
// reservation leaves (see Rule for the other ways, and Config.Reservations for more than one). A job that could not
// start even if nothing ran (its nodes are down,
// its partition is too small) is not in the queue: it has its reason and blocks nobody.
//
// Limits reach the planner whole (Policy), what was used as meters. It counts what runs itself, starts of the same pass
// too.
// A job that a limit keeps from starting has its reason and is passed over: it is not first, and blocks nobody. Reasons
// are
// worked out when somebody asks, from a view of the counts that the plan keeps.
//
// Jobs that ask for the same form a class. What a class could do on empty nodes is worked out when it appears and when
// nodes change; what it was refused within a pass it is not looked at again for. So a pass costs classes and starts,
// not
// jobs times nodes.
//
// From pass to pass: a class that was refused sleeps until a node among those on which something came free has what one
// task of it needs (sleep.go, refusal.go); a node that goes down or comes up disturbs only the classes that cannot
// spare it
// (watch.go); the earliest start of a queue's first job is worked out again only for nodes on which something changed
// (search.go); what each node has free lies side by side, so that a choice looks at few nodes (roomy.go).
//
// Most jobs take the first nodes with room, by weight. Those that ask more of their nodes as a whole (a constraint with
// alternatives or counts, no gap between them, few switches), and all jobs where the network is known, have a wish and
// go
// the long way of seek: all nodes with room are gathered, and a set of them is looked for that is enough.
package sched
