// Package engine is the one writer: a goroutine around engine/state that takes the commands that wait, applies them,
// commits them in one transaction, and only then answers.
//
//	Do ──────► inbox ───┐            open batch              commit (one fsync)
//	Urgent ──► lane ────┼──► writer ────────────► committer ───────────────────► snapshot, events, replies
//	planner's starts ───┘      │ ▲ applies the next batch meanwhile
//	                           ▼ │
//	                        planner: changes in, starts out
//
// The writer hands its open batch over whenever the committer is idle, so a lone command is committed at once, and a
// flood is grouped by the time an fsync takes. A commit that fails, or whose outcome is not known, drops the private
// state: everybody who waits gets `unavailable`, the engine is read-only until the store can be written, then it loads
// again.
//
// # A worked example
//
// A user submits a job to an idle cluster. Do puts the command into the inbox; the writer applies it and feeds the
// planner with what changed. The open batch waits up to planWait for the planner to see it: the planner places the job
// and hands its start to the writer, which applies it to the same batch. The committer writes submission and start in
// one transaction, publishes the snapshot to readers and subscribers, and answers the user.
//
// # Faults
//
// A panic in the planner costs the planner, which is built again from the state; the job it fails on twice is held. A
// panic in apply costs the private state, which is loaded again; the command gets `internal` and its sender waits.
// guard.go has both boundaries.
//
// # Where to add something
//
// A command is an input of engine/state; call it with Do, or with Urgent if it ends or cancels something and must not
// be refused for lack of room. What any user may send belongs into senderOf, so that it counts against the user's share
// of the inbox. A command that the engine itself applies goes through applyOwn.
//
// Files: engine.go has the calls, lease.go leadership, senders.go what each user may send, writer.go the loop,
// commit.go the committer, plan.go the planner's goroutine, forecast.go and trial.go what it does when idle, guard.go
// panics, load.go how a state is built, record.go recordings for replay.
package engine
