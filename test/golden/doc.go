// Package golden replays the recordings of the real Slurm on a cluster of the same shape and holds what our commands
// write against them.
//
//	testdata/conf      the slurm.conf the recordings were made with
//	testdata/play.sh   the commands, in the order they were recorded in
//	testdata/waived.txt  what need not be the same, each line with its reason
//	testdata/open.txt    recordings that are not reproduced yet
//	../../internal/slurm/testdata/golden  the recordings
//
// Numbers of jobs, moments, host names and directories differ from run to run; see alike.
package golden
