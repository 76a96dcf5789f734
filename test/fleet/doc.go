// Package fleet tests SSH fleets with real OpenSSH hosts: each is a network namespace with namespaces of its own for
// processes, mounts and its name, joined to this machine by a pair of virtual cables. Each test has a lab of its own.
//
//	this machine ──10.X.1.0── plain
//	             ──10.X.2.0── gate ──10.X.9.0── inner    (only through gate, and it reaches nothing but gate)
//	             ──10.X.3.0── mortal
//	             ──10.X.4.0── shut                        (no SSH server at first)
//
// What is not real says so in its name: systemctl is testdata/fake-systemctl on one host, because no systemd may be
// started beside the machine's own, and machines of another architecture have a fake-uname.
package fleet
