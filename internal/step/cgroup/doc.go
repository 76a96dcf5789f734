// Package cgroup holds jobs in control groups: what they may use, what they used, and all of their processes together.
//
// Linux has two generations of control groups, and machines between them: memory may still be on v1 while a bare v2
// tree is mounted beside it. So a Tree is a set of hierarchies, each with the roles it plays here:
//
//	track    holds the processes: killed as one, frozen as one, counted. v2 where there is one, else v1's freezer
//	memory   limit, peak, out-of-memory kills       cpuacct  CPU time, where track does not tell it
//	cpuset, pids, devices                           joined only by jobs that ask for them
//
// A Job is one directory in each hierarchy it needs, with a directory below it for each Step. Making and removing these
// costs more than forking a small job (0.24 ms against 0.7 ms for five v1 directories), so an ended job's directories
// go back into a pool, and only if nothing of it is left: no process, and no more than a trace of memory still charged.
//
// A process is put into its cgroups before it exists: into v2 by clone3, into v1 by moving the forking thread there and
// back, 8 µs a hierarchy. Nothing runs outside even for a moment.
package cgroup
