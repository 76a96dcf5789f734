package state

import (
	"maps"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
)

// systemUser is who does what nobody asked for: a drain of ours, and its end.
const systemUser core.UserName = "bireme"

// nodeVerbs are what can be asked of a node.
var nodeVerbs = []string{"drain", "undrain", "resume", "down", "fail", "future", "power_up", "power_down",
	"power_down_asap",
	"power_down_force", "reboot", "reboot_asap", "cancel_reboot"}

// applyNodeVerb makes of a node's record what is asked. Reasons are the caller's.
func (s *State) applyNodeVerb(next *core.Node, in *UpdateNode) error {
	switch in.State {
	case "drain", "down", "fail":
		if in.Reason == "" && next.Reason == "" {
			return core.Errorf(core.Invalid, "reason: required to take a node out of service").Because("reason_required")
		}
		if next.ReasonBy == systemUser && !in.System { // from here on it is not ours to take back
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
			s.clearNodeFaults(next)
		}
	case "resume":
		s.resumeNode(next)
	case "future":
		if err := s.checkNodeEmpty(next); err != nil {
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
		return s.requestReboot(next, in)
	case "cancel_reboot":
		if !next.Flags.Has(core.NodeReboot) {
			return core.Errorf(core.Conflict, "node %s is not waiting for a restart", next.Name).Because("no_reboot")
		}
		s.clearRestart(next)
	case "":
	default:
		if in.System {
			s.nodeActionFailed(next, in.State)
			return nil
		}
		return core.Errorf(core.Invalid, "unknown node state %q: expected %s", in.State,
			strings.Join(nodeVerbs, ", ")).Because("invalid_node_state")
	}
	return nil
}

// isOutdated tells whether it is news no more that a node could not be restarted or woken.
func isOutdated(n *core.Node, in *UpdateNode) bool {
	return in.System && (in.State == "reboot_failed" && !n.Flags.Has(core.NodeRebooting) || in.State == "resume_failed" &&
		!n.Flags.Has(core.NodePoweringUp))
}

// nodeActionFailed follows from what we were told to do with a node and could not. The reason is the caller's.
func (s *State) nodeActionFailed(n *core.Node, what string) {
	switch what {
	case "reboot_failed":
		s.clearRestart(n)
		n.Flags |= core.NodeDrain
	case "resume_failed":
		poweredUp(n)
		n.Flags |= core.NodeDown
	}
}

// resumeNode takes a node back into service, whatever was said of it.
func (s *State) resumeNode(next *core.Node) {
	next.Flags &^= core.NodeDrain | core.NodeDown | core.NodeFailFlag | core.NodeFuture |
		core.NodePowerDown | core.NodeReboot | core.NodeRebooting
	next.Restart, next.ResumeAt, next.Leaving = nil, 0, false
	poweredUp(next)
	s.clearNodeFaults(next)
}

func (s *State) checkNodeEmpty(n *core.Node) error {
	if len(s.jobsOnNode[n.Name]) > 0 {
		return core.Errorf(core.Conflict, "jobs run on node %s", n.Name).Because("node_busy")
	}
	return nil
}

// clearNodeFaults forgets what was wrong with a node; what still is will be told again.
func (s *State) clearNodeFaults(n *core.Node) {
	n.Reason, n.ReasonBy, n.ReasonAt = "", "", 0
	n.Hardware.Sick, n.Faults = nil, nil
}

// requestReboot has a node restart when it is empty. One that is to hurry gets no new jobs meanwhile.
func (s *State) requestReboot(next *core.Node, in *UpdateNode) error {
	switch {
	case next.Flags.Has(core.NodeUnknown):
		return core.Errorf(core.Conflict, "node %s has never connected and cannot be restarted",
			next.Name).Because("node_unknown")
	case in.Next != "" && in.Next != "resume" && in.Next != "down":
		return core.Errorf(core.Invalid, "next state %q: expected resume or down",
			in.Next).Because("invalid_node_state")
	case next.Flags.Has(core.NodeRebooting):
		return core.Errorf(core.Conflict, "node %s is already restarting", next.Name).Because("node_rebooting")
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

// clearRestart undoes what asking for a restart did.
func (s *State) clearRestart(n *core.Node) {
	if n.Restart != nil && n.Restart.ASAP {
		n.Flags &^= core.NodeDrain
	}
	n.Flags &^= core.NodeReboot | core.NodeRebooting
	n.Restart, n.Due = nil, 0
	if !n.Flags.Any(core.NodeDrain | core.NodeDown | core.NodeFailFlag) {
		n.Reason, n.ReasonBy, n.ReasonAt = "", "", 0
	}
}

// nodeRestarted takes a node that has come back with a new boot id to the state that was asked for.
func (s *State) nodeRestarted(n *core.Node) {
	r := n.Restart
	if r == nil {
		return
	}
	reason, by := n.Reason, n.ReasonBy
	s.clearRestart(n)
	switch r.Next {
	case "resume":
		n.Flags &^= core.NodeDrain | core.NodeDown | core.NodeFailFlag
		s.clearNodeFaults(n)
	case "down":
		n.Flags |= core.NodeDown
		n.Reason, n.ReasonBy, n.ReasonAt = reason, by, s.view.now
		if reason == "" {
			n.Reason, n.ReasonBy = "down after its restart, as was asked", systemUser
		}
	}
}

// trackIdleAction notes whether something is to be done with a node when it is empty.
func (s *State) trackIdleAction(n *core.Node) {
	if n.Flags.Any(core.NodeReboot|core.NodePowerDown) || n.Leaving {
		s.idleActions[n.Name] = struct{}{}
	} else {
		delete(s.idleActions, n.Name)
	}
}

// runIdleActions does with nodes that have become empty what waited for that.
func (s *State) runIdleActions() {
	if len(s.idleActions) == 0 {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(s.idleActions)) {
		n, ok := s.view.Node(name)
		if !ok {
			delete(s.idleActions, name)
			continue
		}
		if len(s.jobsOnNode[name]) > 0 {
			continue
		}
		if n.Leaving {
			s.deleteNode(name, "")
			continue
		}
		next := *n
		if n.Flags.Has(core.NodeReboot) {
			next.Flags = next.Flags&^core.NodeReboot | core.NodeRebooting
			next.Due = s.deadlineIn(s.cfg.Power.RebootTimeout)
		}
		if n.Flags.Has(core.NodePowerDown) {
			next.Flags &^= core.NodePowerDown
			s.setPowerState(&next, false, true)
		}
		s.putNode(&next)
		s.event(core.NodeChanged, core.Event{Node: name, By: systemUser, Data: nodeData(&next)})
	}
}

// NodeHealth tells what is wrong with a node as a whole. What drains does so unless somebody else has; Return lets a
// node that was drained so come back when nothing of it is left, otherwise an administrator says so. Reply: nil.
type NodeHealth struct {
	Node   core.NodeName
	Faults []core.NodeFault
	Return bool
}

func (*NodeHealth) input() {}

func (in *NodeHealth) apply(s *State) (None, error) {
	n, ok := s.view.Node(in.Node)
	if !ok {
		return none, nil
	}
	faults := slices.DeleteFunc(slices.Clone(in.Faults), func(f core.NodeFault) bool { return !f.Drain })
	for _, f := range n.Faults {
		// Of one check the last word holds: a program may say something else each time.
		if !in.Return && !slices.ContainsFunc(in.Faults,
			func(o core.NodeFault) bool { return o.Check == f.Check && o.Drain }) {
			faults = append(faults, f)
		}
	}
	if slices.Equal(faults, n.Faults) {
		return none, nil
	}
	next := *n
	next.Faults = faults
	s.drainForFaults(n, &next, in.Return)
	s.putNode(&next)
	s.event(core.NodeChanged, core.Event{Node: n.Name, By: systemUser, Data: nodeData(&next)})
	return none, nil
}

// drainForFaults drains a node for what ails it, and takes that drain back when nothing does. A drain or down that is
// somebody else's, or has another reason, stays as it is.
func (s *State) drainForFaults(n, next *core.Node, back bool) {
	was, is := faultSummary(n), faultSummary(next)
	ours := n.ReasonBy == systemUser && was != "" && n.Reason == was
	switch {
	case is != "" && (ours || !n.Flags.Any(core.NodeDrain|core.NodeDown)):
		next.Flags |= core.NodeDrain
		next.Reason, next.ReasonBy, next.ReasonAt = is, systemUser, s.view.now
	case is == "" && ours && back:
		next.Flags &^= core.NodeDrain
		next.Reason, next.ReasonBy, next.ReasonAt = "", "", 0
	}
}

// faultSummary is why a node is not to be used, in one line; empty: it is well enough.
func faultSummary(n *core.Node) string {
	var out []string
	if allUnitsSick(&n.Hardware) {
		out = append(out, core.SickText(n.Hardware.Sick))
	}
	if len(n.Faults) > 0 {
		out = append(out, core.FaultText(n.Faults))
	}
	return strings.Join(out, "; ")
}
