// Package front is the frame of dstack's HTTP API: which version a client has, what its caller may do in a project, how
// bodies are read, and what errors look like. Who calls, limits and the audit log are those of every other call: a Row
// becomes a call.Route.
package front
