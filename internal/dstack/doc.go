// Package dstack is the dstack front end: it turns a .dstack.yml configuration into a submission in core's words, and a
// started job back into the DSTACK_* variables its commands expect. It holds no policy and does no I/O.
//
//	bytes ── Parse ──► Task ── Submit(name, environment, …) ──► client.Submit
//	core.Job, its run's id, a node's rank ── RunEnv ──► DSTACK_* variables
//
// Parse reads the YAML node by node, so that every fault of a file is told at once with its line, column and path, and
// an unknown key comes with the nearest known one. Keys of dstack's grammar (as of 0.22.5) that Bireme does not act on
// yet are refused by name: nothing that somebody wrote is dropped in silence. The table in keys.go is the whole
// grammar.
//
// Where a value is a range, what is asked for is its minimum: an allocation is exact, while dstack's ranges choose
// among machines. For the same reason an omitted size asks for nothing (one CPU, the partition's default memory), while
// dstack looks for a machine with at least 2 CPUs and 8 GB.
package dstack
