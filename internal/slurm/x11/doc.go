// Package x11 shows windows of a job's programs on the caller's display: the process behind --x11 of srun and salloc.
//
//	X client ── TCP, 127.0.0.1:60NN of the node ── bireme-init sshd, a step of the job ══ SSH ══ here ── X server
//
// The nodes get a cookie made for this purpose, in a file of the user's own. Who connects there with it is let through,
// with the display's real cookie in its place: that never leaves this machine.
//
// It is a program of its own because it links an SSH client, which Slurm commands need not load. Only `bireme` has it.
package x11
