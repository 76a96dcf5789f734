// Package agent is the node's daemon: it carries orders from the server to the node's keeper and news back.
//
//	           mutual TLS, one stream                unix socket, frames
//	server ◄══════════════════════════► agent ◄══════════════════════════► keeper (bireme-step) ── users' processes
//	  ▲                                   ▲
//	  └── calls with the caller's uid ────┴── the node's socket: commands on login nodes and inside jobs
//
// The agent decides nothing but how to run what it was told. What runs and what ended lives in the keeper, which
// outlives the agent: an agent that starts finds the keeper, learns what it holds and tells the server in its hello. An
// end is forgotten only when the server says that it is durable. While the server is away everything continues; only a
// fence, where one is set, ends jobs after too long a silence.
//
// A keeper that dies is replaced: what it left in its cgroups is killed, its successor reads its journal and reports
// what was lost.
package agent
