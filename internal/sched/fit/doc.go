// Package fit says whether a job fits on nodes, and on which: a Request is what a spec asks for, worked out once for
// each class of jobs. Choose takes the first nodes in order that have room, or, for requests that ask more of their
// nodes as a set (constraints with alternatives or counts, contiguous nodes, few switches), looks for a set among all
// nodes with room.
package fit
