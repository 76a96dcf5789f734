// Package taskset is the set of task indices of a job array, kept as ranges.
//
// A set is immutable and small: the 100,000 tasks of 1-100000 are one range of twelve bytes, and
// so are those of 1-100000:7. Removing an index, which happens each time a task starts, makes a
// new set that costs the number of ranges, not of indices; taking the first index away shares
// the rest with the old set.
//
// Ranges are sorted and never interleave: each lies wholly before the next. What would
// interleave (0-9:2,1-9:4) is worked out index by index when the set is made.
package taskset
