package state

import (
	"maps"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
)

// Power says when nodes go to sleep, and how long they may take to do so, to be back, or to restart.
type Power struct {
	SuspendTime    core.Seconds         // a node that has been idle for so long is put to sleep; 0: never
	SuspendTimeout core.Seconds         // that it takes to sleep; 0: no time
	ResumeTimeout  core.Seconds         // within which one that is woken must be there; 0: whenever it is
	RebootTimeout  core.Seconds         // likewise, one that restarts
	Except         string               // nodes that are not put to sleep by themselves
	ExceptParts    []core.PartitionName // whose nodes are not, either
	Wakes          bool                 // somebody wakes nodes: they are when a job needs them
	Return         bool                 // a node that was late for that is back in service when it comes
}

// Why a node is down that was waited for in vain. As Slurm 22.05 words the first two.
const (
	lateWaking    = "ResumeTimeout reached"
	lateRebooting = "reboot timed out"
	neverWoken    = "ResumeProgram failed"
)

// nodeClock knows when time alone changes nodes.
type nodeClock struct {
	at    map[core.NodeName]core.Time
	moved map[core.NodeName]struct{} // jobs came to these nodes, or left them, with Power.SuspendTime
	kept  map[core.NodeName]bool     // by Power.Except and ExceptParts; nil: not worked out
	wake  core.Time                  // the first of at, unless stale
	stale bool
}

// setClock notes when time alone changes a node.
func (s *State) setClock(n *core.Node) {
	c := &s.clock
	at := sooner(n.Due, n.ResumeAt)
	if s.cfg.Power.SuspendTime > 0 {
		if s.rests(n) && !s.keptAwake(n.Name) {
			at = sooner(at, n.LastBusy.Add(s.cfg.Power.SuspendTime.Duration()))
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

// rests tells whether a node is up and nobody uses it.
func (s *State) rests(n *core.Node) bool {
	return len(s.onNode[n.Name]) == 0 && n.Flags == 0 && n.Roles&core.Compute != 0 && n.Offer == ""
}

// occupied notes that a job comes to a node or leaves it.
func (s *State) occupied(name core.NodeName) {
	if s.cfg.Power.SuspendTime > 0 {
		s.clock.moved[name] = struct{}{}
	}
}

// idled notes since when nodes are idle that were not. It is only kept where something follows from it: a record more for each job.
func (s *State) idled() {
	if len(s.clock.moved) == 0 {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(s.clock.moved)) {
		n, ok := s.view.Node(name)
		switch {
		case !ok:
		case s.rests(n):
			next := *n
			next.LastBusy = s.view.now
			s.putNode(&next)
		default:
			s.setClock(n)
		}
	}
	clear(s.clock.moved)
}

// keptAwake tells whether a node does not go to sleep by itself.
func (s *State) keptAwake(name core.NodeName) bool {
	c := &s.clock
	if c.kept == nil {
		c.kept = map[core.NodeName]bool{}
		for n := range s.names.expand(s.cfg.Power.Except) {
			c.kept[n] = true
		}
		for _, part := range s.cfg.Power.ExceptParts {
			if p := s.parts[part]; p != nil {
				for _, n := range s.view.nodes.All() {
					if p.nodes == nil || p.nodes[n.Name] {
						c.kept[n.Name] = true
					}
				}
			}
		}
	}
	return c.kept[name]
}

// rewind sets all clocks anew, as the settings have them now.
func (s *State) rewind() {
	c := &s.clock
	c.kept = nil
	clear(c.moved)
	for _, n := range s.view.nodes.All() {
		s.setClock(n)
	}
}

// nodeWake is when time first changes a node; 0: never.
func (s *State) nodeWake() core.Time {
	c := &s.clock
	if c.stale {
		c.stale, c.wake = false, 0
		for _, t := range c.at {
			c.wake = sooner(c.wake, t)
		}
	}
	return c.wake
}

// tickNodes does with nodes what time brings.
func (s *State) tickNodes() {
	if at := s.nodeWake(); at == 0 || at > s.view.now {
		return
	}
	var due []core.NodeName
	for name, at := range s.clock.at {
		if at <= s.view.now {
			due = append(due, name)
		}
	}
	slices.Sort(due)
	for _, name := range due {
		n, ok := s.view.Node(name)
		if !ok {
			delete(s.clock.at, name)
			s.clock.stale = true
			continue
		}
		next := *n
		s.timeUp(&next)
		s.putNode(&next)
		s.event(core.NodeChanged, core.Event{Node: name, By: system, Data: nodeData(&next)})
	}
}

// timeUp changes a node whose time has come.
func (s *State) timeUp(n *core.Node) {
	up := func(at core.Time) bool { return at != 0 && at <= s.view.now }
	switch {
	case up(n.ResumeAt):
		s.resume(n)
	case up(n.Due) && n.Flags.Has(core.NodePoweringDown):
		s.power(n, n.Flags.Has(core.NodePoweringUp), false)
	case up(n.Due) && n.Flags.Has(core.NodePoweringUp):
		poweredUp(n)
		s.late(n, lateWaking)
	case up(n.Due) && n.Flags.Has(core.NodeRebooting):
		s.endRestart(n)
		s.late(n, lateRebooting)
	case up(n.Due):
		n.Due = 0
	default: // it has been idle for long enough
		n.Flags |= core.NodePowerDown
	}
}

// late takes a node out of service for which was waited in vain.
func (s *State) late(n *core.Node, why string) {
	n.Flags |= core.NodeDown
	n.Reason, n.ReasonBy, n.ReasonAt = why, system, s.view.now
}

// cameLate takes back that a node was late, now that it is there, or has restarted after all.
func (s *State) cameLate(n *core.Node, rebooted bool) {
	late := n.Reason == lateWaking || strings.HasPrefix(n.Reason, neverWoken) || n.Reason == lateRebooting && rebooted
	if s.cfg.Power.Return && n.Flags.Has(core.NodeDown) && n.ReasonBy == system && late {
		n.Flags &^= core.NodeDown
		n.Reason, n.ReasonBy, n.ReasonAt = "", "", 0
	}
}

// within is the moment until which something may take that long; 0: as long as it likes.
func (s *State) within(d core.Seconds) core.Time {
	if d == 0 {
		return 0
	}
	return s.view.now.Add(d.Duration())
}
