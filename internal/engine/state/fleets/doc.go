// Package fleets has the records of fleets and the rules by which they and their hosts change.
//
// A fleet of a snapshot never changes: methods work on copies, which the caller stores. What becomes of the nodes of
// hosts, and of the jobs on them, is the caller's.
package fleets
