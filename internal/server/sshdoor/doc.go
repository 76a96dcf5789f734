// Package sshdoor is the SSH listener of the server that leads into jobs, for ssh, scp, editors and dstack clients.
//
//	client ══ SSH, the user's key ══ Door ══ a step of the job, as the user ══ bireme-init sshd in the job
//	                                  └── port 10999: the job's output by websocket
//
// The name of the user says which job is meant (dstack/attach). Who may connect is who may start a step in the job: its
// owner and administrators, each with a key of theirs. Nobody gets a shell on the server or a login on a node: the
// connection ends here, and whatever it asks for (a program, files, a port) is asked of a second SSH connection, that
// runs on the standard streams of a step inside the job. That step is made by a call of the server's own API in the
// name of the user, so the limits, rights and audit entries of that call hold.
//
// dstack clients connect to port 10022 of what they take for the job's host and speak SSH there once more. That inner
// connection ends here too (docs/adr/0009).
package sshdoor
