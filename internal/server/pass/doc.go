// Package pass hands calls that a server which follows cannot answer to the one that leads: writes, and what only the
// leader knows. Who calls was seen here (the kernel's word for a socket, a node's certificate, an SSH key) and is told
// over mutual TLS between servers; tokens go along as they came.
//
// A call that nobody has carried out is held through a change of leader, for some seconds: it was refused, or never
// sent. One whose answer was lost is sent again only if it may be: it reads, says what is to be in the end, or bears a
// key under which it is carried out once.
package pass
