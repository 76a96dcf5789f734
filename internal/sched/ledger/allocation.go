package ledger

import (
	"cmp"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/policy"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/preempt"
	"bireme.dev/bireme/internal/sched/sorted"
)

// Allocation is what a job holds in the ledger.
type Allocation struct {
	Alloc        *core.Alloc
	Terms        alloc.Terms
	ArrayBase    core.JobID // of its array, or 0
	End          core.Time  // latest end; unset for starts of a pass
	Job          *core.Job  // that holds it
	LimitUse     *policy.Use
	Nodes        []*Node // its nodes, as of
	NodesVersion int     // this version of the ledger; see Ledger.NodesOf

	Id        core.JobID         // of those a planner keeps between passes
	Victim    *preempt.Candidate // nil: it may not be preempted
	Lent      []core.Lent        // what others use of it while it is suspended
	Borrowed  []core.Lent        // what it uses of others
	Ended     bool               // it has ended and its nodes come free
	Preempted bool               // in this pass: it is to be preempted
}

// ReturnTo adds what a job holds of its node i to b, as free after its end. CPUs that it borrowed return to their
// lender; CPUs that it lent are its own again by then.
func (h *Allocation) ReturnTo(node *Node, i int, b *Resources, users []uint8) {
	na := &h.Alloc.Nodes[i]
	node.Book(b, users, na, h.Terms, 1)
	for k := range h.Borrowed {
		if h.Borrowed[k].Node == na.Node {
			b.Cpus -= h.Borrowed[k].CPUs
		}
	}
	for k := range h.Lent {
		if h.Lent[k].Node == na.Node {
			b.Cpus += h.Lent[k].CPUs
		}
	}
}

// JobOnNode is a job on a node. Index is the node's place in Alloc.Nodes.
type JobOnNode struct {
	Alloc *Allocation
	Index int
}

var NoResources Resources

// IsLeaving reports whether a job is leaving: it has ended, or its time limit is reached.
func (h *Allocation) IsLeaving(now core.Time) bool { return h.Ended || h.End <= now+alloc.OverdueDelay }

// Ends lists allocations in the order of their latest ends.
type Ends = sorted.List[AllocEnd, *AllocEnd]

// EndCursor is a position in Ends.
type EndCursor = sorted.Cursor[AllocEnd, *AllocEnd]

// AllocEnd is an allocation in the order of the latest end.
type AllocEnd struct {
	At    core.Time
	Id    core.JobID
	Task  int32 // of an array, for starts of the same pass
	Alloc *Allocation
}

func (e *AllocEnd) Compare(f *AllocEnd) int {
	switch {
	case e.At != f.At:
		return cmp.Compare(e.At, f.At)
	case e.Id != f.Id:
		return cmp.Compare(e.Id, f.Id)
	}
	return cmp.Compare(e.Task, f.Task)
}

// Reservation is a planned future start of a pending job. From Start on, what it uses of its nodes belongs to the job.
// It is not changed once made, except NodeReservation.Leaves, which each pass computes.
type Reservation struct {
	Job        core.JobID
	Start, End core.Time
	Nodes      []*Node // nil once it is dropped
	Names      []core.NodeName
	Advance    string // the advance reservation the job would run in
	Licenses   []core.License
	OnNodes    []NodeReservation // one per node
}

func (r *Reservation) Equal(o *Reservation) bool {
	if r.Job != o.Job || r.Start != o.Start || r.End != o.End || !slices.Equal(r.Nodes, o.Nodes) ||
		r.Advance != o.Advance || !slices.Equal(r.Licenses, o.Licenses) {
		return false
	}
	for i := range r.OnNodes {
		if !r.OnNodes[i].Uses.EqualTo(&o.OnNodes[i].Uses) {
			return false
		}
	}
	return true
}

// ChangeTimes appends the times at which a reservation changes what a job of the given length may use.
func (c *NodeReservation) ChangeTimes(out []core.Time, now, length core.Time) []core.Time {
	for _, t := range [...]core.Time{c.Start, c.End, c.Start - length + 1} {
		if t > now && t < alloc.Never {
			out = append(out, t)
		}
	}
	if c.Start == alloc.Never {
		out = append(out, alloc.Never)
	}
	return out
}

// NodesOf returns a job's nodes; nil stands for nodes that are gone.
func (l *Ledger) NodesOf(h *Allocation) []*Node {
	if h.NodesVersion != l.Version {
		h.NodesVersion, h.Nodes = l.Version, make([]*Node, len(h.Alloc.Nodes))
		for i := range h.Nodes {
			h.Nodes[i] = l.Nodes[h.Alloc.Nodes[i].Node]
		}
	}
	return h.Nodes
}
