// Package ssh makes nodes of hosts that are there already and that can be logged into.
//
//	Dial ──► Host ── Probe ──► Facts ── Upload (once a checksum) ── Start ──► the agent runs and dials its server
//	           └──── Listen: a socket on the host that ends here, for hosts which cannot reach the server
//
// Everything is in one directory of the host, /var/lib/bireme/fleet (as root, or with sudo that asks for no password)
// or ~/.bireme/fleet (as anybody else: such a node runs the jobs of that user only). bin/SUM holds the programs, and is
// shared by all nodes that see the directory; NODE holds the certificate, the log and what the agent keeps. The agent
// is a unit of systemd where that runs, and otherwise the child of a small shell loop in a session of its own. The
// keeper of its jobs outlives both, so programs are replaced under running jobs.
//
// What a host says is judged, never trusted: a host key that differs from the first one seen ends the connection before
// anything is sent.
package ssh
