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
func (req *Request) fitsOneNode() bool {
	l := req.single.ledger
	if l == nil || req.NodesMin > 1 || req.NodesMax <= 1 || req.Tasks <= 1 {
		return false
	}
	if req.single.version != l.Version {
		req.single.version, req.single.fits = l.Version, false
		view := ledger.View{IfIdle: true, WithDown: true}
		for _, node := range l.Order {
			if req.TasksAt(&view, node) >= req.Tasks {
				req.single.fits = true
				break
			}
		}
	}
	return req.single.fits
}

// chooseOneNode chooses the first candidate that has room for a whole job that may be on one node.
func (s setSearch) chooseOneNode(all []Candidate) []Choice {
	req := s.req
	if len(req.Required) > 0 || !req.fitsOneNode() {
		return nil
	}
	for i := range all {
		if all[i].Tasks >= req.Tasks {
			return append(s.buf[:0], Choice{Node: all[i].Node, Capacity: all[i].Tasks})
		}
	}
	return nil
}
