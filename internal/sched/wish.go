package sched

import (
	"fmt"
	"strconv"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
)

// wish is what a job, its partition or the network asks of its nodes as a whole. Most jobs of most clusters have none and
// take the first nodes with room; those with one go the long way: see seek.
type wish struct {
	hard, soft *grammar.Constraint // --constraint, unless need.features says it all, and --prefer
	text       string              // hard, as it was written
	contiguous bool
	most       bool  // as many nodes as can be had
	least      bool  // as few as will do
	each       int32 // if not 0, every node has so many tasks: how many there are in all follows from the nodes
	spread     bool  // over as many nodes as there are tasks for, wherever they are
	idle       bool  // the least loaded nodes first
	segment    int32 // nodes come in groups of so many, each within a block
	switches   int32 // leaf switches at most; 0: any

	ledger *Ledger // whose network and scratch it uses
	none   bool    // the job asks for nothing: it is only the network or the partition that choose their way
}

// simpleKey tells whether a request has nothing that wishOf reads.
func simpleKey(s *core.Spec) bool {
	sh, x := &s.Shape, s.Extra
	return (sh.NodesMax <= sh.NodesMin || sh.NodesMax <= 1) && (sh.More == nil || !sh.More.SpreadJob && !sh.More.UseMinNodes) &&
		(x == nil || x.Prefer == "" && !x.Contiguous && x.Segment == 0 && switchesReadable(x))
}

// appendWish names all that wishOf reads beside the constraint.
func appendWish(b []byte, s *core.Spec) []byte {
	sh, x, wide := &s.Shape, s.More(), s.Shape.Wide()
	b = append(append(b, 0), x.Prefer...)
	b = strconv.AppendInt(append(b, 0), int64(x.Segment), 10)
	for _, is := range [...]bool{switchesReadable(x), x.Contiguous, sh.Given&core.GivenTasks != 0, wide.SpreadJob, wide.UseMinNodes} {
		b = strconv.AppendBool(b, is)
	}
	return b
}

// wishOf reads what a spec asks of its nodes as a whole, and adjusts how many there are; nil if nothing.
func (n *need) wishOf(s *core.Spec) {
	sh, x, wide := &s.Shape, s.More(), s.Shape.Wide()
	w := wish{contiguous: x.Contiguous, segment: x.Segment, spread: wide.SpreadJob}
	ranged := sh.NodesMax > max(1, sh.NodesMin)
	w.most, w.least = ranged && !wide.UseMinNodes, wide.UseMinNodes && (ranged || sh.NodesMax == 0)
	if x.Prefer != "" {
		w.soft = parsed(x.Prefer)
	}
	if x.Constraint != "" {
		if w.soft == nil && SimpleConstraint(x.Constraint) {
			n.features = splitFeatures(x.Constraint)
		} else {
			w.hard, w.text = parsed(x.Constraint), x.Constraint
		}
	}
	if c := w.hard; c != nil && len(c.Counts) > 0 && sh.NodesMin == 0 && sh.NodesMax == 0 { // nodes follow from the counts
		sum := int32(0)
		for i := range c.Counts {
			sum += c.Counts[i].Count
		}
		n.atLeast(sum)
	}
	if sh.NodesMin == 0 && sh.NodesMax == 0 && w.spread {
		w.most = n.nodesMax > n.nodesMin
	}
	if ranged {
		if each := max(1, sh.TasksPerNode); sh.Given&core.GivenTasks == 0 && n.tasks == n.nodesMin*each {
			w.each = each
		} else {
			n.nodesMax = max(n.nodesMin, min(n.nodesMax, n.tasks)) // a node without a task is none of the job's
		}
	}
	w.most = w.most && n.nodesMax > n.nodesMin
	if w.hard != nil || w.soft != nil || w.contiguous || w.most || w.least || w.each > 0 || w.segment > 0 || w.spread {
		n.wish = &w
	}
}

// settle tells a need where it is placed: a partition's way of choosing and the network are wishes too.
func (n *need) settle(l *Ledger, lln bool) {
	n.lone = alone{ledger: l, shape: -1}
	if n.wish == nil && l.net == nil && !lln {
		return
	}
	w := wish{none: true}
	if n.wish != nil {
		w = *n.wish
	}
	w.ledger, w.idle = l, lln || w.spread
	n.wish = &w
	if w.each > 0 {
		n.tasks = n.nodesMin * w.each // the partition may have raised it
	}
}

// String tells what is wished, for people.
func (w *wish) String() (t string) {
	if w.hard != nil {
		t += ", constraint " + w.text
	}
	if w.contiguous {
		t += ", nodes without a gap"
	}
	if w.segment > 0 {
		t += fmt.Sprintf(", in segments of %d", w.segment)
	}
	return t
}

// parsed reads a constraint that admission has let in. One that cannot be read is in need.unreadable, and its job fits nowhere.
func parsed(text string) *grammar.Constraint {
	c, err := grammar.ParseConstraint(text)
	if err != nil {
		return nil
	}
	return c
}

// suits tells whether a node may be among those of a job, whatever the others are.
func (w *wish) suits(n *core.Node) bool {
	return w.hard == nil && w.soft == nil || agrees(w.hard, n) || w.soft != nil && agrees(w.soft, n)
}

// agrees tells whether a node may be part of an allocation under a constraint.
func agrees(c *grammar.Constraint, n *core.Node) bool {
	if c == nil {
		return true
	}
	if c.All != nil && !c.All.Has(n.Features) {
		return false
	}
	for _, f := range c.Either {
		if f.Has(n.Features) {
			return true
		}
	}
	return len(c.Either) == 0
}

// fewer places a job that would like more nodes than its limits allow on as many as they do.
func (ps *pass) fewer(s *slot, j *core.Job, at look, had int) *core.Alloc {
	w := s.need.wish
	if w == nil || !w.most {
		return nil
	}
	var best *core.Alloc
	for lo, hi := int(s.need.nodesMin), had-1; lo <= hi; { // what is over a limit is so with more nodes too
		mid := (lo + hi) / 2
		n, v := s.need, *w
		n.nodesMax, n.wish = int32(mid), &v
		v.most = n.nodesMax > n.nodesMin
		picks := n.choose(at, ps.p.buf)
		if picks == nil { // so few have too little room
			lo = mid + 1
			continue
		}
		ps.p.buf = picks
		if al := n.alloc(s.part.Name, picks, at); ps.exceeds(s, j, al) {
			hi = mid - 1
		} else {
			best, lo = al, mid+1
		}
	}
	if best != nil {
		delete(ps.plan.over, j.ID)
	}
	return best
}
