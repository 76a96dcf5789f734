package fit

import "bireme.dev/bireme/internal/sched/ledger"

// singleFit caches for a version of the ledger whether some idle node could hold all of a job that may run on one or
// several nodes. If none could, a job larger than any node is not tried on each.
type singleFit struct {
	ledger  *ledger.Ledger
	version int
	fits    bool
}

// fitsOneNode reports whether a job of several tasks could fit on one node.
func (n *Request) fitsOneNode() bool {
	l := n.single.ledger
	if l == nil || n.NodesMin > 1 || n.NodesMax <= 1 || n.Tasks <= 1 {
		return false
	}
	if n.single.version != l.Version {
		n.single.version, n.single.fits = l.Version, false
		at := ledger.View{IfIdle: true, WithDown: true}
		for _, a := range l.Order {
			if n.TasksAt(&at, a) >= n.Tasks {
				n.single.fits = true
				break
			}
		}
	}
	return n.single.fits
}

// chooseOneNode chooses the first candidate that has room for a whole job that may be on one node.
func (s setSearch) chooseOneNode(all []Candidate) []Choice {
	n := s.req
	if len(n.Required) > 0 || !n.fitsOneNode() {
		return nil
	}
	for i := range all {
		if all[i].Tasks >= n.Tasks {
			return append(s.buf[:0], Choice{Node: all[i].Node, Capacity: all[i].Tasks})
		}
	}
	return nil
}
