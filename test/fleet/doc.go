// Package fleet tests SSH fleets with real OpenSSH hosts: each is a network namespace with namespaces of its own for
// processes, mounts and its name, joined to this machine by a pair of virtual cables.
//
//	this machine ──10.X.1.0── plain
//	             ──10.X.2.0── gate ──10.X.9.0── inner    (only through gate, and it reaches nothing but gate)
//	             ──10.X.3.0── mortal
//	             ──10.X.4.0── shut                        (no SSH server at first)
package fleet
