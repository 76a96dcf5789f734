// Package convert turns dstack's runs into jobs, and jobs back into what dstack's clients read.
//
//	wire.RunSpec ── Read ──► Spec ── Effective ──► Spec ── Submit ──► client.Submit
//	core.Run, core.Job, Spec, nodes ── Runs.Run ──► wire.Run
//	nodes, fleets, partitions, Spec ── Offers ──► []wire.Offer
//
// It is pure: the native commands and the server use it alike.
//
// One run is one job. Each node of the job is one of dstack's jobs, job_num being its rank; each attempt is a
// submission of all of them. Where a value is a range, what is asked for is its minimum: an allocation is exact, while
// dstack's ranges choose among machines. The default of `disk` (100GB..) asks for nothing, because the disk of a node
// is not divided among jobs.
package convert
