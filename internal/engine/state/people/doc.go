// Package people has users, projects with their members, tokens and the keys of nodes: their tables and the rules by
// which they change.
//
// Tables are what snapshots share; nobody changes a map that was published. Directory is the one writer: it copies a
// map before the first change after Published. What the change of a project means for limits, priorities and the
// planner is the caller's: methods that work out a project return it, and the caller stores it.
package people
