// Package live has the records that are live, and what has changed of them.
//
// A Snapshot is the tables at one moment: jobs, steps, nodes, people, runs, QOS, advance reservations, fleets, meters.
// Readers keep as many as they like. Records is the one that is written: the present Snapshot, the changes that the
// store has not been given, and those that the planner has not been told. It stores what it is given and decides
// nothing; the rules are in the packages that are given a Records.
package live
