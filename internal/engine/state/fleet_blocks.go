package state

import (
	"strings"

	"bireme.dev/bireme/internal/core"
)

// Unsplit begins the reason of a node whose hardware cannot be split as its fleet says.
const Unsplit = "blocks: "

// setBlocks gives a node that joins the blocks its fleet says. One that cannot be split so takes no jobs until that is
// put right.
func (s *State) setBlocks(n *core.Node) {
	h := s.view.FleetHost(n)
	if h == nil {
		n.Blocks = 0
		return
	}
	blocks, err := n.Hardware.Split(h.Blocks)
	switch {
	case err != nil:
		n.Blocks = 1
		n.Flags |= core.NodeDrain
		n.Reason, n.ReasonBy, n.ReasonAt = Unsplit+err.Error(), "bireme", s.view.now
	case strings.HasPrefix(n.Reason, Unsplit):
		n.Flags &^= core.NodeDrain
		n.Reason, n.ReasonBy, n.ReasonAt = "", "", 0
		fallthrough
	default:
		n.Blocks = blocks
	}
}

// setFleetBlocks gives the nodes of a fleet that has changed their blocks; those that have not joined yet get them when
// they do.
func (s *State) setFleetBlocks(f *core.Fleet) {
	for i := range f.Hosts {
		n, ok := s.view.Node(f.Hosts[i].Node)
		if !ok || n.Flags.Has(core.NodeUnknown) || f.Hosts[i].Leaving {
			continue
		}
		next := *n
		if s.setBlocks(&next); next.Blocks != n.Blocks || next.Flags != n.Flags {
			s.putNode(&next)
			s.event(core.NodeChanged, core.Event{Node: n.Name, Data: nodeData(&next)})
		}
	}
}

// checkFleetBlocks refuses a fleet whose nodes, as far as they are known, do not divide as it says.
func (s *State) checkFleetBlocks(f *core.Fleet) error {
	for i := range f.Hosts {
		h := &f.Hosts[i]
		n, ok := s.view.Node(h.Node)
		if !ok || n.Flags.Has(core.NodeUnknown) || h.Leaving {
			continue
		}
		if _, err := n.Hardware.Split(h.Blocks); err != nil {
			return core.Errorf(core.Conflict, "host %s (node %s): %v", h.Login.Host, h.Node, err).Because("invalid_blocks")
		}
	}
	return nil
}
