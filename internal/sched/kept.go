package sched

import (
	"maps"

	"bireme.dev/bireme/internal/core"
)

// A node whose agent is not root runs the jobs of its own user only. Who a job is by matters to nobody else: only the jobs of
// users who have such nodes are in classes of their own.

// keep counts a node among those that are kept to a user, or with -1 no more.
func (l *Ledger) keep(n *core.Node, k int) {
	uid := n.Host.KeptTo()
	if uid == 0 {
		return
	}
	if l.kept == nil {
		l.kept = map[uint32]int{}
	}
	if l.kept[uid] += k; l.kept[uid] == 0 {
		delete(l.kept, uid)
	}
}

// UserOf is the user of a request as far as placement asks: 0 for all who have no nodes of their own.
func (l *Ledger) UserOf(s *core.Spec) uint32 {
	if l.kept[s.UID] > 0 {
		return s.UID
	}
	return 0
}

// users are those who have nodes of their own. It is a value: plans keep it.
type users map[uint32]bool

func (u users) key(s *core.Spec) uint32 {
	if u[s.UID] {
		return s.UID
	}
	return 0
}

// setUsers takes in who has nodes of his own. The jobs of those for whom that changed are of another class.
func (p *Planner) setUsers() {
	if maps.EqualFunc(p.ledger.kept, p.users, func(int, bool) bool { return true }) {
		return
	}
	next := users{}
	for uid := range p.ledger.kept {
		next[uid] = true
	}
	var moved []*core.Job
	for _, w := range p.pending {
		if w.class != nil && next.key(w.job.Spec) != p.users.key(w.job.Spec) {
			moved = append(moved, w.job)
		}
	}
	for _, j := range moved {
		p.forget(p.pending[j.ID])
	}
	p.users, p.stale = next, true
	p.key = p.keyFunc()
	for _, j := range moved {
		p.setJob(j)
	}
}

// keptFrom counts the nodes that are kept to other users.
func (n *need) keptFrom(nodes []*account) (others int) {
	for _, a := range nodes {
		if !n.by(a.node) {
			others++
		}
	}
	return others
}

// by tells whether a node runs jobs of the user.
func (n *need) by(node *core.Node) bool {
	uid := node.Host.KeptTo()
	return uid == 0 || uid == n.uid
}
