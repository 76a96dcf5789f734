// Command bench measures a real cluster started from the built binaries and prints one table: each figure beside the
// limit of this machine measured in the same run, or, with -slurm, beside a real Slurm doing the same work.
//
// Every job has a script of 2 KiB and an environment of 6 KiB, unique per job. Nothing is asserted here: a time in a
// benchmark is a figure. Ratios are taken within one run, because the machine is shared.
package main
