package sched

import "bireme.dev/bireme/internal/core"

// Suits tells whether a node has what a constraint that was checked asks of each node.
func Suits(constraint string, n *core.Node) bool {
	return constraint == "" || agrees(parsed(constraint), n)
}
