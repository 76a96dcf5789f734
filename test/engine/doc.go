// Package engine starts a container engine of its own for tests and measurements: a real dockerd with its own data,
// socket and bridge, which leaves nothing behind, and images made here, because nothing is to be fetched from anywhere.
package engine
