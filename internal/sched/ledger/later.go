package ledger

import "bireme.dev/bireme/internal/core"

// Later is what nodes have free at a later time, as far as a search has computed it, ignoring reservations. It is
// scratch of a search, by the nodes' numbers.
type Later struct {
	scan  int64
	nodes []LaterNode
}

// LaterNode is what a node has free at a later time.
type LaterNode struct {
	scan    int64 // the scan in which it was computed
	Free    Resources
	Sharers []uint8 // Node.Sharers at that time
}

// Reset forgets all that was computed. There are so many nodes.
func (l *Later) Reset(nodes int) {
	l.scan++
	if len(l.nodes) < nodes {
		l.nodes = make([]LaterNode, nodes)
	}
}

// Scan returns the number of the scan: it changes with each Reset.
func (l *Later) Scan() int64 { return l.scan }

// Find returns what was computed for a node since Reset, or nil.
func (l *Later) Find(node *Node) *LaterNode {
	if f := &l.nodes[node.Index]; f.scan == l.scan {
		return f
	}
	return nil
}

// Copy starts with what a node has free now.
func (l *Later) Copy(node *Node) *LaterNode {
	f := &l.nodes[node.Index]
	f.scan = l.scan
	f.Free.CopyFrom(&node.Free)
	f.Sharers = append(f.Sharers[:0], node.Sharers...)
	return f
}

// Compute computes what a node has free at t from the ends of its jobs. Overdue jobs end at soon.
func (l *Later) Compute(node *Node, t, soon core.Time) *LaterNode {
	f := l.Copy(node)
	for i := range node.Ends {
		e := &node.Ends[i]
		if max(e.At, soon) > t {
			break
		}
		e.Alloc.ReturnTo(node, int(e.Index), &f.Free, f.Sharers)
	}
	return f
}

// Forget forgets what was computed for a node.
func (l *Later) Forget(node *Node) { l.nodes[node.Index].scan = 0 }
