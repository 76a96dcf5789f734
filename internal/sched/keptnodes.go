package sched

import (
	"maps"

	"bireme.dev/bireme/internal/core"
)

// A node whose agent is not root runs the jobs of its own user only. Who a job is by matters to nobody else: only the
// jobs of
// users who have such nodes are in classes of their own.

// reserveOne counts a node among those that are kept to a user, or with -1 no more.
func (l *Ledger) countKept(n *core.Node, k int) {
	uid := n.Host.KeptTo()
	if uid == 0 {
		return
	}
	if l.keptUsers == nil {
		l.keptUsers = map[uint32]int{}
	}
	if l.keptUsers[uid] += k; l.keptUsers[uid] == 0 {
		delete(l.keptUsers, uid)
	}
}

// KeptUser is the user of a request as far as placement asks: 0 for all who have no nodes of their own.
func (l *Ledger) KeptUser(s *core.Spec) uint32 {
	if l.keptUsers[s.UID] > 0 {
		return s.UID
	}
	return 0
}

// keptUsers are those who have nodes of their own. It is a value: plans keep it.
type keptUsers map[uint32]bool

func (u keptUsers) key(s *core.Spec) uint32 {
	if u[s.UID] {
		return s.UID
	}
	return 0
}

// setKeptUsers takes in who has nodes of his own. The jobs of those for whom that changed are of another class.
func (p *Planner) setKeptUsers() {
	if maps.EqualFunc(p.ledger.keptUsers, p.users, func(int, bool) bool { return true }) {
		return
	}
	next := keptUsers{}
	for uid := range p.ledger.keptUsers {
		next[uid] = true
	}
	var moved []*core.Job
	for _, w := range p.pending {
		if w.class != nil && next.key(w.job.Spec) != p.users.key(w.job.Spec) {
			moved = append(moved, w.job)
		}
	}
	for _, j := range moved {
		p.removePending(p.pending[j.ID])
	}
	p.users, p.classReasonsStale = next, true
	p.key = p.newKeyFunc()
	for _, j := range moved {
		p.setJob(j)
	}
}

// countKeptFromOthers counts the nodes that are kept to other users.
func (n *request) countKeptFromOthers(nodes []*nodeState) (others int) {
	for _, a := range nodes {
		if !n.mayUseNode(a.record) {
			others++
		}
	}
	return others
}

// mayUseNode tells whether a node runs jobs of the user.
func (n *request) mayUseNode(node *core.Node) bool {
	uid := node.Host.KeptTo()
	return uid == 0 || uid == n.uid
}
