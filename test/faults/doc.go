// Package faults kills, fills and cuts real clusters under a seed and checks the first promise: nothing acknowledged is
// lost, and no job runs twice at once.
//
// TestStream sends a stream of jobs through the API while the server, agents and keepers are killed at random. Every
// job holds a kernel lock on a file of its own for as long as any of its processes lives, and fails loudly when it is
// taken; every run leaves a line when it starts and one when it ends. The judge then compares what the cluster says of
// each job with those lines, with what was asked, and with what was killed. The seed fixes the stream and the choice of
// kills, not the scheduling of this machine: a seed that failed may need a few runs to fail again.
package faults
