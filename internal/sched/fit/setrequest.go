package fit

import (
	"fmt"
	"strconv"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/sched/ledger"
)

// setRequest is what a job, its partition or the network asks of its nodes as a whole. Most jobs of most clusters have
// none and take the first nodes with room; the others need setSearch.
type setRequest struct {
	Constraint, Preferred *grammar.Constraint // --constraint, unless Request.features has all of it, and --prefer
	text                  string              // hard, as it was written
	Contiguous            bool
	WantsMax              bool  // as many nodes as can be had
	wantsMin              bool  // as few as will do
	TasksPerNode          int32 // if not 0, every node has so many tasks: how many there are in all follows from the nodes
	spread                bool  // over as many nodes as there are tasks for, wherever they are
	leastLoaded           bool  // the least loaded nodes first
	segment               int32 // nodes come in groups of so many, each within a block
	Switches              int32 // leaf switches at most; 0: any

	ledger   *ledger.Ledger // whose topology and order of nodes count
	scratch  *Scratch
	implicit bool // the job asks for nothing: it is only the network or the partition that choose their way
}

// hasNoSetRequest reports whether a request has nothing that readSet reads.
func hasNoSetRequest(s *core.Spec) bool {
	sh, x := &s.Shape, s.Extra
	return (sh.NodesMax <= sh.NodesMin || sh.NodesMax <= 1) && (sh.More == nil || !sh.More.SpreadJob &&
		!sh.More.UseMinNodes) &&
		(x == nil || x.Prefer.IsZero() && !x.Contiguous && x.Segment == 0 && x.Switches.Fault() == nil)
}

// appendSetRequest names all that readSet reads beside the constraint.
func appendSetRequest(b []byte, s *core.Spec) []byte {
	sh, x, wide := &s.Shape, s.More(), s.Shape.Wide()
	b = append(append(b, 0), x.Prefer.String()...)
	b = strconv.AppendInt(append(b, 0), int64(x.Segment), 10)
	for _, is := range [...]bool{
		x.Switches.Fault() == nil, x.Contiguous, sh.Given&core.GivenTasks != 0, wide.SpreadJob,
		wide.UseMinNodes,
	} {
		b = strconv.AppendBool(b, is)
	}
	return b
}

// readSet reads what a spec asks of its nodes as a whole, and adjusts how many there are; nil if nothing.
func (req *Request) readSet(s *core.Spec) {
	sh, x, wide := &s.Shape, s.More(), s.Shape.Wide()
	w := setRequest{Contiguous: x.Contiguous, segment: x.Segment, spread: wide.SpreadJob}
	ranged := sh.NodesMax > max(1, sh.NodesMin)
	w.WantsMax, w.wantsMin = ranged && !wide.UseMinNodes, wide.UseMinNodes && (ranged || sh.NodesMax == 0)
	w.Preferred = x.Prefer.Expr()
	if list := x.Constraint.Features(); list != nil && w.Preferred == nil {
		req.features = list
	} else {
		w.Constraint, w.text = x.Constraint.Expr(), x.Constraint.String()
	}
	// nodes follow from the counts
	if c := w.Constraint; c != nil && len(c.Counts) > 0 && sh.NodesMin == 0 && sh.NodesMax == 0 {
		sum := int32(0)
		for i := range c.Counts {
			sum += c.Counts[i].Count
		}
		req.raiseNodes(sum)
	}
	if sh.NodesMin == 0 && sh.NodesMax == 0 && w.spread {
		w.WantsMax = req.NodesMax > req.NodesMin
	}
	if ranged {
		if each := max(1, sh.TasksPerNode); sh.Given&core.GivenTasks == 0 && req.Tasks == req.NodesMin*each {
			w.TasksPerNode = each
		} else {
			req.NodesMax = max(req.NodesMin, min(req.NodesMax, req.Tasks)) // a node without a task is none of the job's
		}
	}
	w.WantsMax = w.WantsMax && req.NodesMax > req.NodesMin
	if w.Constraint != nil || w.Preferred != nil || w.Contiguous || w.WantsMax || w.wantsMin || w.TasksPerNode > 0 ||
		w.segment > 0 || w.spread {
		req.Set = &w
	}
}

// BindLedger adds to a request the partition's way of choosing nodes and the network.
func (req *Request) BindLedger(l *ledger.Ledger, scratch *Scratch, lln bool) {
	req.single = singleFit{ledger: l, version: -1}
	if req.Set == nil && l.Net == nil && !lln {
		return
	}
	w := setRequest{implicit: true}
	if req.Set != nil {
		w = *req.Set
	}
	if scratch == nil {
		scratch = &Scratch{}
	}
	w.ledger, w.scratch, w.leastLoaded = l, scratch, lln || w.spread
	req.Set = &w
	if w.TasksPerNode > 0 {
		req.Tasks = req.NodesMin * w.TasksPerNode // the partition may have raised it
	}
}

// String describes the request, for a message.
func (w *setRequest) String() (t string) {
	if w.Constraint != nil {
		t += ", constraint " + w.text
	}
	if w.Contiguous {
		t += ", nodes without a gap"
	}
	if w.segment > 0 {
		t += fmt.Sprintf(", in segments of %d", w.segment)
	}
	return t
}

// accepts reports whether a node may be among those of a job, whatever the others are.
func (w *setRequest) accepts(n *core.Node) bool {
	return w.Constraint == nil || w.Constraint.Meets(n.Features) || w.Preferred != nil && w.Preferred.Meets(n.Features)
}
