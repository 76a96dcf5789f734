// Package pmix serves PMIx to the tasks of a step: the wire protocol that the client library (OpenPMIx 4.1 and later,
// as of Open MPI 4 and 5) speaks with the server on its node. It is written in Go against the protocol, not linked
// with libpmix: nothing need be installed on nodes, and the keeper stays a static program (docs/adr/0010).
//
//	task ──┐ commit, fence, get               fence: what this node's tasks committed
//	task ──┼───── TCP, loopback ────► Node ─────────────────────────────────────► Send ─► srun ─► all nodes
//	task ──┘                         (blobs) ◄───────────────────────────────────── Deliver
//
// A connection begins with a handshake that names the task (conn.go). The library's own credential is a user id that
// the client writes itself, so it proves nothing: the owner of the peer's socket is asked of the kernel instead
// (owner_linux.go), and must be the user of the step. What a task commits is kept as packed by it; only keys are read
// (values.go). Data of other nodes comes with a fence that collects, or one task's at a time when somebody asks
// (remote.go).
//
// Tasks are untrusted. Every length is checked against what was received, every message, store and number of
// connections has a bound, and whoever speaks nonsense is cut off without harm to others.
//
// Not served: spawning, publishing, connecting to other jobs, groups and queries. Callers get PMIX_ERR_NOT_SUPPORTED.
package pmix
