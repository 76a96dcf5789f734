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
var nodeVerbs = []string{
	"drain", "undrain", "resume", "down", "fail", "future", "power_up", "power_down",
	"power_down_asap",
	"power_down_force", "reboot", "reboot_asap", "cancel_reboot",
}

// applyVerb makes of a node's record what is asked. Reasons are the caller's.
func (e *nodeEdit) applyVerb(in *UpdateNode) error {
	switch in.State {
	case "drain", "down", "fail":
		if in.Reason == "" && e.node.Reason == "" {
			return core.Errorf(core.Invalid, "reason: required to take a node out of service").Because("reason_required")
		}
		if e.node.ReasonBy == systemUser && !in.System { // from here on it is not ours to take back
			e.node.ReasonBy, e.node.ReasonAt = in.By.User, e.s.rec.Now()
		}
		switch in.State {
		case "drain":
			e.node.Flags |= core.NodeDrain
		case "fail":
			e.node.Flags |= core.NodeFailFlag
		case "down":
			e.node.Flags = e.node.Flags&^core.NodeDrain | core.NodeDown
		}
	case "undrain":
		e.node.Flags &^= core.NodeDrain
		if !e.node.Flags.Any(core.NodeDown | core.NodeFailFlag) {
			e.node.ResumeAt = 0
			e.clearFaults()
		}
	case "resume":
		e.resume()
	case "future":
		if err := e.s.checkNodeEmpty(e.node); err != nil {
			return err
		}
		e.node.Flags |= core.NodeFuture
	case "power_up":
		e.powerUp()
	case "power_down", "power_down_asap", "power_down_force":
		if e.node.Flags &^= core.NodePoweringUp; !e.node.Flags.Any(core.Asleep) {
			e.node.Flags |= core.NodePowerDown // it goes now, if it is empty: see runIdleActions
		}
	case "reboot", "reboot_asap":
		return e.requestReboot(in)
	case "cancel_reboot":
		if !e.node.Flags.Has(core.NodeReboot) {
			return core.Errorf(core.Conflict, "node %s is not waiting for a restart", e.node.Name).Because("no_reboot")
		}
		e.clearRestart()
	case "":
	default:
		if in.System {
			e.actionFailed(in.State)
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

// actionFailed follows from what we were told to do with a node and could not. The reason is the caller's.
func (e *nodeEdit) actionFailed(what string) {
	switch what {
	case "reboot_failed":
		e.clearRestart()
		e.node.Flags |= core.NodeDrain
	case "resume_failed":
		poweredUp(e.node)
		e.node.Flags |= core.NodeDown
	}
}

// resume takes a node back into service, whatever was said of it.
func (e *nodeEdit) resume() {
	e.node.Flags &^= core.NodeDrain | core.NodeDown | core.NodeFailFlag | core.NodeFuture |
		core.NodePowerDown | core.NodeReboot | core.NodeRebooting
	e.node.Restart, e.node.ResumeAt, e.node.Leaving = nil, 0, false
	poweredUp(e.node)
	e.clearFaults()
}

func (s *State) checkNodeEmpty(n *core.Node) error {
	if len(s.cluster.OnNode(n.Name)) > 0 {
		return core.Errorf(core.Conflict, "jobs run on node %s", n.Name).Because("node_busy")
	}
	return nil
}

// clearFaults forgets what was wrong with a node; what still is will be told again.
func (e *nodeEdit) clearFaults() {
	e.node.Reason, e.node.ReasonBy, e.node.ReasonAt = "", "", 0
	e.node.Hardware.Sick, e.node.Faults = nil, nil
}

// requestReboot has a node restart when it is empty. One that is to hurry gets no new jobs meanwhile.
func (e *nodeEdit) requestReboot(in *UpdateNode) error {
	switch {
	case e.node.Flags.Has(core.NodeUnknown):
		return core.Errorf(core.Conflict, "node %s has never connected and cannot be restarted",
			e.node.Name).Because("node_unknown")
	case in.Next != "" && in.Next != "resume" && in.Next != "down":
		return core.Errorf(core.Invalid, "next state %q: expected resume or down",
			in.Next).Because("invalid_node_state")
	case e.node.Flags.Has(core.NodeRebooting):
		return core.Errorf(core.Conflict, "node %s is already restarting", e.node.Name).Because("node_rebooting")
	}
	hurry := in.State == "reboot_asap"
	r := &core.Restart{Next: in.Next, ASAP: e.node.Restart != nil && e.node.Restart.ASAP}
	e.node.Flags |= core.NodeReboot
	if hurry && !e.node.Flags.Has(core.NodeDrain) {
		r.ASAP = true
		e.node.Flags |= core.NodeDrain
		if e.node.Reason == "" {
			e.node.Reason, e.node.ReasonBy, e.node.ReasonAt = "Reboot ASAP", in.By.User, e.s.rec.Now() // as Slurm words it
		}
	}
	e.node.Restart = r
	return nil
}

// clearRestart undoes what asking for a restart did.
func (e *nodeEdit) clearRestart() {
	if e.node.Restart != nil && e.node.Restart.ASAP {
		e.node.Flags &^= core.NodeDrain
	}
	e.node.Flags &^= core.NodeReboot | core.NodeRebooting
	e.node.Restart, e.node.Due = nil, 0
	if !e.node.Flags.Any(core.NodeDrain | core.NodeDown | core.NodeFailFlag) {
		e.node.Reason, e.node.ReasonBy, e.node.ReasonAt = "", "", 0
	}
}

// restarted takes a node that has come back with a new boot id to the state that was asked for.
func (e *nodeEdit) restarted() {
	r := e.node.Restart
	if r == nil {
		return
	}
	reason, by := e.node.Reason, e.node.ReasonBy
	e.clearRestart()
	switch r.Next {
	case "resume":
		e.node.Flags &^= core.NodeDrain | core.NodeDown | core.NodeFailFlag
		e.clearFaults()
	case "down":
		e.node.Flags |= core.NodeDown
		e.node.Reason, e.node.ReasonBy, e.node.ReasonAt = reason, by, e.s.rec.Now()
		if reason == "" {
			e.node.Reason, e.node.ReasonBy = "down after its restart, as was asked", systemUser
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
		n, ok := s.rec.Node(name)
		if !ok {
			delete(s.idleActions, name)
			continue
		}
		if len(s.cluster.OnNode(name)) > 0 {
			continue
		}
		if n.Leaving {
			s.deleteNode(name, "")
			continue
		}
		edit := s.editNode(n)
		next := edit.node
		if n.Flags.Has(core.NodeReboot) {
			next.Flags = next.Flags&^core.NodeReboot | core.NodeRebooting
			next.Due = s.deadlineIn(s.cfg.Power.RebootTimeout)
		}
		if n.Flags.Has(core.NodePowerDown) {
			next.Flags &^= core.NodePowerDown
			edit.setPowerState(false, true)
		}
		edit.Commit(systemUser)
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
	n, ok := s.rec.Node(in.Node)
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
	edit := s.editNode(n)
	next := edit.node
	next.Faults = faults
	s.drainForFaults(n, next, in.Return)
	edit.Commit(systemUser)
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
		next.Reason, next.ReasonBy, next.ReasonAt = is, systemUser, s.rec.Now()
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
