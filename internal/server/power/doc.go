// Package power runs the site's programs that put nodes to sleep and wake them. When that is to happen is the engine's
// matter: here a node's record says that it is on its way, and the program is run for it, once in the life of a server.
package power
