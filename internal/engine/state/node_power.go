package state

import (
	"bireme.dev/bireme/internal/core"
)

// setPowerState notes that a node is on its way up, or else sleeps: going is for one that takes its time to. It is up
// when its agent says so.
func (e *nodeEdit) setPowerState(up, going bool) {
	e.node.Flags &^= core.Asleep | core.NodeSilent
	e.node.SilentSince = 0
	if e.node.Resume == 0 {
		e.node.Resume = e.s.cfg.ResumeTime
	}
	switch e.node.Ready, e.node.Due = 0, 0; {
	case up:
		e.node.Flags |= core.NodePoweringUp
		e.node.Ready, e.node.Due = e.s.rec.Now().Add(e.node.Resume.Duration()), e.s.deadlineIn(e.s.cfg.Power.ResumeTimeout)
	case going && e.s.cfg.Power.SuspendTimeout > 0:
		e.node.Flags |= core.NodePoweringDown
		e.node.Due = e.s.deadlineIn(e.s.cfg.Power.SuspendTimeout)
	default:
		e.node.Flags |= core.NodePoweredDown
	}
}

// powerUp wakes a node that sleeps. One that is on its way to sleep is woken when it does, and one that only should
// sleep stays up.
func (e *nodeEdit) powerUp() {
	switch {
	case e.node.Flags.Has(core.NodePowerDown):
		e.node.Flags &^= core.NodePowerDown
	case e.node.Flags.Has(core.NodePoweringDown):
		e.node.Flags |= core.NodePoweringUp
		e.node.Ready = e.node.Due.Add(e.node.Resume.Duration())
	case e.node.Flags.Has(core.NodePoweredDown):
		e.setPowerState(true, false)
	}
}

// poweredUp notes that a node that slept, or was being made, is there.
func poweredUp(n *core.Node) {
	n.Flags &^= core.Asleep
	n.Ready, n.Due = 0, 0
}

// completeOffer completes the record of a node of an offer that is being made: what it will be, and when.
func (e *nodeEdit) completeOffer() {
	for i := range e.s.cfg.Offers {
		if o := &e.s.cfg.Offers[i]; o.Name == e.node.Offer {
			if e.node.Hardware.CPUs == 0 {
				e.node.Hardware = o.Hardware
			}
			if e.node.Features == nil {
				e.node.Features = o.Features
			}
			e.node.Flags |= core.NodePoweringUp
			e.node.Resume = o.PowerUp
			e.node.Ready = e.s.rec.Now().Add(o.PowerUp.Duration())
		}
	}
}
