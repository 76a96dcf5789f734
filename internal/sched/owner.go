package sched

import "bireme.dev/bireme/internal/core"

// A job may keep its nodes to its user (--exclusive=user, or a partition that does so for all its jobs): only jobs of the
// same user that say so too are beside it. To all others such a job is one that has the node whole, which costs them
// nothing to know; who has a node is looked at for these jobs alone.

// ownerOf gives the user whose the nodes of a job would be in a partition; "": nobody's.
func ownerOf(s *core.Spec, part *core.Partition) core.UserName {
	if s.Shape.Wide().ExclusiveUser || part.ExclusiveUser {
		return s.User
	}
	return ""
}

// ownerKey is what of that makes classes differ.
func (p *Planner) ownerKey(s *core.Spec) core.UserName {
	if s.Shape.More != nil && s.Shape.More.ExclusiveUser {
		return s.User
	}
	if !p.owning {
		return ""
	}
	owner := core.UserName("")
	eachPartition(s.Partition, func(name core.PartitionName) {
		if part := p.byName[name]; part != nil && part.ExclusiveUser {
			owner = s.User
		}
	})
	return owner
}

// to is what is free of a node for a job that keeps it to its user: jobs of the same sort and user are not in its way,
// any other is.
func (b *balance) to(owner core.UserName, a *account, at *look) balance {
	free := *b
	if at.empty {
		return free
	}
	if free.whole -= b.owned; free.whole > 0 || !a.ownedBy(owner, at) {
		free.whole = 1
		return free
	}
	free.whole = 0
	return free
}

// ownedBy tells whether all that are on the node while a job would run keep it to the same user.
func (a *account) ownedBy(owner core.UserName, at *look) bool {
	there := &a.now
	if at.then != 0 && a.swept == at.sweep {
		there = &a.then
	}
	if there.held > there.owned || there.owned > 0 && a.owner != owner {
		return false
	}
	if at.then == 0 && at.end == 0 { // reservations do not count
		return true
	}
	for _, c := range a.claims {
		meets := hits(c.from, at.end) && (at.then == 0 || c.from > at.then || c.holds(at.then))
		if meets && c.owner != owner {
			return false
		}
	}
	return true
}

// takes tells whether a job may come to those that are on a node.
func (a *account) takes(t Terms) bool {
	if t.Owner != "" && a.now.held > 0 {
		return !t.Whole && a.now.held == a.now.owned && a.now.whole == a.now.owned && a.owner == t.Owner
	}
	return a.now.whole == 0 && (!t.Whole || a.now.held == 0)
}

// keeps notes in what a job takes of a node that it keeps the rest from others.
func (n *need) keeps(use *balance) {
	switch {
	case n.exclusive:
		use.whole = -1
	case n.owner != "":
		use.whole, use.owned = -1, -1
	}
}
