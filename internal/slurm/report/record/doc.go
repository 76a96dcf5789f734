// Package record is what Slurm's documents say of a cluster beside its jobs and nodes: how the server fares, fair
// shares, licenses, reservations. Commands (--json) and the REST API share it.
package record
