// Package limits holds jobs against the limits of projects, users, QOS and partitions: counts at submission, resources
// and minutes at a start, and minutes that run out while jobs run. The arithmetic is package policy's.
package limits
