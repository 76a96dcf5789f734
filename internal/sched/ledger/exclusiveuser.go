package ledger

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/alloc"
)

// FreeFor returns what is free of a node for a job that keeps it to its user: jobs of the same kind and user do not
// count, all others do.
func (b *Resources) FreeFor(owner core.UserName, a *Node, at *View) Resources {
	free := *b
	if at.IfIdle {
		return free
	}
	if free.Exclusive -= b.UserExclusive; free.Exclusive > 0 || !a.isOnlyUsedBy(owner, at) {
		free.Exclusive = 1
		return free
	}
	free.Exclusive = 0
	return free
}

// isOnlyUsedBy reports whether all jobs on the node, while the new one would run, keep it to the same user.
func (a *Node) isOnlyUsedBy(owner core.UserName, at *View) bool {
	there := &a.Free
	if at.At != 0 && at.Later != nil {
		if f := at.Later.Find(a); f != nil {
			there = &f.Free
		}
	}
	if there.Allocs > there.UserExclusive || there.UserExclusive > 0 && a.user != owner {
		return false
	}
	if at.At == 0 && at.End == 0 { // reservations do not count
		return true
	}
	for _, c := range a.Reserved {
		meets := alloc.Overlaps(c.Start, at.End) && (at.At == 0 || c.Start > at.At || c.IsActive(at.At))
		if meets && c.User != owner {
			return false
		}
	}
	return true
}

// acceptsTerms reports whether a job may join those on a node.
func (a *Node) acceptsTerms(t alloc.Terms) bool {
	if t.User != "" && a.Free.Allocs > 0 {
		return !t.Exclusive && a.Free.Allocs == a.Free.UserExclusive && a.Free.Exclusive == a.Free.UserExclusive &&
			a.user == t.User
	}
	return a.Free.Exclusive == 0 && (!t.Exclusive || a.Free.Allocs == 0)
}
