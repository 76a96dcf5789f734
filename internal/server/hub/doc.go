// Package hub is the server's end of the agents' streams.
//
//	engine ── published changes ──► derive ──► queue of each node ──► writer ══ frames ══► agent
//	   ▲                                                                                    │
//	   └── Exited, NodeDone, Register, NodeSilence ◄── reader ◄══════════ frames ═══════════┘
//
// The hub decides nothing. What an agent should do is derived from the records of the jobs that touch its node:
// launch what runs and was not launched, kill what somebody wants to end, finish what is over. Orders are idempotent,
// so that after a reconnect they are simply derived again: the agent is the truth about what runs, the engine about
// what should.
//
// Heartbeats, log chunks and usage never reach the engine. An exit is acknowledged after its commit.
//
// One goroutine reads and one writes each connection; queues are bounded, and an agent that does not drain its queue
// is dropped: it reconnects and is told again.
package hub
