package fit

import (
	"cmp"
	"slices"

	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/sched/ledger"
)

// Candidate is a node with room, on the way to a choice.
type Candidate struct {
	Node     *ledger.Node
	Tasks    int32
	Required bool
	chosen   bool   // chosen
	features uint64 // the counts of a constraint that it helps to meet
}

// Scratch is memory that the choice of a set of nodes reuses. Requests of one planner share it.
type Scratch struct {
	candidates, subset, tried []Candidate
	leaves                    []leafNodes
	spans                     []leafSpan
}

// chooseSet finds nodes for a need with a wish, or none. What it does not find is not there, but for constraints with
// three or more counts of overlapping features on large clusters, where it gives up after a bounded search: so a
// refusal stands until something comes free.
func (n *Request) chooseSet(at ledger.View, buf []Choice) []Choice {
	w := n.Set
	if w.Preferred != nil {
		if picks := n.chooseUnder(w.Preferred, &at, buf); picks != nil {
			return picks
		}
	}
	return n.chooseUnder(w.Constraint, &at, buf)
}

// chooseUnder tries the alternatives of a constraint in turn.
func (n *Request) chooseUnder(c *grammar.Constraint, at *ledger.View, buf []Choice) []Choice {
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
func (n *Request) chooseAmong(c *grammar.Constraint, either *grammar.Features, at *ledger.View,
	buf []Choice,
) []Choice {
	w := n.Set
	s := w.scratch
	var counts []grammar.FeatureCount
	if c != nil {
		counts = c.Counts
	}
	all, must, room := s.candidates[:0], 0, int64(0)
	for _, a := range at.Nodes {
		r := n.TasksAt(at, a)
		if r <= 0 || r < w.TasksPerNode || !n.Accepts(a, at) || !nodeMeets(c, a.Record) || either != nil &&
			!either.Has(a.Record.Features) {
			continue
		}
		k := Candidate{Node: a, Tasks: r, Required: len(n.Required) > 0 && n.Required[a.Record.Name]}
		for i := range counts {
			if counts[i].Of.Has(a.Record.Features) {
				k.features |= 1 << i
			}
		}
		if k.Required {
			must++
		}
		room += int64(r)
		all = append(all, k)
	}
	s.candidates = all
	if must < len(n.Required) || len(all) < int(n.NodesMin) || room < int64(n.Tasks) || !n.roomiestSuffice(all) {
		return nil
	}
	if w.leastLoaded {
		slices.SortStableFunc(all, func(x, y Candidate) int { return compareLoad(x.Node, y.Node, at) })
	}
	net := w.ledger.Net
	if w.Contiguous || net != nil {
		w.ledger.AssignPositions()
	}
	switch {
	case w.Contiguous:
		return n.byWeight(all, func(some []Candidate) []Choice { return n.chooseAdjacent(some, counts, buf) })
	case net == nil, w.spread:
		if !w.spread && !w.WantsMax && !w.leastLoaded && !at.IfIdle && w.TasksPerNode == 0 && len(counts) == 0 {
			if picks := n.chooseOneNode(all, buf); picks != nil {
				return n.assignSetTasks(picks)
			}
		}
		picks := n.chooseCover(all, counts, buf)
		if w.leastLoaded {
			slices.SortStableFunc(picks, func(x, y Choice) int { return ledger.CompareNodes(x.Node, y.Node) })
		}
		return n.assignSetTasks(picks)
	case at.IfIdle && w.Switches == 0 && w.ledger.OneSwitchJoinsAll(): // it is asked whether, not where
		return n.assignSetTasks(n.chooseCover(all, counts, buf))
	}
	return n.byWeight(all, func(some []Candidate) []Choice { return n.chooseConnected(net, some, counts, buf) })
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
func (n *Request) byWeight(all []Candidate, try func([]Candidate) []Choice) []Choice {
	for i := 1; i <= len(all); i++ {
		if i < len(all) && (all[i].Node.Record.Weight == all[i-1].Node.Record.Weight || i < int(n.NodesMin) ||
			n.Set.WantsMax && i < int(n.NodesMax)) {
			continue
		}
		some := append(n.Set.scratch.subset[:0], all[:i]...)
		n.Set.scratch.subset = some
		if picks := try(some); picks != nil {
			return picks
		}
	}
	return nil
}

// assignSetTasks gives each node its tasks.
func (n *Request) assignSetTasks(picks []Choice) []Choice {
	if picks == nil {
		return nil
	}
	if w := n.Set; w.TasksPerNode > 0 {
		m := *n
		m.Tasks = w.TasksPerNode * int32(len(picks))
		m.assignTasks(picks)
		return picks
	}
	n.assignTasks(picks)
	return picks
}

// chooseAdjacent chooses nodes that follow each other without a gap, in the shortest row that has enough of them, or as
// many as the job would like.
func (n *Request) chooseAdjacent(some []Candidate, counts []grammar.FeatureCount, buf []Choice) []Choice {
	slices.SortFunc(some, func(x, y Candidate) int { return cmp.Compare(x.Node.Position.Line, y.Node.Position.Line) })
	wanted := int(n.NodesMin)
	if n.Set.WantsMax {
		wanted = int(n.NodesMax)
	}
	better := func(a, b int) bool { // of rows
		if min(a, wanted) != min(b, wanted) {
			return a > b
		}
		return a < b
	}
	var row []Candidate
	var at, size int
	for from := 0; from < len(some); {
		to := from + 1
		for to < len(some) && some[to].Node.Position.Line == some[to-1].Node.Position.Line+1 {
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
		picks = append(picks, Choice{Node: k.Node, Capacity: k.Tasks})
	}
	return n.assignSetTasks(picks)
}

// shortestRun finds the first of the shortest parts of a row that is enough of it.
func (n *Request) shortestRun(row []Candidate, counts []grammar.FeatureCount) (at, size int, ok bool) {
	h := n.newSelection(counts)
	for from, to := 0, 0; from < len(row); from++ {
		for to < len(row) && !h.isEnough() {
			h.add(&row[to], 1)
			to++
		}
		if !h.isEnough() {
			return at, size, ok
		}
		if k := to - from; k <= int(n.NodesMax) && (!ok || k < size) {
			at, size, ok = from, k, true
		}
		h.add(&row[from], -1)
	}
	return at, size, ok
}

// selection is what a growing choice has so far, against what it needs.
type selection struct {
	req      *Request
	counts   []grammar.FeatureCount
	nodes    int32
	required int
	tasks    int64
	counted  []int32 // nodes for each count
}

func (n *Request) newSelection(counts []grammar.FeatureCount) selection {
	h := selection{req: n, counts: counts}
	if len(counts) > 0 {
		h.counted = make([]int32, len(counts))
	}
	return h
}

func (h *selection) add(k *Candidate, sign int32) {
	h.nodes += sign
	h.tasks += int64(sign) * int64(k.Tasks)
	if k.Required {
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
	return h.nodes >= h.req.NodesMin && h.tasks >= int64(h.req.Tasks) && h.required == len(h.req.Required) &&
		h.unmetCounts() == 0
}
