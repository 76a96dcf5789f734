// Package runlife has the rules of a YAML run's life that other jobs do not have: what starts it again, how long it
// waits for nodes, when its schedule triggers it, and what ends it for want of use. It knows nothing of State, which
// calls it where an attempt starts, ends and goes back to the queue.
//
//	attempt ends ──► Again ── no ──► the run ends (Exceeded: it would have been started again)
//	                   │
//	                   └─ yes ─► Requeued: in the queue, from the end of its back-off or from its next trigger
//	                                │
//	                                └─► it starts within RunRules.StartWithin, or ends with NoCapacity
//
// Waiting for nodes is waiting in the queue: a run keeps its place there, and no attempt is spent on it. Only errors
// have a back-off, so that a program that fails at once does not start again and again.
package runlife
