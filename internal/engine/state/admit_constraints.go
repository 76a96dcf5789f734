package state

import (
	"fmt"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/engine/state/speccheck"
	"bireme.dev/bireme/internal/sched/fit"
)

// admitConstraints reads what a job asks of its nodes as a whole.
func (s *State) admitConstraints(x *core.Extra) error {
	for _, text := range []string{x.Constraint, x.Prefer} {
		if text == "" {
			continue
		}
		if _, err := grammar.ParseConstraint(text); err != nil {
			return core.Errorf(core.Invalid, "%v", err).Because("invalid_feature")
		}
	}
	if x.Switches != "" {
		if _, _, err := grammar.ParseSwitches(x.Switches); err != nil {
			return core.Errorf(core.Invalid, "%v", err).Because("invalid_switches")
		}
	}
	return nil
}

// admitSegment refuses node counts that are no whole number of segments.
func (s *State) admitSegment(spec *core.Spec) error {
	k, sh := spec.More().Segment, &spec.Shape
	switch {
	case k == 0:
		return nil
	case s.cfg.Topology != nil && s.cfg.Topology.Kind == core.TopologyTree:
		return core.Errorf(core.Invalid,
			"--segment=%d: the topology is a tree of switches and has no blocks; --switches keeps nodes near each other here",
			k).Because("segment")
	case k < 0 || k > speccheck.MaxNodes:
		return core.Errorf(core.Invalid, "segment: %d must be 1 or more", k).Because("invalid_shape")
	case max(1, sh.NodesMin)%k != 0:
		return core.Errorf(core.Invalid, "nodes: %d is not a multiple of the segment size %d", max(1, sh.NodesMin),
			k).Because("invalid_shape")
	}
	return nil
}

// checkFeaturesExist refuses features that no node has, also where another would do.
func (s *State) checkFeaturesExist(spec *core.Spec) *fit.Unsatisfiable {
	x := spec.Extra
	if x == nil {
		return nil
	}
	for _, text := range [...]string{x.Constraint, x.Prefer} {
		if text == "" {
			continue
		}
		c, err := grammar.ParseConstraint(text)
		if err != nil {
			continue // admitConstraints has refused it
		}
		for _, name := range c.Names() {
			if !s.featureExists(name) {
				return &fit.Unsatisfiable{Reason: "invalid_feature", Text: fmt.Sprintf("no node has the feature %q", name)}
			}
		}
	}
	return nil
}

func (s *State) featureExists(name string) bool {
	for n := range s.rec.Nodes() {
		if slices.Contains(n.Features, name) {
			return true
		}
	}
	return false
}
