package sched

import "bireme.dev/bireme/internal/sched/cluster"

// noNodeHasRoom reports whether no node has enough free for one task of a class, ignoring reservations. With preemption
// nodes may get more during a pass, so it reports false then.
func (ps *pass) noNodeHasRoom(s *partitionClass) bool {
	return ps.p.preemption == nil && ps.p.nodes.NoneHasRoom(&s.Candidates, &s.req, ps.p.refusalEpoch)
}

// isCountable reports whether the number of nodes of each kind decides whether the class could run.
func (s *partitionClass) isCountable() bool {
	return cluster.IsCountable(&s.req) && s.Advance == nil && len(s.options) == 0 && !s.namesAdvance
}
