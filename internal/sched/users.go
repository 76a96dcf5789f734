package sched

import (
	"maps"

	"bireme.dev/bireme/internal/core"
)

// A node whose agent is not root runs the jobs of its own user only, and one of a project's fleet those of the
// project. Only the jobs of users and projects that have such nodes are in classes of their own.

// keptOwners are the users and projects that have nodes of their own. It is a value: plans keep it.
type keptOwners struct {
	users    map[uint32]bool
	projects map[core.ProjectName]bool
}

func (k *keptOwners) key(s *core.Spec) (uid uint32, project core.ProjectName) {
	if k.users[s.UID] {
		uid = s.UID
	}
	if k.projects[s.Project] {
		project = s.Project
	}
	return uid, project
}

// setKeptOwners updates which users and projects have nodes of their own. Their jobs move to another class if that
// changed.
func (p *Planner) setKeptOwners() {
	now := &p.classes.kept
	if maps.EqualFunc(p.ledger.KeptUsers, now.users, func(int, bool) bool { return true }) &&
		maps.EqualFunc(p.ledger.KeptProjects, now.projects, func(int, bool) bool { return true }) {
		return
	}
	next := keptOwners{users: map[uint32]bool{}, projects: map[core.ProjectName]bool{}}
	for uid := range p.ledger.KeptUsers {
		next.users[uid] = true
	}
	for name := range p.ledger.KeptProjects {
		next.projects[name] = true
	}
	var moved []*core.Job
	for _, w := range p.pending {
		if w.class == nil {
			continue
		}
		uid, project := next.key(w.job.Spec)
		if wasUID, was := now.key(w.job.Spec); uid != wasUID || project != was {
			moved = append(moved, w.job)
		}
	}
	for _, j := range moved {
		p.removePending(p.pending[j.ID])
	}
	p.classes.setRules(func(r *classRules) { r.kept = next })
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
	for name := range s.Partition.All() {
		if part := cs.partitions[name]; part != nil && part.ExclusiveUser {
			return s.User
		}
	}
	return ""
}
