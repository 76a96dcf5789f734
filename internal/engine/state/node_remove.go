package state

import (
	"fmt"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/people"
)

// RemoveNode forgets a node, its key with it: it would have to join again. A node that jobs run on is refused, unless
// they are waited for (Drain), ended as on a node that an administrator sets down (Now), or known to have ended (Gone).
// Reply: *Removed.
type RemoveNode struct {
	By    core.Identity
	Node  core.NodeName
	Drain bool
	Now   bool
	Gone  bool
}

// Removed tells whether a node is gone; otherwise it goes when its jobs have.
type Removed struct{ Gone bool }

func (*RemoveNode) input() {}

func (in *RemoveNode) apply(s *State) (*Removed, error) {
	n, ok := s.rec.Node(in.Node)
	if !ok {
		return nil, core.Errorf(core.NotFound, "there is no node %q", in.Node).Because("invalid_node")
	}
	if err := people.AdminOnly(in.By, "may remove nodes"); err != nil {
		return nil, err
	}
	if h := s.rec.FleetHost(n); h != nil {
		return nil, core.Errorf(core.Conflict,
			"node %s is a host of fleet %s: take it out there (bireme fleet delete %s --instance %d)",
			n.Name, n.Fleet, n.Fleet, h.Num).Because("node_of_fleet")
	}
	if len(s.cluster.OnNode(in.Node)) > 0 && !in.Gone && !in.Now && !in.Drain {
		return nil, core.Errorf(core.Conflict, "%s on node %s: --drain removes it when they have ended, --now ends them",
			s.describeJobsOn(in.Node), n.Name).Because("node_busy")
	}
	s.removeNodeWhenEmpty(n, in.By.User, in.Now, in.Gone)
	_, there := s.rec.Node(in.Node)
	return &Removed{Gone: !there}, nil
}

// describeJobsOn names the first jobs on a node.
func (s *State) describeJobsOn(name core.NodeName) string {
	var ids []string
	all := s.cluster.JobIDsOn(name)
	for _, id := range all[:min(5, len(all))] {
		ids = append(ids, fmt.Sprint(id))
	}
	text := "job " + strings.Join(ids, ", ") + " runs"
	if len(all) > 1 {
		text = "jobs " + strings.Join(ids, ", ") + " run"
	}
	if more := len(all) - len(ids); more > 0 {
		text = fmt.Sprintf("jobs %s and %d more run", strings.Join(ids, ", "), more)
	}
	return text
}

// removeNodeWhenEmpty removes a node that has no jobs, and marks one that has: runIdleActions removes it when it is
// empty.
func (s *State) removeNodeWhenEmpty(n *core.Node, by core.UserName, now, gone bool) {
	if len(s.cluster.OnNode(n.Name)) == 0 || gone {
		s.deleteNode(n.Name, "")
		return
	}
	edit := s.editNode(n)
	next := edit.node
	next.Leaving = true
	next.Flags |= core.NodeDrain
	if now {
		next.Flags = next.Flags&^core.NodeDrain | core.NodeDown
	}
	next.Reason, next.ReasonBy, next.ReasonAt = "it is being removed", by, s.rec.Now()
	edit.Commit(by)
	switch message := fmt.Sprintf("node %s is removed", n.Name); {
	case !now:
	case next.Flags.Any(core.NodeSilent | core.NodeUnknown):
		s.loseJobsOn(n.Name, message)
	default: // the agent ends them and says so: a job must not start again beside itself
		s.failJobsOn(n.Name, message)
	}
}

// deleteNode deletes a node that holds nothing any more, or that cannot be reached; why is set for the latter.
func (s *State) deleteNode(name core.NodeName, why string) {
	n, ok := s.rec.Node(name)
	if !ok {
		return
	}
	s.loseJobsOn(name, fmt.Sprintf("node %s was removed", name))
	s.rec.DeleteNode(n)
	delete(s.idleActions, name)
	s.cluster.NodeDeleted(name)
	s.reservations.ClusterChanged()
	s.limits.MarkStale()
	s.rec.TellPlannerNodeGone(name)
	data := []byte(`{"gone":true`)
	if why != "" {
		data = appendJSON(append(data, `,"reason":`...), why)
	}
	s.rec.Event(core.NodeChanged, core.Event{Node: name, Data: append(data, '}')})
}
