package state

import (
	"bireme.dev/bireme/internal/core"
)

// power notes that a node goes to sleep, or is on its way up. It is up when its agent says so.
func (s *State) power(next *core.Node, up bool) {
	next.Flags &^= core.NodePoweredDown | core.NodePoweringUp
	if next.Resume == 0 {
		next.Resume = s.cfg.ResumeTime
	}
	if next.Ready = 0; up {
		next.Flags |= core.NodePoweringUp
		next.Ready = s.view.now.Add(next.Resume.Duration())
		return
	}
	next.Flags |= core.NodePoweredDown
}

// poweredUp notes that a node that slept, or was being made, is there.
func poweredUp(n *core.Node) {
	n.Flags &^= core.NodePoweredDown | core.NodePoweringUp
	n.Ready = 0
}

// made completes the record of a node of an offer that is being made: what it will be, and when.
func (s *State) made(n *core.Node) {
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
