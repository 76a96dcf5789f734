package fit

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/ledger"
)

// countKeptFromOthers counts the nodes that are kept to other users.
func (n *Request) countKeptFromOthers(nodes []*ledger.Node) (others int) {
	for _, a := range nodes {
		if !n.mayUseNode(a.Record) {
			others++
		}
	}
	return others
}

// mayUseNode reports whether a node runs jobs of the user.
func (n *Request) mayUseNode(node *core.Node) bool {
	uid := node.Host.KeptTo()
	return uid == 0 || uid == n.Uid
}
