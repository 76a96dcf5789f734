package state

import (
	"bireme.dev/bireme/internal/core"
)

// setPowerState notes that a node is on its way up, or else sleeps: going is for one that takes its time to. It is up
// when its agent says so.
func (s *State) setPowerState(next *core.Node, up, going bool) {
	next.Flags &^= core.Asleep | core.NodeSilent
	next.SilentSince = 0
	if next.Resume == 0 {
		next.Resume = s.cfg.ResumeTime
	}
	switch next.Ready, next.Due = 0, 0; {
	case up:
		next.Flags |= core.NodePoweringUp
		next.Ready, next.Due = s.view.now.Add(next.Resume.Duration()), s.deadlineIn(s.cfg.Power.ResumeTimeout)
	case going && s.cfg.Power.SuspendTimeout > 0:
		next.Flags |= core.NodePoweringDown
		next.Due = s.deadlineIn(s.cfg.Power.SuspendTimeout)
	default:
		next.Flags |= core.NodePoweredDown
	}
}

// powerUp wakes a node that sleeps. One that is on its way to sleep is woken when it does, and one that only should
// sleep stays up.
func (s *State) powerUp(next *core.Node) {
	switch {
	case next.Flags.Has(core.NodePowerDown):
		next.Flags &^= core.NodePowerDown
	case next.Flags.Has(core.NodePoweringDown):
		next.Flags |= core.NodePoweringUp
		next.Ready = next.Due.Add(next.Resume.Duration())
	case next.Flags.Has(core.NodePoweredDown):
		s.setPowerState(next, true, false)
	}
}

// poweredUp notes that a node that slept, or was being made, is there.
func poweredUp(n *core.Node) {
	n.Flags &^= core.Asleep
	n.Ready, n.Due = 0, 0
}

// completeOfferNode completes the record of a node of an offer that is being made: what it will be, and when.
func (s *State) completeOfferNode(n *core.Node) {
	for i := range s.cfg.Offers {
		if o := &s.cfg.Offers[i]; o.Name == n.Offer {
			if n.Hardware.CPUs == 0 {
				n.Hardware = o.Hardware
			}
			if n.Features == nil {
				n.Features = o.Features
			}
			n.Flags |= core.NodePoweringUp
			n.Resume = o.PowerUp
			n.Ready = s.view.now.Add(o.PowerUp.Duration())
		}
	}
}
