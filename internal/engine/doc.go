// Package engine is the one writer: a goroutine around engine/state that takes what waits, applies it, commits it in
// one transaction, and only then answers.
//
//	Do ────► inbox ──┐            open batch              commit (one fsync)
//	Urgent ► lane ───┼──► writer ────────────► committer ───────────────────► snapshot, events, answers
//	planner starts ──┘      │ ▲ applies the next batch meanwhile
//	                        ▼ │
//	                     planner: changes in, starts out
//
// The writer hands its open batch over whenever the committer is free, so a lone command is committed at once and a
// flood is grouped by the time an fsync takes. A commit that fails, or whose fate is not known, drops the private
// state: everybody waiting gets `unavailable`, the engine is read-only until the store can be written, then it loads
// again.
package engine
