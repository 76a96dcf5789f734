package nodes

import (
	"maps"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/live"
)

// Why a node is down that was waited for without effect. As Slurm 22.05 words the first two.
const (
	reasonResumeTimeout = "ResumeTimeout reached"
	reasonRebootTimeout = "reboot timed out"
	reasonResumeFailed  = "ResumeProgram failed"
)

// timers knows when time alone changes nodes.
type timers struct {
	at        map[core.NodeName]core.Time
	keptAwake map[core.NodeName]bool // by Power.Except and ExceptParts; nil: not worked out
	next      core.Time              // the first of at, unless stale
	stale     bool
}

// setTimer notes when time alone changes a node.
func (ed *Editor) setTimer(n *core.Node) {
	c := &ed.timers
	at := live.Sooner(n.Due, n.ResumeAt)
	if ed.cfg.Power.SuspendTime > 0 {
		if ed.isIdle(n) && !ed.isKeptAwake(n.Name) {
			at = live.Sooner(at, n.LastBusy.Add(ed.cfg.Power.SuspendTime.Duration()))
		}
	}
	if at == c.at[n.Name] {
		return
	}
	if c.stale = true; at == 0 {
		delete(c.at, n.Name)
		return
	}
	c.at[n.Name] = at
}

// isIdle reports whether a node is up and nobody uses it.
func (ed *Editor) isIdle(n *core.Node) bool {
	return len(ed.cluster.OnNode(n.Name)) == 0 && n.Flags == 0 && n.Roles&core.Compute != 0 && n.Offer == ""
}

// UpdateIdleTimes notes since when nodes are idle that were not. It is only kept where something follows from it: a
// record more for each job.
func (ed *Editor) UpdateIdleTimes() {
	if len(ed.cluster.OccupancyChanges()) == 0 {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(ed.cluster.OccupancyChanges())) {
		n, ok := ed.rec.Node(name)
		switch {
		case !ok:
		case ed.isIdle(n):
			edit := ed.Edit(n)
			edit.Node.LastBusy = ed.rec.Now()
			edit.CommitSilently()
		default:
			ed.setTimer(n)
		}
	}
	ed.cluster.ClearOccupancyChanges()
}

// isKeptAwake reports whether a node does not go to sleep by itself.
func (ed *Editor) isKeptAwake(name core.NodeName) bool {
	c := &ed.timers
	if c.keptAwake == nil {
		c.keptAwake = map[core.NodeName]bool{}
		for n := range ed.cluster.Expand(ed.cfg.Power.Except) {
			c.keptAwake[n] = true
		}
		for _, part := range ed.cfg.Power.ExceptParts {
			if p := ed.cluster.Partitions[part]; p != nil {
				for n := range ed.rec.Nodes() {
					if p.Nodes == nil || p.Nodes[n.Name] {
						c.keptAwake[n.Name] = true
					}
				}
			}
		}
	}
	return c.keptAwake[name]
}

// ResetTimers sets all clocks again, as the settings have them now.
func (ed *Editor) ResetTimers() {
	c := &ed.timers
	c.keptAwake = nil
	ed.cluster.ClearOccupancyChanges()
	for n := range ed.rec.Nodes() {
		ed.setTimer(n)
	}
}

// NextTimer is when time first changes a node; 0: never.
func (ed *Editor) NextTimer() core.Time {
	c := &ed.timers
	if c.stale {
		c.stale, c.next = false, 0
		for _, t := range c.at {
			c.next = live.Sooner(c.next, t)
		}
	}
	return c.next
}

// RunTimers does with nodes what time brings.
func (ed *Editor) RunTimers() {
	if at := ed.NextTimer(); at == 0 || at > ed.rec.Now() {
		return
	}
	var due []core.NodeName
	for name, at := range ed.timers.at {
		if at <= ed.rec.Now() {
			due = append(due, name)
		}
	}
	slices.Sort(due)
	for _, name := range due {
		n, ok := ed.rec.Node(name)
		if !ok {
			delete(ed.timers.at, name)
			ed.timers.stale = true
			continue
		}
		edit := ed.Edit(n)
		edit.timerExpired()
		edit.Commit(SystemUser)
	}
}

// timerExpired changes a node whose time has come.
func (e *Edit) timerExpired() {
	up := func(at core.Time) bool { return at != 0 && at <= e.ed.rec.Now() }
	switch {
	case up(e.Node.ResumeAt):
		e.resume()
	case up(e.Node.Due) && e.Node.Flags.Has(core.NodePoweringDown):
		e.setPowerState(e.Node.Flags.Has(core.NodePoweringUp), false)
	case up(e.Node.Due) && e.Node.Flags.Has(core.NodePoweringUp):
		PoweredUp(e.Node)
		e.markLate(reasonResumeTimeout)
	case up(e.Node.Due) && e.Node.Flags.Has(core.NodeRebooting):
		e.clearRestart()
		e.markLate(reasonRebootTimeout)
	case up(e.Node.Due):
		e.Node.Due = 0
	default: // it has been idle for long enough
		e.Node.Flags |= core.NodePowerDown
	}
}

// markLate takes a node out of service for which was waited without effect.
func (e *Edit) markLate(why string) {
	e.Node.Flags |= core.NodeDown
	e.Node.Reason, e.Node.ReasonBy, e.Node.ReasonAt = why, SystemUser, e.ed.rec.Now()
}

// ClearLate takes back that a node was late, now that it is there, or has restarted after all.
func (e *Edit) ClearLate(rebooted bool) {
	late := e.Node.Reason == reasonResumeTimeout || strings.HasPrefix(e.Node.Reason, reasonResumeFailed) ||
		e.Node.Reason == reasonRebootTimeout && rebooted
	if e.ed.cfg.Power.Return && e.Node.Flags.Has(core.NodeDown) && e.Node.ReasonBy == SystemUser && late {
		e.Node.Flags &^= core.NodeDown
		e.Node.Reason, e.Node.ReasonBy, e.Node.ReasonAt = "", "", 0
	}
}

// deadlineIn is the moment until which something may take that long; 0: as long as it likes.
func (ed *Editor) deadlineIn(d core.Seconds) core.Time {
	if d == 0 {
		return 0
	}
	return ed.rec.Now().Add(d.Duration())
}
