// Package state is the brain of the control plane: inputs in, changes and replies out, with no I/O, clock or
// randomness.
//
//	           Input, now                            Changes ──► store (one transaction)
//	callers ───────────────► State.Apply ──────────► Reply   ──► caller, after the commit
//	agents, plan                    │                Dirty   ──► planner
//	                                ▼
//	                            Snapshot (copy on write) ──► readers
//
// One goroutine (package engine) owns a State; the simulator and tests drive the very same one. An input either changes
// everything it should or, when it returns an error, nothing.
package state
