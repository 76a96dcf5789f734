package sched

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/alloc"
)

// A job may keep its nodes to its user (--exclusive=user, or a partition that does so for all its jobs): only jobs of
// the same user that say so too are beside it. To all others such a job is one that has the node whole, which costs
// them nothing to know; who has a node is looked at for these jobs alone.

// ownerOf gives the user whose the nodes of a job would be in a partition; "": nobody's.
func ownerOf(s *core.Spec, part *core.Partition) core.UserName {
	if s.Shape.Wide().ExclusiveUser || part.ExclusiveUser {
		return s.User
	}
	return ""
}

// exclusiveUserKey is what of that makes classes differ.
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
