// Package dstack is what the parts of the dstack front end share: names of runs and fleets, and the DSTACK_* variables
// that the commands of a run expect. It holds no policy and does no I/O.
//
//	YAML file, JSON request ── dstack/config ──► Configuration
//	Configuration ── dstack/convert ──► client.Submit, client.FleetSpec
//	core.Job, its run's id, a node's rank ── RunEnv ──► DSTACK_* variables
//
// Where a value is a range, what is asked for is its minimum: an allocation is exact, while dstack's ranges choose
// among machines.
package dstack
