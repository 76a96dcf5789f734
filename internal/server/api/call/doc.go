// Package call is what every call of the API passes through and what its handlers share: who calls (Caller), the
// route and what it asks for (Route), the bounded body and the timed answer, the caller's limits, what the audit log
// is told (trail), and Base, the state and settings that all handlers stand on.
//
// A handler takes records of jobs, users, nodes and projects from the view of its caller (Base.Viewer), never from
// the snapshot or the store directly; a test of the parent package lists the exceptions.
package call
