package sched

import (
	"cmp"
	"slices"

	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/sched/ledger"
)

// candidate is a node with room, on the way to a choice.
type candidate struct {
	node     *ledger.Node
	tasks    int32
	required bool
	chosen   bool   // chosen
	features uint64 // the counts of a constraint that it helps to meet
}

// setScratch is memory that the choice of a set of nodes reuses. Requests of one planner share it.
type setScratch struct {
	candidates, subset, tried []candidate
	leaves                    []leafNodes
	spans                     []leafSpan
}

// chooseSet finds nodes for a need with a wish, or none. What it does not find is not there, but for constraints with
// three or more counts of overlapping features on large clusters, where it gives up after a bounded search: so a
// refusal stands until something comes free.
func (n *request) chooseSet(at ledger.View, buf []nodeChoice) []nodeChoice {
	w := n.set
	if w.preferred != nil {
		if picks := n.chooseUnder(w.preferred, &at, buf); picks != nil {
			return picks
		}
	}
	return n.chooseUnder(w.constraint, &at, buf)
}

// chooseUnder tries the alternatives of a constraint in turn.
func (n *request) chooseUnder(c *grammar.Constraint, at *ledger.View, buf []nodeChoice) []nodeChoice {
	if c == nil || len(c.Either) == 0 {
		return n.chooseAmong(c, nil, at, buf)
	}
	for _, f := range c.Either {
		if picks := n.chooseAmong(c, f, at, buf); picks != nil {
			return picks
		}
	}
	return nil
}

// chooseAmong chooses among the nodes that fit a constraint and one of its alternatives.
func (n *request) chooseAmong(c *grammar.Constraint, either *grammar.Features, at *ledger.View,
	buf []nodeChoice,
) []nodeChoice {
	w := n.set
	s := w.scratch
	var counts []grammar.FeatureCount
	if c != nil {
		counts = c.Counts
	}
	all, must, room := s.candidates[:0], 0, int64(0)
	for _, a := range at.Nodes {
		r := n.tasksAt(at, a)
		if r <= 0 || r < w.tasksPerNode || !n.accepts(a, at) || !meetsConstraint(c, a.Record) || either != nil &&
			!either.Has(a.Record.Features) {
			continue
		}
		k := candidate{node: a, tasks: r, required: len(n.required) > 0 && n.required[a.Record.Name]}
		for i := range counts {
			if counts[i].Of.Has(a.Record.Features) {
				k.features |= 1 << i
			}
		}
		if k.required {
			must++
		}
		room += int64(r)
		all = append(all, k)
	}
	s.candidates = all
	if must < len(n.required) || len(all) < int(n.nodesMin) || room < int64(n.tasks) || !n.roomiestSuffice(all) {
		return nil
	}
	if w.leastLoaded {
		slices.SortStableFunc(all, func(x, y candidate) int { return compareLoad(x.node, y.node, at) })
	}
	net := w.ledger.Net
	if w.contiguous || net != nil {
		w.ledger.AssignPositions()
	}
	switch {
	case w.contiguous:
		return n.byWeight(all, func(some []candidate) []nodeChoice { return n.chooseAdjacent(some, counts, buf) })
	case net == nil, w.spread:
		if !w.spread && !w.wantsMax && !w.leastLoaded && !at.IfIdle && w.tasksPerNode == 0 && len(counts) == 0 {
			if picks := n.chooseOneNode(all, buf); picks != nil {
				return n.assignSetTasks(picks)
			}
		}
		picks := n.chooseCover(all, counts, buf)
		if w.leastLoaded {
			slices.SortStableFunc(picks, func(x, y nodeChoice) int { return ledger.CompareNodes(x.node, y.node) })
		}
		return n.assignSetTasks(picks)
	case at.IfIdle && w.switches == 0 && w.ledger.OneSwitchJoinsAll(): // it is asked whether, not where
		return n.assignSetTasks(n.chooseCover(all, counts, buf))
	}
	return n.byWeight(all, func(some []candidate) []nodeChoice { return n.chooseConnected(net, some, counts, buf) })
}

// compareLoad puts nodes of lower weight first, and among equals those with the larger part of their CPUs free.
func compareLoad(a, b *ledger.Node, at *ledger.View) int {
	if c := cmp.Compare(a.Record.Weight, b.Record.Weight); c != 0 {
		return c
	}
	fa := int64(at.Free(a).Cpus)
	return cmp.Compare(int64(at.Free(b).Cpus)*int64(a.Capacity.Cpus), fa*int64(b.Capacity.Cpus))
}

// byWeight tries the nodes of the lowest weight alone, then with those of the next, and so on: for jobs that want as
// many as there are, from the weight on where there are as many.
func (n *request) byWeight(all []candidate, try func([]candidate) []nodeChoice) []nodeChoice {
	for i := 1; i <= len(all); i++ {
		if i < len(all) && (all[i].node.Record.Weight == all[i-1].node.Record.Weight || i < int(n.nodesMin) ||
			n.set.wantsMax && i < int(n.nodesMax)) {
			continue
		}
		some := append(n.set.scratch.subset[:0], all[:i]...)
		n.set.scratch.subset = some
		if picks := try(some); picks != nil {
			return picks
		}
	}
	return nil
}

// assignSetTasks gives each node its tasks.
func (n *request) assignSetTasks(picks []nodeChoice) []nodeChoice {
	if picks == nil {
		return nil
	}
	if w := n.set; w.tasksPerNode > 0 {
		m := *n
		m.tasks = w.tasksPerNode * int32(len(picks))
		m.assignTasks(picks)
		return picks
	}
	n.assignTasks(picks)
	return picks
}

// chooseAdjacent chooses nodes that follow each other without a gap, in the shortest row that has enough of them, or as
// many as the job would like.
func (n *request) chooseAdjacent(some []candidate, counts []grammar.FeatureCount, buf []nodeChoice) []nodeChoice {
	slices.SortFunc(some, func(x, y candidate) int { return cmp.Compare(x.node.Position.Line, y.node.Position.Line) })
	wanted := int(n.nodesMin)
	if n.set.wantsMax {
		wanted = int(n.nodesMax)
	}
	better := func(a, b int) bool { // of rows
		if min(a, wanted) != min(b, wanted) {
			return a > b
		}
		return a < b
	}
	var row []candidate
	var at, size int
	for from := 0; from < len(some); {
		to := from + 1
		for to < len(some) && some[to].node.Position.Line == some[to-1].node.Position.Line+1 {
			to++
		}
		if i, k, ok := n.shortestRun(some[from:to], counts); ok && (row == nil || better(to-from, len(row))) {
			row, at, size = some[from:to], i, k
		}
		from = to
	}
	if row == nil {
		return nil
	}
	for size < wanted && size < len(row) {
		if at+size == len(row) {
			at--
		}
		size++
	}
	picks := buf[:0]
	for _, k := range row[at : at+size] {
		picks = append(picks, nodeChoice{node: k.node, capacity: k.tasks})
	}
	return n.assignSetTasks(picks)
}

// shortestRun finds the first of the shortest parts of a row that is enough of it.
func (n *request) shortestRun(row []candidate, counts []grammar.FeatureCount) (at, size int, ok bool) {
	h := n.newSelection(counts)
	for from, to := 0, 0; from < len(row); from++ {
		for to < len(row) && !h.isEnough() {
			h.add(&row[to], 1)
			to++
		}
		if !h.isEnough() {
			return at, size, ok
		}
		if k := to - from; k <= int(n.nodesMax) && (!ok || k < size) {
			at, size, ok = from, k, true
		}
		h.add(&row[from], -1)
	}
	return at, size, ok
}

// selection is what a growing choice has so far, against what it needs.
type selection struct {
	req      *request
	counts   []grammar.FeatureCount
	nodes    int32
	required int
	tasks    int64
	counted  []int32 // nodes for each count
}

func (n *request) newSelection(counts []grammar.FeatureCount) selection {
	h := selection{req: n, counts: counts}
	if len(counts) > 0 {
		h.counted = make([]int32, len(counts))
	}
	return h
}

func (h *selection) add(k *candidate, sign int32) {
	h.nodes += sign
	h.tasks += int64(sign) * int64(k.tasks)
	if k.required {
		h.required += int(sign)
	}
	for i := range h.counted {
		if k.features&(1<<i) != 0 {
			h.counted[i] += sign
		}
	}
}

// unmetCounts returns the counts that are not met yet.
func (h *selection) unmetCounts() (left uint64) {
	for i := range h.counted {
		if h.counted[i] < h.counts[i].Count {
			left |= 1 << i
		}
	}
	return left
}

func (h *selection) isEnough() bool {
	return h.nodes >= h.req.nodesMin && h.tasks >= int64(h.req.tasks) && h.required == len(h.req.required) &&
		h.unmetCounts() == 0
}
