package ledger

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/alloc"
)

// countKept counts a node among those kept to a user and to a project; with -1 it is removed.
func (l *Ledger) countKept(n *core.Node, k int) {
	if p := n.Project; p != "" {
		if l.KeptProjects == nil {
			l.KeptProjects = map[core.ProjectName]int{}
		}
		if l.KeptProjects[p] += k; l.KeptProjects[p] == 0 {
			delete(l.KeptProjects, p)
		}
	}
	uid := n.Host.KeptTo()
	if uid == 0 {
		return
	}
	if l.KeptUsers == nil {
		l.KeptUsers = map[uint32]int{}
	}
	if l.KeptUsers[uid] += k; l.KeptUsers[uid] == 0 {
		delete(l.KeptUsers, uid)
	}
}

// KeptUser is the user of a request as far as placement asks: 0 for all who have no nodes of their own.
func (l *Ledger) KeptUser(s *core.Spec) uint32 {
	if l.KeptUsers[s.UID] > 0 {
		return s.UID
	}
	return 0
}

// KeptProject is the project of a request as far as placement asks: "" for all that have no nodes of their own.
func (l *Ledger) KeptProject(s *core.Spec) core.ProjectName {
	if l.KeptProjects[s.Project] > 0 {
		return s.Project
	}
	return ""
}

// FreeFor returns what is free of a node for a job that keeps it to its user: jobs of the same kind and user do not
// count, all others do.
func (b *Resources) FreeFor(owner core.UserName, node *Node, view *View) Resources {
	free := *b
	if view.IfIdle {
		return free
	}
	if free.Exclusive -= b.UserExclusive; free.Exclusive > 0 || !node.isOnlyUsedBy(owner, view) {
		free.Exclusive = 1
		return free
	}
	free.Exclusive = 0
	return free
}

// isOnlyUsedBy reports whether all jobs on the node, while the new one would run, keep it to the same user.
func (node *Node) isOnlyUsedBy(owner core.UserName, view *View) bool {
	there := &node.Free
	if view.At != 0 && view.Later != nil {
		if f := view.Later.Find(node); f != nil {
			there = &f.Free
		}
	}
	if there.Allocs > there.UserExclusive || there.UserExclusive > 0 && node.user != owner {
		return false
	}
	if view.At == 0 && view.End == 0 { // reservations do not count
		return true
	}
	for _, c := range node.Reserved {
		meets := alloc.Overlaps(c.Start, view.End) && (view.At == 0 || c.Start > view.At || c.IsActive(view.At))
		if meets && c.User != owner {
			return false
		}
	}
	return true
}

// acceptsTerms reports whether a job may join those on a node.
func (node *Node) acceptsTerms(t alloc.Terms) bool {
	if t.User != "" && node.Free.Allocs > 0 {
		return !t.Exclusive && node.Free.Allocs == node.Free.UserExclusive &&
			node.Free.Exclusive == node.Free.UserExclusive &&
			node.user == t.User
	}
	return node.Free.Exclusive == 0 && (!t.Exclusive || node.Free.Allocs == 0)
}
