package state

import (
	"bireme.dev/bireme/internal/core"
)

// qosChanged notes what a QOS's change means for limits, for what its jobs cost and for priorities.
func (s *State) qosChanged(old, q *core.QOS) {
	s.limits.MarkStale()
	s.ranking.Soon()
	if old != nil && (q == nil || old.Factor() != q.Factor() || (old.Flags^q.Flags)&core.NoDecay != 0) || old == nil {
		s.charges.Recompute()
	}
}
