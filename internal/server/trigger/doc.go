// Package trigger runs programs of users on the server when something has happened to a node, a job or the server:
// Slurm's triggers. They are records of the store beside the engine's state. A program runs as the user who set its
// trigger, never as root for anybody else, and at least once: a server that dies while it fires a trigger fires it
// again.
//
// While there are no triggers a commit costs one look at a flag.
package trigger
