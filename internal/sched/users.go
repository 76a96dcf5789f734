package sched

import (
	"maps"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/alloc"
)

// A node whose agent is not root runs the jobs of its own user only. Only the jobs of users who have such nodes are in
// classes of their own.

// keptUsers are those who have nodes of their own. It is a value: plans keep it.
type keptUsers map[uint32]bool

func (u keptUsers) key(s *core.Spec) uint32 {
	if u[s.UID] {
		return s.UID
	}
	return 0
}

// setKeptUsers updates which users have nodes of their own. Their jobs move to another class if that changed.
func (p *Planner) setKeptUsers() {
	if maps.EqualFunc(p.ledger.KeptUsers, p.classes.users, func(int, bool) bool { return true }) {
		return
	}
	next := keptUsers{}
	for uid := range p.ledger.KeptUsers {
		next[uid] = true
	}
	var moved []*core.Job
	for _, w := range p.pending {
		if w.class != nil && next.key(w.job.Spec) != p.classes.users.key(w.job.Spec) {
			moved = append(moved, w.job)
		}
	}
	for _, j := range moved {
		p.removePending(p.pending[j.ID])
	}
	p.classes.setRules(func(r *classRules) { r.users = next })
	for _, j := range moved {
		p.setJob(j)
	}
}

// With --exclusive=user, or in a partition with ExclusiveUser, a job shares its nodes only with jobs of the same user
// that ask for that too. For all others the node is exclusive; only these jobs look at who uses it.

// ownerOf returns the user who has the nodes of a job in a partition exclusively; "": none.
func ownerOf(s *core.Spec, part *core.Partition) core.UserName {
	if s.Shape.Wide().ExclusiveUser || part.ExclusiveUser {
		return s.User
	}
	return ""
}

// exclusiveUserKey returns the user if the class of a job depends on that; else "".
func (cs *classSet) exclusiveUserKey(s *core.Spec) core.UserName {
	if s.Shape.More != nil && s.Shape.More.ExclusiveUser {
		return s.User
	}
	if !cs.hasUserPartitions {
		return ""
	}
	owner := core.UserName("")
	alloc.EachPartition(s.Partition, func(name core.PartitionName) {
		if part := cs.partitions[name]; part != nil && part.ExclusiveUser {
			owner = s.User
		}
	})
	return owner
}
