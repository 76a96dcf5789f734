// Package conf reads a Slurm site's configuration: slurm.conf with its includes, and gres.conf, cgroup.conf and
// topology.conf beside it.
//
//	slurm.conf ─┐ lines, includes,      ┌── Settings   key → value, where it stood
//	gres.conf  ─┼─► defaults, hostlists ─┼── Nodes, Partitions, NodeSets, Gres, Switches
//	cgroup.conf┘                        └── Faults     what is wrong, with file and line
//
// Reading changes nothing and decides nothing: what a setting means to us is the caller's. A key we do not know is kept
// like any other, so that the caller can list what it had no use for.
package conf
