// Package pmi serves the process-management interface by which the tasks of an MPI program find each other: the wire
// protocols of PMI-1 and PMI-2, on a socket that each task inherits as PMI_FD.
//
//	task ──┐ put, get, fence            fence: what this node's tasks put
//	task ──┼──────────────► Node ─────────────────────────────► Exchange: all nodes' together
//	task ──┘               (keys)      ◄─────────────────────────
//
// A Node knows the tasks of its own node. What they put is theirs until they fence: then it is exchanged with the other
// nodes once all local tasks have come, and everybody may read it. Tasks are untrusted: a task that speaks nonsense is
// cut off, and nothing else happens.
//
// Spawning further processes is refused: a step has the tasks it was started with.
package pmi
