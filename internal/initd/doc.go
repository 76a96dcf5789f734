// Package initd is the first process of a container.
//
// It dials the stand-in that had the container made (bireme-container, on the node), over a socket that is mounted into
// the container, and gets from there what to run: the script, the environment with its secrets, and the very files that
// the output goes to. So nothing of a job is on a command line or on the container's disk, and nobody copies its
// output.
//
//	stand-in ── Run, with streams 0 1 2 ──► initd ── fork ──► the job's script
//	         ◄─ RunStarted, RunEnded ──────       └─ fork ──► what joins later: steps, sshd
//
// It hands signals on, reaps orphans, and ends with its first program, after all others are dead. When the stand-in is
// gone it kills everything and ends: nothing runs in a container that nobody watches.
//
// As `sshd` it serves SSH on its standard streams (ssh.go), for ssh, scp, rsync and editors that work over them. Who
// may open such a stream has been decided before it is opened.
//
// It links neither HTTP nor TLS, because it is mounted into every container and must stay small and static.
package initd
