package nodes

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/nodenotes"
	"bireme.dev/bireme/internal/engine/state/named"
)

// Request is a wish to change a node's administrative state.
type Request struct {
	By     core.Identity
	Node   core.NodeName
	State  core.NodeVerb // "": none
	Next   core.NodeVerb // with a reboot: VerbResume or VerbDown when it is back, "" as it was
	Reason string
	System bool // by Bireme itself (unkillable step, failed prolog), not a person
	// ResumeAfter is when a node that is down or drained is resumed; 0: as it was, negative: not by itself.
	ResumeAfter core.Seconds
	Change      *nodenotes.Change `json:",omitempty"`
}

// SystemUser is who does what nobody asked for: a drain of ours, and its end.
const SystemUser core.UserName = "bireme"

// Update does what is asked of a node. down and power_down_force end its jobs.
func (ed *Editor) Update(in *Request) error {
	n, ok := ed.rec.Node(in.Node)
	if !ok {
		return core.Errorf(core.NotFound, "there is no node %q", in.Node).Because("invalid_node")
	}
	if !in.By.Admin && !in.System {
		return core.Errorf(core.Denied, "only an administrator may change nodes").Because("access_denied")
	}
	if isOutdated(n, in) {
		return nil
	}
	edit := ed.Edit(n)
	next := edit.Node
	if err := edit.applyVerb(in); err != nil {
		return err
	}
	if err := edit.setResumeTime(in); err != nil {
		return err
	}
	if err := edit.change(in.Change); err != nil {
		return err
	}
	if in.Reason != "" {
		next.Reason, next.ReasonBy, next.ReasonAt = in.Reason, in.By.User, ed.rec.Now()
		if in.System {
			next.ReasonBy = SystemUser
		}
	}
	if in.Change == nil && next.Flags == n.Flags && next.Reason == n.Reason &&
		next.ReasonBy == n.ReasonBy && next.ResumeAt == n.ResumeAt &&
		len(next.Hardware.Sick) == len(n.Hardware.Sick) && len(next.Faults) == len(n.Faults) {
		return nil
	}
	by := in.By.User
	if in.System {
		by = SystemUser
	}
	edit.Commit(by)
	if in.State.EndsJobs() {
		// The administrator's word is enough where the agent cannot speak. Where it can, it ends what runs and says so:
		// a job must not start again beside itself.
		message := DownMessage(next)
		if in.State != core.VerbDown {
			message = fmt.Sprintf("node %s is powered down", n.Name)
		}
		if next.Flags.Any(core.NodeSilent | core.NodeUnknown) {
			ed.LoseJobsOn(in.Node, message)
		} else {
			ed.FailJobsOn(in.Node, message)
		}
	}
	return nil
}

// Drain takes a node out of service by our own decision.
func (ed *Editor) Drain(name core.NodeName, reason string) {
	_ = ed.Update(&Request{Node: name, State: core.VerbDrain, Reason: reason, System: true})
}

// TakeDown sets a node down by our own decision, which ends its jobs.
func (ed *Editor) TakeDown(name core.NodeName, reason string) {
	_ = ed.Update(&Request{Node: name, State: core.VerbDown, Reason: reason, System: true})
}

// applyVerb makes of a node's record what is asked. Reasons are the caller's.
func (e *Edit) applyVerb(in *Request) error {
	switch in.State {
	case core.VerbDrain, core.VerbDown, core.VerbFail: // those of NeedsReason
		if in.Reason == "" && e.Node.Reason == "" {
			return core.Errorf(core.Invalid, "reason: required to take a node out of service").Because("reason_required")
		}
		if e.Node.ReasonBy == SystemUser && !in.System { // from here on it is not ours to take back
			e.Node.ReasonBy, e.Node.ReasonAt = in.By.User, e.ed.rec.Now()
		}
		switch in.State {
		case core.VerbDrain:
			e.Node.Flags |= core.NodeDrain
		case core.VerbFail:
			e.Node.Flags |= core.NodeFailFlag
		default:
			e.Node.Flags = e.Node.Flags&^core.NodeDrain | core.NodeDown
		}
	case core.VerbUndrain:
		e.Node.Flags &^= core.NodeDrain
		if !e.Node.Flags.Any(core.NodeDown | core.NodeFailFlag) {
			e.Node.ResumeAt = 0
			e.clearFaults()
		}
	case core.VerbResume:
		e.resume()
	case core.VerbFuture:
		if err := e.ed.checkEmpty(e.Node); err != nil {
			return err
		}
		e.Node.Flags |= core.NodeFuture
	case core.VerbPowerUp:
		e.powerUp()
	case core.VerbPowerDown, core.VerbPowerDownASAP, core.VerbPowerDownForce:
		if e.Node.Flags &^= core.NodePoweringUp; !e.Node.Flags.Any(core.Asleep) {
			e.Node.Flags |= core.NodePowerDown // it goes now, if it is empty: see runIdleActions
		}
	case core.VerbReboot, core.VerbRebootASAP:
		return e.requestReboot(in)
	case core.VerbCancelReboot:
		if !e.Node.Flags.Has(core.NodeReboot) {
			return core.Errorf(core.Conflict, "node %s is not waiting for a restart", e.Node.Name).Because("no_reboot")
		}
		e.clearRestart()
	case "":
	case core.VerbRebootFailed, core.VerbResumeFailed:
		if !in.System {
			return unknownVerb(in.State)
		}
		e.actionFailed(in.State)
	default:
		return unknownVerb(in.State)
	}
	return nil
}

func unknownVerb(v core.NodeVerb) error {
	known := strings.ReplaceAll(named.Join(core.NodeVerbs), ",", ", ")
	return core.Errorf(core.Invalid, "unknown node state %q: expected %s", v, known).Because("invalid_node_state")
}

// isOutdated reports whether a failure to restart or wake a node no longer matters.
func isOutdated(n *core.Node, in *Request) bool {
	return in.System && (in.State == core.VerbRebootFailed && !n.Flags.Has(core.NodeRebooting) ||
		in.State == core.VerbResumeFailed && !n.Flags.Has(core.NodePoweringUp))
}

// actionFailed follows from what we were told to do with a node and could not. The reason is the caller's.
func (e *Edit) actionFailed(what core.NodeVerb) {
	if what == core.VerbRebootFailed {
		e.clearRestart()
		e.Node.Flags |= core.NodeDrain
		return
	}
	PoweredUp(e.Node)
	e.Node.Flags |= core.NodeDown
}

// resume takes a node back into service, whatever was said of it.
func (e *Edit) resume() {
	e.Node.Flags &^= core.NodeDrain | core.NodeDown | core.NodeFailFlag | core.NodeFuture |
		core.NodePowerDown | core.NodeReboot | core.NodeRebooting
	e.Node.Restart, e.Node.ResumeAt, e.Node.Leaving = nil, 0, false
	PoweredUp(e.Node)
	e.clearFaults()
}

func (ed *Editor) checkEmpty(n *core.Node) error {
	if len(ed.cluster.OnNode(n.Name)) > 0 {
		return core.Errorf(core.Conflict, "jobs run on node %s", n.Name).Because("node_busy")
	}
	return nil
}

// clearFaults forgets what was wrong with a node; what still is will be told again.
func (e *Edit) clearFaults() {
	e.Node.Reason, e.Node.ReasonBy, e.Node.ReasonAt = "", "", 0
	e.Node.Hardware.Sick, e.Node.Faults = nil, nil
}

// requestReboot has a node restart when it is empty. One that is to hurry gets no new jobs meanwhile.
func (e *Edit) requestReboot(in *Request) error {
	switch {
	case e.Node.Flags.Has(core.NodeUnknown):
		return core.Errorf(core.Conflict, "node %s has never connected and cannot be restarted",
			e.Node.Name).Because("node_unknown")
	case in.Next != "" && in.Next != core.VerbResume && in.Next != core.VerbDown:
		return core.Errorf(core.Invalid, "next state %q: expected resume or down",
			in.Next).Because("invalid_node_state")
	case e.Node.Flags.Has(core.NodeRebooting):
		return core.Errorf(core.Conflict, "node %s is already restarting", e.Node.Name).Because("node_rebooting")
	}
	hurry := in.State == core.VerbRebootASAP
	r := &core.Restart{Next: in.Next, ASAP: e.Node.Restart != nil && e.Node.Restart.ASAP}
	e.Node.Flags |= core.NodeReboot
	if hurry && !e.Node.Flags.Has(core.NodeDrain) {
		r.ASAP = true
		e.Node.Flags |= core.NodeDrain
		if e.Node.Reason == "" {
			e.Node.Reason, e.Node.ReasonBy, e.Node.ReasonAt = "Reboot ASAP", in.By.User, e.ed.rec.Now() // as Slurm words it
		}
	}
	e.Node.Restart = r
	return nil
}

// clearRestart undoes what asking for a restart did.
func (e *Edit) clearRestart() {
	if e.Node.Restart != nil && e.Node.Restart.ASAP {
		e.Node.Flags &^= core.NodeDrain
	}
	e.Node.Flags &^= core.NodeReboot | core.NodeRebooting
	e.Node.Restart, e.Node.Due = nil, 0
	if !e.Node.Flags.Any(core.NodeDrain | core.NodeDown | core.NodeFailFlag) {
		e.Node.Reason, e.Node.ReasonBy, e.Node.ReasonAt = "", "", 0
	}
}

// Restarted takes a node that has come back with a new boot id to the state that was asked for.
func (e *Edit) Restarted() {
	r := e.Node.Restart
	if r == nil {
		return
	}
	reason, by := e.Node.Reason, e.Node.ReasonBy
	e.clearRestart()
	switch r.Next {
	case core.VerbResume:
		e.Node.Flags &^= core.NodeDrain | core.NodeDown | core.NodeFailFlag
		e.clearFaults()
	case core.VerbDown:
		e.Node.Flags |= core.NodeDown
		e.Node.Reason, e.Node.ReasonBy, e.Node.ReasonAt = reason, by, e.ed.rec.Now()
		if reason == "" {
			e.Node.Reason, e.Node.ReasonBy = "down after its restart, as was asked", SystemUser
		}
	default:
	}
}

// setResumeTime notes when a node that is taken out of service comes back by itself.
func (e *Edit) setResumeTime(in *Request) error {
	switch {
	case in.ResumeAfter == 0:
	case in.ResumeAfter < 0:
		e.Node.ResumeAt = 0
	case !e.Node.Flags.Any(core.NodeDrain | core.NodeDown | core.NodeFailFlag):
		return core.Errorf(core.Invalid,
			"node %s is in service: only a node that is down or drained can be resumed after a delay",
			e.Node.Name).Because("invalid_node_state")
	default:
		e.Node.ResumeAt = e.ed.deadlineIn(in.ResumeAfter)
	}
	return nil
}

// trackIdleAction notes whether something is to be done with a node when it is empty.
func (ed *Editor) trackIdleAction(n *core.Node) {
	if n.Flags.Any(core.NodeReboot|core.NodePowerDown) || n.Leaving {
		ed.idleActions[n.Name] = struct{}{}
	} else {
		delete(ed.idleActions, n.Name)
	}
}

// RunIdleActions does with nodes that have become empty what waited for that.
func (ed *Editor) RunIdleActions() {
	if len(ed.idleActions) == 0 {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(ed.idleActions)) {
		n, ok := ed.rec.Node(name)
		if !ok {
			delete(ed.idleActions, name)
			continue
		}
		if len(ed.cluster.OnNode(name)) > 0 {
			continue
		}
		if n.Leaving {
			ed.Delete(name, "")
			continue
		}
		edit := ed.Edit(n)
		next := edit.Node
		if n.Flags.Has(core.NodeReboot) {
			next.Flags = next.Flags&^core.NodeReboot | core.NodeRebooting
			next.Due = ed.deadlineIn(ed.cfg.Power.RebootTimeout)
		}
		if n.Flags.Has(core.NodePowerDown) {
			next.Flags &^= core.NodePowerDown
			edit.setPowerState(false, true)
		}
		edit.Commit(SystemUser)
	}
}
