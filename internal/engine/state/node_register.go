package state

import (
	"fmt"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/jobs"
	"bireme.dev/bireme/internal/engine/state/speccheck"
)

// apply takes an agent's account of its node. A boot id that changed means that what ran there is dead; what the
// agent runs and nobody wants is to be killed.
func (in *Register) apply(s *State) (*Reconciled, error) {
	if err := checkHardware(in); err != nil {
		return nil, err
	}
	raised := in.raiseNextJob(s)
	for i := range in.Ended {
		if _, err := in.Ended[i].apply(s); err != nil {
			return nil, err
		}
	}
	old, known := s.rec.Node(in.Node)
	n := &core.Node{Name: in.Node, Joined: s.rec.Now(), Weight: 1}
	if known {
		c := *old
		n = &c
	} else {
		n.ID = s.rec.TakeNodeID()
	}
	rebooted := known && old.Host.BootID != "" && old.Host.BootID != in.Host.BootID
	sick := n.Hardware.Sick // until the agent has looked
	n.Hardware, n.Host, n.Roles, n.TrustRoot = in.Hardware, in.Host, in.Roles, in.TrustRoot
	n.Hardware.Sick = sick
	if in.Fleet != "" {
		n.Fleet = in.Fleet
	}
	if in.Features != nil {
		n.Features = in.Features
	}
	edit := s.editNodeRecord(n)
	n.Flags &^= core.NodeUnknown | core.NodeSilent
	n.SilentSince = 0
	if !n.Flags.Has(core.NodePoweringDown) { // one that is on its way to sleep may still speak
		poweredUp(n)
	}
	if rebooted {
		edit.restarted()
	}
	if n.Pin != nil && n.Pin.CA != in.Trust {
		pin := *n.Pin
		pin.CA, n.Pin = in.Trust, &pin
	}
	edit.clearLate(rebooted)
	edit.setBlocks()
	if !known || raised || !sameRegistration(old, n) {
		kind := core.NodeChanged
		if !known {
			kind = core.NodeJoined
		}
		edit.commitAs(kind, "")
	}
	if rebooted {
		s.loseJobsOn(in.Node, fmt.Sprintf("node %s was restarted", in.Node))
	}
	return &Reconciled{Kill: in.unwantedSteps(s), Node: n}, nil
}

// checkHardware refuses an account that no machine could give.
func checkHardware(in *Register) error {
	h := &in.Hardware
	ok := in.Node != "" && h.CPUs >= 0 && h.CPUs <= 1<<16 && h.Memory >= 0
	for _, g := range h.Gres {
		ok = ok && g.Name != "" && g.Count >= 0 && g.Count <= 1<<20
	}
	ok = ok && speccheck.UnitsAreValid(h)
	if !ok {
		return core.Errorf(core.Invalid, "node %q: %d CPUs, %d bytes of memory and %v are not valid", in.Node, h.CPUs,
			h.Memory,
			h.Gres).Because("invalid_node")
	}
	return nil
}

// sameRegistration tells whether a registration says nothing new.
func sameRegistration(a, b *core.Node) bool {
	return a.Flags == b.Flags && a.Pin == b.Pin && a.Host == b.Host && a.Roles == b.Roles && a.TrustRoot == b.TrustRoot &&
		a.Fleet == b.Fleet && a.Blocks == b.Blocks && a.Reason == b.Reason &&
		a.Hardware.CPUs == b.Hardware.CPUs && a.Hardware.Memory == b.Hardware.Memory &&
		a.Hardware.Sockets == b.Hardware.Sockets &&
		a.Hardware.Cores == b.Hardware.Cores && a.Hardware.Threads == b.Hardware.Threads &&
		a.Hardware.TmpDisk == b.Hardware.TmpDisk &&
		slices.Equal(a.Hardware.Units, b.Hardware.Units) &&
		slices.Equal(a.Hardware.Gres, b.Hardware.Gres) && slices.Equal(a.Features, b.Features)
}

// unwantedSteps lists what runs on a node and should not.
func (in *Register) unwantedSteps(s *State) []StepRef {
	var kill []StepRef
	for _, r := range in.Running {
		j, ok := s.rec.Job(r.Job)
		if !ok || j.Attempt != r.Attempt || j.State.Final() || j.Flags.Has(core.Requeueing) || j.Alloc == nil ||
			!jobs.HoldsNode(j, in.Node) || s.jobs.StepHasEnded(j, r.Step) {
			kill = append(kill, r)
		}
	}
	return kill
}

func nodeData(n *core.Node) []byte {
	b := append(make([]byte, 0, 64), `{"flags":`...)
	b = append(b, fmt.Sprint(uint16(n.Flags))...)
	b = append(b, `,"state":`...)
	b = appendJSON(b, n.Flags.String())
	if n.Reason != "" {
		b = append(b, `,"reason":`...)
		b = appendJSON(b, n.Reason)
	}
	if text := core.FaultText(n.Faults); text != "" && text != n.Reason {
		b = append(b, `,"faults":`...)
		b = appendJSON(b, text)
	}
	return append(b, '}')
}

// failJobsOn ends the attempts on a node that cannot go on with them. Their processes may still run: the node is asked
// to be clean of them before anything starts again.
func (s *State) failJobsOn(node core.NodeName, message string) {
	for _, id := range s.cluster.JobIDsOn(node) {
		j, _ := s.rec.Job(id)
		edit := s.jobs.Edit(j)
		edit.FailOnNode(node, message)
		edit.CommitIfChanged(j)
	}
}

// loseJobsOn ends the attempts that ran on a node that is known to have lost them.
func (s *State) loseJobsOn(node core.NodeName, message string, only ...core.JobID) {
	for _, id := range s.cluster.JobIDsOn(node) {
		if only != nil && !slices.Contains(only, id) {
			continue
		}
		j, _ := s.rec.Job(id)
		edit := s.jobs.Edit(j)
		next := edit.Job
		if edit.FailOnNode(node, message); !jobs.IsOver(next) {
			edit.Commit()
			continue
		}
		s.jobs.FailStepsOn(next, node, message)
		edit.NodeClean(node)
	}
}

// apply notes that a node is not heard, or is again. Its jobs stay either way.
func (in *NodeSilence) apply(s *State) (None, error) {
	n, ok := s.rec.Node(in.Node)
	if !ok || n.Flags.Has(core.NodeSilent) == !in.Back || n.Flags.Any(core.Asleep) && !in.Back {
		return none, nil
	}
	edit := s.editNode(n)
	next := edit.node
	if in.Back {
		next.Flags &^= core.NodeSilent
		next.SilentSince = 0
	} else {
		next.Flags |= core.NodeSilent
		next.SilentSince = s.rec.Now()
	}
	edit.Commit("")
	if next.Flags.Has(core.NodeSilent | core.NodeDown) { // it did not get to saying that it is clean
		s.loseJobsOn(in.Node, downMessage(next))
	}
	return none, nil
}

func downMessage(n *core.Node) string {
	return fmt.Sprintf("node %s was set down: %s", n.Name, n.Reason)
}

// apply ends the attempts on a node whose agent has killed them by now.
func (in *Fenced) apply(s *State) (None, error) {
	n, ok := s.rec.Node(in.Node)
	if !ok || !n.Flags.Has(core.NodeSilent) {
		return none, nil // it came back in the meantime
	}
	s.loseJobsOn(in.Node, fmt.Sprintf("node %s was silent for longer than its fence", in.Node), in.Jobs...)
	return none, nil
}

// drainNode takes a node out of service by our own decision.
func (s *State) drainNode(name core.NodeName, reason string) {
	_, _ = (&UpdateNode{Node: name, State: "drain", Reason: reason, System: true}).apply(s)
}

func (in *UpdateNode) apply(s *State) (None, error) {
	n, ok := s.rec.Node(in.Node)
	if !ok {
		return none, core.Errorf(core.NotFound, "there is no node %q", in.Node).Because("invalid_node")
	}
	if !in.By.Admin && !in.System {
		return none, core.Errorf(core.Denied, "only an administrator may change nodes").Because("access_denied")
	}
	if isOutdated(n, in) {
		return none, nil
	}
	edit := s.editNode(n)
	next := edit.node
	if err := edit.applyVerb(in); err != nil {
		return none, err
	}
	if err := edit.setResumeTime(in); err != nil {
		return none, err
	}
	if in.Reason != "" {
		next.Reason, next.ReasonBy, next.ReasonAt = in.Reason, in.By.User, s.rec.Now()
		if in.System {
			next.ReasonBy = systemUser
		}
	}
	if next.Flags == n.Flags && next.Reason == n.Reason && next.ReasonBy == n.ReasonBy && next.ResumeAt == n.ResumeAt &&
		len(next.Hardware.Sick) == len(n.Hardware.Sick) && len(next.Faults) == len(n.Faults) {
		return none, nil
	}
	by := in.By.User
	if in.System {
		by = systemUser
	}
	edit.Commit(by)
	if in.State == "down" || in.State == "power_down_force" {
		// The administrator's word is enough where the agent cannot speak. Where it can, it ends what runs and says so:
		// a job must not start again beside itself.
		message := downMessage(next)
		if in.State != "down" {
			message = fmt.Sprintf("node %s is powered down", n.Name)
		}
		if next.Flags.Any(core.NodeSilent | core.NodeUnknown) {
			s.loseJobsOn(in.Node, message)
		} else {
			s.failJobsOn(in.Node, message)
		}
	}
	return none, nil
}

// setResumeTime notes when a node that is taken out of service comes back by itself.
func (e *nodeEdit) setResumeTime(in *UpdateNode) error {
	switch {
	case in.ResumeAfter == 0:
	case in.ResumeAfter < 0:
		e.node.ResumeAt = 0
	case !e.node.Flags.Any(core.NodeDrain | core.NodeDown | core.NodeFailFlag):
		return core.Errorf(core.Invalid,
			"node %s is in service: only a node that is down or drained can be resumed after a delay",
			e.node.Name).Because("invalid_node_state")
	default:
		e.node.ResumeAt = e.s.deadlineIn(in.ResumeAfter)
	}
	return nil
}

// apply makes a node of the config file known before its agent is heard.
func (in *PutNode) apply(s *State) (*core.Node, error) {
	n := *in.Node
	if old, ok := s.rec.Node(n.Name); ok {
		c := *old
		c.Weight, c.Features, c.Cloud = n.Weight, n.Features, n.Cloud
		if old.Flags.Has(core.NodeUnknown) && n.Hardware.CPUs > 0 { // nobody knows better yet
			c.Hardware, c.Host = n.Hardware, n.Host
		}
		if !sameRegistration(old, &c) || c.Weight != old.Weight || c.Cloud != old.Cloud {
			edit := s.editNodeRecord(&c)
			edit.Commit("")
		}
		return &c, nil
	}
	n.ID = s.rec.TakeNodeID()
	n.Flags |= core.NodeUnknown
	edit := s.editNodeRecord(&n)
	if n.Offer != "" {
		edit.completeOffer()
	}
	if n.Cloud {
		n.Resume = s.cfg.ResumeTime
	}
	if n.Reason != "" {
		n.ReasonBy, n.ReasonAt = systemUser, s.rec.Now()
	}
	edit.commitAs(core.NodeJoined, "")
	return &n, nil
}
