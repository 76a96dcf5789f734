package sched

// alone is whether some node could hold all of a job that may be on one or on several, if nothing ran: what is found out
// once for each shape of the ledger, so that jobs larger than any node are not looked for on every one.
type alone struct {
	ledger *Ledger
	shape  int
	can    bool
}

// alone tells whether a job of several tasks may find itself on one node.
func (n *need) alone() bool {
	l := n.lone.ledger
	if l == nil || n.nodesMin > 1 || n.nodesMax <= 1 || n.tasks <= 1 {
		return false
	}
	if n.lone.shape != l.shape {
		n.lone.shape, n.lone.can = l.shape, false
		at := look{empty: true, any: true}
		for _, a := range l.order {
			if at.room(n, a) >= n.tasks {
				n.lone.can = true
				break
			}
		}
	}
	return n.lone.can
}

// onOne gives the first of some candidates that has room for a whole job that may be on one node.
func (n *need) onOne(all []candidate, buf []pick) []pick {
	if len(n.must) > 0 || !n.alone() {
		return nil
	}
	for i := range all {
		if all[i].room >= n.tasks {
			return append(buf[:0], pick{a: all[i].a, room: all[i].room})
		}
	}
	return nil
}
