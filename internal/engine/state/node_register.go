package state

import (
	"fmt"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/jobs"
	"bireme.dev/bireme/internal/engine/state/nodes"
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
	edit := s.nodes.EditRecord(n)
	n.Flags &^= core.NodeUnknown | core.NodeSilent
	n.SilentSince = 0
	if !n.Flags.Has(core.NodePoweringDown) { // one that is on its way to sleep may still speak
		nodes.PoweredUp(n)
	}
	if rebooted {
		edit.Restarted()
	}
	if n.Pin != nil && n.Pin.CA != in.Trust {
		pin := *n.Pin
		pin.CA, n.Pin = in.Trust, &pin
	}
	edit.ClearLate(rebooted)
	edit.FollowFleet()
	if !known || raised || !nodes.SameRegistration(old, n) {
		kind := core.NodeChanged
		if !known {
			kind = core.NodeJoined
		}
		edit.CommitAs(kind, "")
	}
	if rebooted {
		s.nodes.LoseJobsOn(in.Node, fmt.Sprintf("node %s was restarted", in.Node))
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

// apply notes that a node is not heard, or is again. Its jobs stay either way.
func (in *NodeSilence) apply(s *State) (None, error) {
	n, ok := s.rec.Node(in.Node)
	if !ok || n.Flags.Has(core.NodeSilent) == !in.Back || n.Flags.Any(core.Asleep) && !in.Back {
		return none, nil
	}
	edit := s.nodes.Edit(n)
	next := edit.Node
	if in.Back {
		next.Flags &^= core.NodeSilent
		next.SilentSince = 0
	} else {
		next.Flags |= core.NodeSilent
		next.SilentSince = s.rec.Now()
	}
	edit.Commit("")
	if next.Flags.Has(core.NodeSilent | core.NodeDown) { // it did not get to saying that it is clean
		s.nodes.LoseJobsOn(in.Node, nodes.DownMessage(next))
	}
	return none, nil
}

// apply ends the attempts on a node whose agent has killed them by now.
func (in *Fenced) apply(s *State) (None, error) {
	n, ok := s.rec.Node(in.Node)
	if !ok || !n.Flags.Has(core.NodeSilent) {
		return none, nil // it came back in the meantime
	}
	s.nodes.LoseJobsOn(in.Node, fmt.Sprintf("node %s was silent for longer than its fence", in.Node), in.Jobs...)
	return none, nil
}

func (in *UpdateNode) apply(s *State) (None, error) {
	return none, s.nodes.Update((*nodes.Request)(in))
}

// apply makes a node of the config file known before its agent is heard.
func (in *PutNode) apply(s *State) (*core.Node, error) { return s.nodes.Put(in.Node), nil }

// Unsplit begins the reason of a node whose hardware cannot be split as its fleet says.
const Unsplit = nodes.Unsplit

// maxSeenAhead is how far beyond the next job id of the loaded state nodes are believed to have seen ids. It is a bound
// for all of them together until the state is loaded again: a node that lies wastes so many ids and no more.
const maxSeenAhead = 1_000_000

// raiseNextJob moves the next job id past those that a node runs or ran. A node knows of ids that were not given out
// when an older copy of the store was put back; they are not given out again. It reports whether that changed anything:
// then it is committed with the node.
func (in *Register) raiseNextJob(s *State) bool {
	was := s.rec.NextJob()
	raise := func(id core.JobID) {
		if id < s.maxSeenJob {
			s.rec.SkipJobIDs(id + 1)
		}
	}
	for i := range in.Running {
		raise(in.Running[i].Job)
	}
	for i := range in.Ended {
		raise(in.Ended[i].Job)
	}
	return s.rec.NextJob() != was
}
