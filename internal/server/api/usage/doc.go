// Package usage answers what was used of the cluster in a time, by whom, and when nodes were not in service. It adds up
// the records of jobs, the events of nodes and the log of reservations when it is asked; nothing is kept.
package usage
