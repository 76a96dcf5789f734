// Package policyfile reads and writes a cluster's policy as the YAML file of `bireme policy get` and `apply`: every QOS
// by name, and the projects as a tree, with what each may use and who is in it. Limits have the names Slurm's have, in
// lower case; budgets may be written in hours, times as Slurm or people write them, resources as a mapping or as
// Slurm's text.
package policyfile
