// Package slurm is the Slurm front end: it translates what Slurm's commands say into core's words, and back.
//
// Everything here is pure: option tables and #SBATCH lines become a core.Spec (request.go, script.go), a job becomes
// the environment of its processes (env.go), records become squeue's columns, scontrol's blocks and sacct's rows, and
// errors become Slurm's texts and exit codes (reason.go). What touches the world are the commands below cmd/, one
// package each, which multicall gathers.
//
// Output and messages are judged by recordings of the real programs under testdata (Slurm 22.05.8; VERSION there).
// Where releases differ, the reference default is the newest behavior that the recordings do not contradict.
package slurm
