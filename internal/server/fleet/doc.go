// Package fleet sees to it that the hosts of fleets are nodes: one goroutine a host, driven by what the engine's state
// says of it.
//
//	        ┌──────── not connected, or of another version ────────┐
//	        ▼                                                      │
//	connect by SSH ─► look ─► upload ─► start ─► agent connects ─► rest
//	        │ fails: the cause goes into the state,                │ the agent came through the tunnel:
//	        └ and it is tried again, ever less often               └ the SSH connection is held
//
// A host that leaves is logged into once more, to end its agent and to remove what was put there. One that cannot be
// reached for that leaves all the same: its certificate is worth nothing any more.
//
// Nothing here is needed to run a job: when the SSH connection breaks, or this process ends, agents that reach the
// server by themselves do not notice, and the others come back when somebody connects to them again. Neither touches
// their jobs.
package fleet
