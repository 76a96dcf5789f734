package fit

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/ledger"
)

// countKeptFromOthers counts the nodes that are kept to other users.
func (req *Request) countKeptFromOthers(nodes []*ledger.Node) (others int) {
	for _, node := range nodes {
		if !req.mayUseNode(node.Record) {
			others++
		}
	}
	return others
}

// mayUseNode reports whether a node runs jobs of the user.
func (req *Request) mayUseNode(node *core.Node) bool {
	uid := node.Host.KeptTo()
	return uid == 0 || uid == req.Uid
}

// markExclusive notes in what a job takes of a node that it keeps the rest from others.
func (req *Request) markExclusive(use *ledger.Resources) {
	switch {
	case req.Exclusive:
		use.Exclusive = -1
	case req.User != "":
		use.Exclusive, use.UserExclusive = -1, -1
	}
}
