package state

import (
	"maps"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
)

// system is who does what nobody asked for: a drain of ours, and its end.
const system core.UserName = "bireme"

// nodeActions are what can be asked of a node.
var nodeActions = []string{"drain", "undrain", "resume", "down", "fail", "future", "power_up", "power_down", "power_down_asap",
	"power_down_force", "reboot", "reboot_asap", "cancel_reboot"}

// steerNode makes of a node's record what is asked. Reasons are the caller's.
func (s *State) steerNode(next *core.Node, in *UpdateNode) error {
	switch in.State {
	case "drain", "down", "fail":
		if in.Reason == "" && next.Reason == "" {
			return core.Errorf(core.Invalid, "a node is taken out of service with a reason").Because("reason_required")
		}
		if next.ReasonBy == system && !in.System { // from here on it is not ours to take back
			next.ReasonBy, next.ReasonAt = in.By.User, s.view.now
		}
		switch in.State {
		case "drain":
			next.Flags |= core.NodeDrain
		case "fail":
			next.Flags |= core.NodeFailFlag
		case "down":
			next.Flags = next.Flags&^core.NodeDrain | core.NodeDown
		}
	case "undrain":
		next.Flags &^= core.NodeDrain
		if !next.Flags.Any(core.NodeDown | core.NodeFailFlag) {
			next.ResumeAt = 0
			s.well(next)
		}
	case "resume":
		s.resume(next)
	case "future":
		if err := s.mustBeEmpty(next); err != nil {
			return err
		}
		next.Flags |= core.NodeFuture
	case "power_up":
		s.powerUp(next)
	case "power_down", "power_down_asap", "power_down_force":
		if next.Flags &^= core.NodePoweringUp; !next.Flags.Any(core.Asleep) {
			next.Flags |= core.NodePowerDown // it goes now, if it is empty: see emptied
		}
	case "reboot", "reboot_asap":
		return s.askReboot(next, in)
	case "cancel_reboot":
		if !next.Flags.Has(core.NodeReboot) {
			return core.Errorf(core.Conflict, "node %s does not wait for a restart", next.Name).Because("no_reboot")
		}
		s.endRestart(next)
	case "":
	default:
		if in.System {
			s.failed(next, in.State)
			return nil
		}
		return core.Errorf(core.Invalid, "node state %q: there are %s", in.State, strings.Join(nodeActions, ", ")).Because("invalid_node_state")
	}
	return nil
}

// outdated tells whether it is news no more that a node could not be restarted or woken.
func outdated(n *core.Node, in *UpdateNode) bool {
	return in.System && (in.State == "reboot_failed" && !n.Flags.Has(core.NodeRebooting) || in.State == "resume_failed" && !n.Flags.Has(core.NodePoweringUp))
}

// failed follows from what we were told to do with a node and could not. The reason is the caller's.
func (s *State) failed(n *core.Node, what string) {
	switch what {
	case "reboot_failed":
		s.endRestart(n)
		n.Flags |= core.NodeDrain
	case "resume_failed":
		poweredUp(n)
		n.Flags |= core.NodeDown
	}
}

// resume takes a node back into service, whatever was said of it.
func (s *State) resume(next *core.Node) {
	next.Flags &^= core.NodeDrain | core.NodeDown | core.NodeFailFlag | core.NodeFuture | core.NodePowerDown | core.NodeReboot | core.NodeRebooting
	next.Restart, next.ResumeAt, next.Leaving = nil, 0, false
	poweredUp(next)
	s.well(next)
}

func (s *State) mustBeEmpty(n *core.Node) error {
	if len(s.onNode[n.Name]) > 0 {
		return core.Errorf(core.Conflict, "jobs run on node %s", n.Name).Because("node_busy")
	}
	return nil
}

// well forgets what was wrong with a node; what still is will be told again.
func (s *State) well(n *core.Node) {
	n.Reason, n.ReasonBy, n.ReasonAt = "", "", 0
	n.Hardware.Sick, n.Faults = nil, nil
}

// askReboot has a node restart when it is empty. One that is to hurry gets no new jobs meanwhile.
func (s *State) askReboot(next *core.Node, in *UpdateNode) error {
	switch {
	case next.Flags.Has(core.NodeUnknown):
		return core.Errorf(core.Conflict, "node %s has never been heard of: nobody could restart it", next.Name).Because("node_unknown")
	case in.Next != "" && in.Next != "resume" && in.Next != "down":
		return core.Errorf(core.Invalid, "next state %q: a node that was restarted is made to resume or down", in.Next).Because("invalid_node_state")
	case next.Flags.Has(core.NodeRebooting):
		return core.Errorf(core.Conflict, "node %s restarts already", next.Name).Because("node_rebooting")
	}
	hurry := in.State == "reboot_asap"
	r := &core.Restart{Next: in.Next, ASAP: next.Restart != nil && next.Restart.ASAP}
	next.Flags |= core.NodeReboot
	if hurry && !next.Flags.Has(core.NodeDrain) {
		r.ASAP = true
		next.Flags |= core.NodeDrain
		if next.Reason == "" {
			next.Reason, next.ReasonBy, next.ReasonAt = "Reboot ASAP", in.By.User, s.view.now // as Slurm words it
		}
	}
	next.Restart = r
	return nil
}

// endRestart undoes what asking for a restart did.
func (s *State) endRestart(n *core.Node) {
	if n.Restart != nil && n.Restart.ASAP {
		n.Flags &^= core.NodeDrain
	}
	n.Flags &^= core.NodeReboot | core.NodeRebooting
	n.Restart, n.Due = nil, 0
	if !n.Flags.Any(core.NodeDrain | core.NodeDown | core.NodeFailFlag) {
		n.Reason, n.ReasonBy, n.ReasonAt = "", "", 0
	}
}

// restarted takes a node that has come back with a new boot id to the state that was asked for.
func (s *State) restarted(n *core.Node) {
	r := n.Restart
	if r == nil {
		return
	}
	reason, by := n.Reason, n.ReasonBy
	s.endRestart(n)
	switch r.Next {
	case "resume":
		n.Flags &^= core.NodeDrain | core.NodeDown | core.NodeFailFlag
		s.well(n)
	case "down":
		n.Flags |= core.NodeDown
		n.Reason, n.ReasonBy, n.ReasonAt = reason, by, s.view.now
		if reason == "" {
			n.Reason, n.ReasonBy = "down after its restart, as was asked", system
		}
	}
}

// await notes whether something is to be done with a node when it is empty.
func (s *State) await(n *core.Node) {
	if n.Flags.Any(core.NodeReboot|core.NodePowerDown) || n.Leaving {
		s.awaited[n.Name] = struct{}{}
	} else {
		delete(s.awaited, n.Name)
	}
}

// emptied does with nodes that have become empty what waited for that.
func (s *State) emptied() {
	if len(s.awaited) == 0 {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(s.awaited)) {
		n, ok := s.view.Node(name)
		if !ok {
			delete(s.awaited, name)
			continue
		}
		if len(s.onNode[name]) > 0 {
			continue
		}
		if n.Leaving {
			s.removeNode(name, "")
			continue
		}
		next := *n
		if n.Flags.Has(core.NodeReboot) {
			next.Flags = next.Flags&^core.NodeReboot | core.NodeRebooting
			next.Due = s.within(s.cfg.Power.RebootTimeout)
		}
		if n.Flags.Has(core.NodePowerDown) {
			next.Flags &^= core.NodePowerDown
			s.power(&next, false, true)
		}
		s.putNode(&next)
		s.event(core.NodeChanged, core.Event{Node: name, By: system, Data: nodeData(&next)})
	}
}

// NodeHealth tells what is wrong with a node as a whole. What drains does so unless somebody else has; Return lets a node that
// was drained so come back when nothing of it is left, otherwise an administrator says so. Reply: nil.
type NodeHealth struct {
	Node   core.NodeName
	Faults []core.NodeFault
	Return bool
}

func (*NodeHealth) input() {}

func (s *State) nodeHealth(in *NodeHealth) error {
	n, ok := s.view.Node(in.Node)
	if !ok {
		return nil
	}
	faults := slices.DeleteFunc(slices.Clone(in.Faults), func(f core.NodeFault) bool { return !f.Drain })
	for _, f := range n.Faults {
		// Of one check the last word holds: a program may say something else each time.
		if !in.Return && !slices.ContainsFunc(in.Faults, func(o core.NodeFault) bool { return o.Check == f.Check && o.Drain }) {
			faults = append(faults, f)
		}
	}
	if slices.Equal(faults, n.Faults) {
		return nil
	}
	next := *n
	next.Faults = faults
	s.treat(n, &next, in.Return)
	s.putNode(&next)
	s.event(core.NodeChanged, core.Event{Node: n.Name, By: system, Data: nodeData(&next)})
	return nil
}

// treat drains a node for what ails it, and takes that drain back when nothing does. A drain or down that is somebody else's, or
// has another reason, stays as it is.
func (s *State) treat(n, next *core.Node, back bool) {
	was, is := ailment(n), ailment(next)
	ours := n.ReasonBy == system && was != "" && n.Reason == was
	switch {
	case is != "" && (ours || !n.Flags.Any(core.NodeDrain|core.NodeDown)):
		next.Flags |= core.NodeDrain
		next.Reason, next.ReasonBy, next.ReasonAt = is, system, s.view.now
	case is == "" && ours && back:
		next.Flags &^= core.NodeDrain
		next.Reason, next.ReasonBy, next.ReasonAt = "", "", 0
	}
}

// ailment is why a node is not to be used, in one line; empty: it is well enough.
func ailment(n *core.Node) string {
	var out []string
	if allSick(&n.Hardware) {
		out = append(out, core.SickText(n.Hardware.Sick))
	}
	if len(n.Faults) > 0 {
		out = append(out, core.FaultText(n.Faults))
	}
	return strings.Join(out, "; ")
}
