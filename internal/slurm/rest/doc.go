// Package rest answers Slurm's REST API: it reads what clients of slurmrestd send, asks the services that commands ask,
// and writes what they expect, in each version of the data model. It holds no policy: who may do what, limits and the
// audit log are those of the services. The records and their forms are internal/slurm/schema's.
package rest
