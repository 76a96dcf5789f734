// Package preempt says who may preempt whom, and how: Rules are made from the settings, the partitions and the QOS. A
// Preemptor is the jobs of a class that wait, a Candidate is a running job that may be preempted. Which candidates are
// chosen is not decided here.
package preempt
