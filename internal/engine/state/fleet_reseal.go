package state

import (
	"bireme.dev/bireme/internal/engine/state/fleets"
)

// ResealFleet puts what is sealed in a fleet under another key. Nobody but the server itself asks for it. Reply: nil.
type ResealFleet struct {
	Name  string
	Texts map[string]string // sealed texts as they are, and as they will be; one that has changed meanwhile stays
	Runs  map[string]string // likewise for FleetHost.Runs: what an agent was started with names the sealed text
}

func (*ResealFleet) input() {}

func (in *ResealFleet) apply(s *State) (None, error) {
	f, ok := s.rec.Fleet(in.Name)
	if !ok {
		return none, nil // it left meanwhile
	}
	next, changed := fleets.Reseal(f, in.Texts, in.Runs)
	if changed {
		s.fleets.Store(next, "")
	}
	return none, nil
}
