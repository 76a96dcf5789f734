package sched

import (
	"bireme.dev/bireme/internal/core"

	"bireme.dev/bireme/internal/sched/alloc"
)

// A job may keep its nodes to its user (--exclusive=user, or a partition that does so for all its jobs): only jobs of
// the
// same user that say so too are beside it. To all others such a job is one that has the node whole, which costs them
// nothing to know; who has a node is looked at for these jobs alone.

// ownerOf gives the user whose the nodes of a job would be in a partition; "": nobody's.
func ownerOf(s *core.Spec, part *core.Partition) core.UserName {
	if s.Shape.Wide().ExclusiveUser || part.ExclusiveUser {
		return s.User
	}
	return ""
}

// exclusiveUserKey is what of that makes classes differ.
func (p *Planner) exclusiveUserKey(s *core.Spec) core.UserName {
	if s.Shape.More != nil && s.Shape.More.ExclusiveUser {
		return s.User
	}
	if !p.hasUserPartitions {
		return ""
	}
	owner := core.UserName("")
	alloc.EachPartition(s.Partition, func(name core.PartitionName) {
		if part := p.partitionByName[name]; part != nil && part.ExclusiveUser {
			owner = s.User
		}
	})
	return owner
}

// end is what is free of a node for a job that keeps it to its user: jobs of the same sort and user are not in its way,
// any other is.
func (b *resources) freeFor(owner core.UserName, a *nodeState, at *nodeView) resources {
	free := *b
	if at.ifIdle {
		return free
	}
	if free.exclusive -= b.userExclusive; free.exclusive > 0 || !a.isOnlyUsedBy(owner, at) {
		free.exclusive = 1
		return free
	}
	free.exclusive = 0
	return free
}

// isOnlyUsedBy tells whether all that are on the node while a job would run keep it to the same user.
func (a *nodeState) isOnlyUsedBy(owner core.UserName, at *nodeView) bool {
	there := &a.free
	if at.at != 0 && a.scanned == at.scan {
		there = &a.freeThen
	}
	if there.allocs > there.userExclusive || there.userExclusive > 0 && a.user != owner {
		return false
	}
	if at.at == 0 && at.end == 0 { // reservations do not count
		return true
	}
	for _, c := range a.reserved {
		meets := alloc.Overlaps(c.start, at.end) && (at.at == 0 || c.start > at.at || c.isActive(at.at))
		if meets && c.user != owner {
			return false
		}
	}
	return true
}

// accepts tells whether a job may come to those that are on a node.
func (a *nodeState) acceptsTerms(t alloc.Terms) bool {
	if t.User != "" && a.free.allocs > 0 {
		return !t.Exclusive && a.free.allocs == a.free.userExclusive && a.free.exclusive == a.free.userExclusive &&
			a.user == t.User
	}
	return a.free.exclusive == 0 && (!t.Exclusive || a.free.allocs == 0)
}

// markExclusive notes in what a job takes of a node that it keeps the rest from others.
func (n *request) markExclusive(use *resources) {
	switch {
	case n.exclusive:
		use.exclusive = -1
	case n.user != "":
		use.exclusive, use.userExclusive = -1, -1
	}
}
