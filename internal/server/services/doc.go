// Package services keeps services going: it watches their replicas, follows their load, and has the engine start and
// end replicas. What it decides are inputs of the engine; what it only counts stays here.
//
//	engine ── published ──► Services ── table ──► proxy ◄── requests
//	   ▲                     │  ▲                   │
//	   └── TendService ◄─────┘  └── load, in flight ┘
//
//	probe, proxy ── Dial ──► Lines ── OpenService ──► hub ══► agent ── dials the replica, then the server with the token
//	                           ▲                                           │
//	                           └────────────── Joined ◄════════════════════┘
//
// Rules that look at nothing but records are those of engine/state/servicelife, here only to see whether something is
// due.
package services
