// Package server is the control plane's wiring: store, engine, hub, log store, certificate authority and HTTP in one
// process, started and stopped in order.
//
//	store ◄── engine ──► hub ══ agents          listeners: unix socket (the kernel's word for the caller),
//	             │        ▲                                HTTP API (plain on loopback, TLS elsewhere),
//	             └──► api ┘ ◄── callers                    agents' door (TLS with node certificates)
//
// Run opens the store, waits until the engine leads, opens the doors and calls Ready. When its context ends it stops
// letting callers in, finishes what is under way, says goodbye to the agents and closes.
package server
