// Package reserve finds the earliest start of a pending job if all running jobs use their time limit, and what it would
// get then. Searches for the heads of queues are cached between passes.
package reserve
