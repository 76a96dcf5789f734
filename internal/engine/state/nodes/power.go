package nodes

import "bireme.dev/bireme/internal/core"

// setPowerState notes that a node is on its way up, or else sleeps: going is for one that takes its time to. It is up
// when its agent says so.
func (e *Edit) setPowerState(up, going bool) {
	e.Node.Flags &^= core.Asleep | core.NodeSilent
	e.Node.SilentSince = 0
	if e.Node.Resume == 0 {
		e.Node.Resume = e.ed.cfg.ResumeTime
	}
	switch e.Node.Ready, e.Node.Due = 0, 0; {
	case up:
		e.Node.Flags |= core.NodePoweringUp
		e.Node.Ready, e.Node.Due = e.ed.rec.Now().Add(e.Node.Resume.Duration()), e.ed.deadlineIn(e.ed.cfg.Power.ResumeTimeout)
	case going && e.ed.cfg.Power.SuspendTimeout > 0:
		e.Node.Flags |= core.NodePoweringDown
		e.Node.Due = e.ed.deadlineIn(e.ed.cfg.Power.SuspendTimeout)
	default:
		e.Node.Flags |= core.NodePoweredDown
	}
}

// powerUp wakes a node that sleeps. One that is on its way to sleep is woken when it does, and one that only should
// sleep stays up.
func (e *Edit) powerUp() {
	switch {
	case e.Node.Flags.Has(core.NodePowerDown):
		e.Node.Flags &^= core.NodePowerDown
	case e.Node.Flags.Has(core.NodePoweringDown):
		e.Node.Flags |= core.NodePoweringUp
		e.Node.Ready = e.Node.Due.Add(e.Node.Resume.Duration())
	case e.Node.Flags.Has(core.NodePoweredDown):
		e.setPowerState(true, false)
	}
}

// PoweredUp notes that a node that slept, or was being made, is there.
func PoweredUp(n *core.Node) {
	n.Flags &^= core.Asleep
	n.Ready, n.Due = 0, 0
}

// CompleteOffer completes the record of a node of an offer that is being made: what it will be, and when.
func (e *Edit) CompleteOffer() {
	for i := range e.ed.cfg.Offers {
		if o := &e.ed.cfg.Offers[i]; o.Name == e.Node.Offer {
			if e.Node.Hardware.CPUs == 0 {
				e.Node.Hardware = o.Hardware
			}
			if e.Node.Features == nil {
				e.Node.Features = o.Features
			}
			e.Node.Flags |= core.NodePoweringUp
			e.Node.Resume = o.PowerUp
			e.Node.Ready = e.ed.rec.Now().Add(o.PowerUp.Duration())
		}
	}
}
