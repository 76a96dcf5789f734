// Package timetable plans jobs on one node by the rule of conservative backfill: every job gets a place in time when it
// arrives.
package timetable
