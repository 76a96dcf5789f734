// Package forecast estimates when the pending jobs of a cluster will start if no more jobs arrive and all use their
// time limit. A Model is filled with nodes, classes, running and pending jobs, and then run; a Table holds the result.
package forecast
