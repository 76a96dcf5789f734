package state

import (
	"strings"

	"bireme.dev/bireme/internal/core"
)

// Unsplit begins the reason of a node whose hardware cannot be split as its fleet says.
const Unsplit = "blocks: "

// setBlocks gives a node that joins the blocks its fleet says. One that cannot be split so takes no jobs until that is
// put right.
func (e *nodeEdit) setBlocks() {
	h := e.s.rec.FleetHost(e.node)
	if h == nil {
		e.node.Blocks = 0
		return
	}
	blocks, err := e.node.Hardware.Split(h.Blocks)
	switch {
	case err != nil:
		e.node.Blocks = 1
		e.node.Flags |= core.NodeDrain
		e.node.Reason, e.node.ReasonBy, e.node.ReasonAt = Unsplit+err.Error(), "bireme", e.s.rec.Now()
	case strings.HasPrefix(e.node.Reason, Unsplit):
		e.node.Flags &^= core.NodeDrain
		e.node.Reason, e.node.ReasonBy, e.node.ReasonAt = "", "", 0
		fallthrough
	default:
		e.node.Blocks = blocks
	}
}

// setFleetBlocks gives the nodes of a fleet that has changed their blocks; those that have not joined yet get them when
// they do.
func (s *State) setFleetBlocks(f *core.Fleet) {
	for i := range f.Hosts {
		n, ok := s.rec.Node(f.Hosts[i].Node)
		if !ok || n.Flags.Has(core.NodeUnknown) || f.Hosts[i].Leaving {
			continue
		}
		edit := s.editNode(n)
		next := edit.node
		if edit.setBlocks(); next.Blocks != n.Blocks || next.Flags != n.Flags {
			edit.Commit("")
		}
	}
}
