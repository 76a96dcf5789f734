package state

import (
	"maps"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/live"
)

// Why a node is down that was waited for in vain. As Slurm 22.05 words the first two.
const (
	reasonResumeTimeout = "ResumeTimeout reached"
	reasonRebootTimeout = "reboot timed out"
	reasonResumeFailed  = "ResumeProgram failed"
)

// nodeTimers knows when time alone changes nodes.
type nodeTimers struct {
	at        map[core.NodeName]core.Time
	keptAwake map[core.NodeName]bool // by Power.Except and ExceptParts; nil: not worked out
	next      core.Time              // the first of at, unless stale
	stale     bool
}

// setNodeTimer notes when time alone changes a node.
func (s *State) setNodeTimer(n *core.Node) {
	c := &s.nodeTimers
	at := live.Sooner(n.Due, n.ResumeAt)
	if s.cfg.Power.SuspendTime > 0 {
		if s.nodeIsIdle(n) && !s.isKeptAwake(n.Name) {
			at = live.Sooner(at, n.LastBusy.Add(s.cfg.Power.SuspendTime.Duration()))
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

// nodeIsIdle tells whether a node is up and nobody uses it.
func (s *State) nodeIsIdle(n *core.Node) bool {
	return len(s.cluster.OnNode(n.Name)) == 0 && n.Flags == 0 && n.Roles&core.Compute != 0 && n.Offer == ""
}

// updateIdleTimes notes since when nodes are idle that were not. It is only kept where something follows from it: a
// record more for each job.
func (s *State) updateIdleTimes() {
	if len(s.cluster.OccupancyChanges()) == 0 {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(s.cluster.OccupancyChanges())) {
		n, ok := s.rec.Node(name)
		switch {
		case !ok:
		case s.nodeIsIdle(n):
			edit := s.editNode(n)
			edit.node.LastBusy = s.rec.Now()
			edit.CommitSilently()
		default:
			s.setNodeTimer(n)
		}
	}
	s.cluster.ClearOccupancyChanges()
}

// isKeptAwake tells whether a node does not go to sleep by itself.
func (s *State) isKeptAwake(name core.NodeName) bool {
	c := &s.nodeTimers
	if c.keptAwake == nil {
		c.keptAwake = map[core.NodeName]bool{}
		for n := range s.cluster.Expand(s.cfg.Power.Except) {
			c.keptAwake[n] = true
		}
		for _, part := range s.cfg.Power.ExceptParts {
			if p := s.cluster.Partitions[part]; p != nil {
				for n := range s.rec.Nodes() {
					if p.Nodes == nil || p.Nodes[n.Name] {
						c.keptAwake[n.Name] = true
					}
				}
			}
		}
	}
	return c.keptAwake[name]
}

// resetNodeTimers sets all clocks anew, as the settings have them now.
func (s *State) resetNodeTimers() {
	c := &s.nodeTimers
	c.keptAwake = nil
	s.cluster.ClearOccupancyChanges()
	for n := range s.rec.Nodes() {
		s.setNodeTimer(n)
	}
}

// nextNodeTimer is when time first changes a node; 0: never.
func (s *State) nextNodeTimer() core.Time {
	c := &s.nodeTimers
	if c.stale {
		c.stale, c.next = false, 0
		for _, t := range c.at {
			c.next = live.Sooner(c.next, t)
		}
	}
	return c.next
}

// runNodeTimers does with nodes what time brings.
func (s *State) runNodeTimers() {
	if at := s.nextNodeTimer(); at == 0 || at > s.rec.Now() {
		return
	}
	var due []core.NodeName
	for name, at := range s.nodeTimers.at {
		if at <= s.rec.Now() {
			due = append(due, name)
		}
	}
	slices.Sort(due)
	for _, name := range due {
		n, ok := s.rec.Node(name)
		if !ok {
			delete(s.nodeTimers.at, name)
			s.nodeTimers.stale = true
			continue
		}
		edit := s.editNode(n)
		edit.timerExpired()
		edit.Commit(systemUser)
	}
}

// timerExpired changes a node whose time has come.
func (e *nodeEdit) timerExpired() {
	up := func(at core.Time) bool { return at != 0 && at <= e.s.rec.Now() }
	switch {
	case up(e.node.ResumeAt):
		e.resume()
	case up(e.node.Due) && e.node.Flags.Has(core.NodePoweringDown):
		e.setPowerState(e.node.Flags.Has(core.NodePoweringUp), false)
	case up(e.node.Due) && e.node.Flags.Has(core.NodePoweringUp):
		poweredUp(e.node)
		e.markLate(reasonResumeTimeout)
	case up(e.node.Due) && e.node.Flags.Has(core.NodeRebooting):
		e.clearRestart()
		e.markLate(reasonRebootTimeout)
	case up(e.node.Due):
		e.node.Due = 0
	default: // it has been idle for long enough
		e.node.Flags |= core.NodePowerDown
	}
}

// markLate takes a node out of service for which was waited in vain.
func (e *nodeEdit) markLate(why string) {
	e.node.Flags |= core.NodeDown
	e.node.Reason, e.node.ReasonBy, e.node.ReasonAt = why, systemUser, e.s.rec.Now()
}

// clearLate takes back that a node was late, now that it is there, or has restarted after all.
func (e *nodeEdit) clearLate(rebooted bool) {
	late := e.node.Reason == reasonResumeTimeout || strings.HasPrefix(e.node.Reason, reasonResumeFailed) ||
		e.node.Reason == reasonRebootTimeout && rebooted
	if e.s.cfg.Power.Return && e.node.Flags.Has(core.NodeDown) && e.node.ReasonBy == systemUser && late {
		e.node.Flags &^= core.NodeDown
		e.node.Reason, e.node.ReasonBy, e.node.ReasonAt = "", "", 0
	}
}

// deadlineIn is the moment until which something may take that long; 0: as long as it likes.
func (s *State) deadlineIn(d core.Seconds) core.Time {
	if d == 0 {
		return 0
	}
	return s.rec.Now().Add(d.Duration())
}
