package state

import (
	"slices"

	"bireme.dev/bireme/internal/core"
)

// ResealFleet puts what is sealed in a fleet under another key. Nobody but the server itself asks for it. Reply: nil.
type ResealFleet struct {
	Name  string
	Texts map[string]string // sealed texts as they are, and as they will be; one that has changed meanwhile stays
	Runs  map[string]string // likewise for FleetHost.Runs: what an agent was started with names the sealed text
}

func (*ResealFleet) input() {}

func (in *ResealFleet) apply(s *State) (None, error) {
	f, ok := s.view.fleets[in.Name]
	if !ok {
		return none, nil // it left meanwhile
	}
	next, changed := ResealedFleet(f, in)
	if changed {
		s.putFleetRecord(next, "")
	}
	return none, nil
}

// ResealedFleet is a fleet with its sealed texts replaced.
func ResealedFleet(f *core.Fleet, in *ResealFleet) (*core.Fleet, bool) {
	next, changed := *f, false
	next.Keys, next.Hosts = slices.Clone(f.Keys), slices.Clone(f.Hosts)
	put := func(at *string, by map[string]string) {
		if text, ok := by[*at]; ok && *at != "" {
			*at, changed = text, true
		}
	}
	put(&next.Env.Sealed, in.Texts)
	for i := range next.Keys {
		put(&next.Keys[i].Sealed, in.Texts)
	}
	for i := range next.Hosts {
		put(&next.Hosts[i].Runs, in.Runs)
	}
	return &next, changed
}
