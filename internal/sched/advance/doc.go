// Package advance knows the times of advance reservations: which windows a reservation has, whether it may be used by a
// job, and whether a job that runs between two moments overlaps it.
package advance
