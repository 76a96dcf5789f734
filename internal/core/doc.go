// Package core holds Bireme's words as Go types and their pure rules: jobs, nodes, resources, people, events and
// errors.
//
// Nothing here does I/O, reads a clock or starts a goroutine, and nothing here imports another of our packages except
// its own sub-packages. Records (Job, Spec, Node, User, …) are immutable once published: a change makes a new record
// and replaces the old one, so a reader may keep any record for as long as it likes.
//
// What users write in a language of its own (a constraint, a dependency) is a type of its own here: it is parsed where
// it comes in, stored and sent as its text, and keeps the fault of a text that does not parse (parsed.go).
//
// # A job's life
//
//	           submit                 plan applied               last node done
//	(nothing) ────────► PENDING ─────────────────► RUNNING ─────────────────────► COMPLETED, FAILED, TIMEOUT,
//	                      │  ▲                      │ │ ▲                         CANCELLED, OUT_OF_MEMORY, NODE_FAIL
//	               cancel │  │ requeue              │ │ │ resume
//	                      ▼  └──────────────────────┘ ▼ │
//	                  CANCELLED                     SUSPENDED
//
// A job that has its final state but still holds something on a node carries the flag Completing; it is live until the
// last node has reported it clean. Transitions are listed in state.go.
package core
