// Package slurmsite has the commands that move a Slurm site here: bireme import slurmdbd and bireme migrate slurm.
package slurmsite
