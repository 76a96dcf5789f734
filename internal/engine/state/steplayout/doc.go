// Package steplayout decides where the tasks of a step run: how many on which of its job's nodes, and which CPUs,
// memory and units the step has to itself there. It is a function of the job, its other steps and the request; the
// command that makes a step calls it, so that two steps never get the same. The server's writer waits for it meanwhile:
// its time grows with the job's nodes, not with their square.
//
//	request ──► layout: tasks on nodes ──► holds: CPUs, memory, units on each
//	                ▲                          │ not free
//	                └── nodes without what ◄───┘
//	                    other steps hold
package steplayout
