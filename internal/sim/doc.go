// Package sim runs a recorded workload through the production rules on a virtual clock.
//
//	SWF trace ──► Reader ──► arrivals ─┐
//	                                   ├─► state.State ──Fresh──► sched.Planner ──Plan──┐
//	          run times ──► ends ──────┘        ▲                                       │
//	                                            └────────────── Start ──────────────────┘
//
// It holds no rule of its own: a job is submitted, started and ended by the same inputs that a front end, the planner
// and an agent send to a server. What is the simulator's is time. At each instant all ends come first, then all
// arrivals, then one scheduling pass.
//
// A trace is read as it is needed and a job leaves memory when it has ended, so what stays is what runs, what waits,
// and a distribution of bounded size.
package sim
