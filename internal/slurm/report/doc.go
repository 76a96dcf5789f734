// Package report writes records as Slurm's commands show them: squeue's and sinfo's columns, scontrol's blocks, sacct's
// rows, and the JSON of each.
//
// A column is a row of a table: its names, its heading and a function from the record to the text. Package column holds
// such tables for squeue, sinfo and sprio, package table for the accounting commands. Output is compared with
// recordings of the real programs.
package report
