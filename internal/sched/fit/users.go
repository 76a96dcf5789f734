package fit

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/ledger"
)

// countKept counts the nodes that are kept to other users, and those that are kept to other projects.
func (req *Request) countKept(nodes []*ledger.Node) (users, projects int) {
	for _, node := range nodes {
		if uid := node.Record.Host.KeptTo(); uid != 0 && uid != req.Uid {
			users++
		}
		if p := node.Record.Project; p != "" && p != req.Project {
			projects++
		}
	}
	return users, projects
}

// mayUseNode reports whether a node runs jobs of the user and of the project.
func (req *Request) mayUseNode(node *core.Node) bool {
	uid := node.Host.KeptTo()
	return (uid == 0 || uid == req.Uid) && (node.Project == "" || node.Project == req.Project)
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
