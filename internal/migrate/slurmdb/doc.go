// Package slurmdb reads what a slurmdbd database holds from the text of a dump: accounts, users, associations, QOS,
// usage and the jobs that have ended, with their steps, as records of core. Columns are found by name, so that dumps of
// 20.11 and later are read alike. It reads a dump twice: once for all but the jobs (Read), which come before what they
// refer to in a dump, and once for these (Jobs).
package slurmdb
