// Package step is the keeper: the long-lived parent of every user process on a node.
//
// A keeper forks what its agent tells it to, holds each job together, and says how it ended. It decides nothing else.
// It outlives its agent: processes run on, limits are enforced, ends are written to a journal and told to the next
// agent that connects, until it acknowledges them.
//
// The life of a step, one goroutine each (run.go):
//
//	Launch ─► journal ─► job's place ──────► stdio, script ──────────► fork ─────────► Started
//	            L        cgroup, tmpdir,     as the user, on a         born in
//	                     prolog              launcher thread           its cgroup
//
//	tasks end ─► kill the rest ─► usage ─► clean ──────────► Exited ─► AckExit
//	             cgroup empty              epilog, tmpdir      X         A
//
// L, X and A are records of the journal (journal.go), one write each. A key that is in the journal is never run again.
// A keeper that finds L without X after the death of its predecessor kills what is left and tells "keeper_lost"
// (recover.go).
//
// What holds a step's processes together is, in this order: a cgroup; a PID namespace, for root without cgroups
// (pidns.go); a mark in the environment and descent, which a hostile process can shed (weak.go).
//
// Threads matter here. Launcher threads (thread.go) are locked for life and have a working directory and umask of their
// own, so they can take on a user's file-system identity, stand in a user's directory and enter a job's cgroups without
// any other thread noticing. One thread waits for children (reap.go): because the keeper is a child subreaper, also for
// those that jobs orphaned. Time limits run on a clock that counts a suspended machine (timer.go).
package step
