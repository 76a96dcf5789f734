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
	chosen   bool
	features uint64 // the counts of a constraint that it helps to meet
}

// Scratch is memory that the choice of a set of nodes reuses. Requests of one planner share it.
type Scratch struct {
	candidates, subset, tried []Candidate
	leaves                    []leafNodes
	spans                     []leafSpan
}

// setSearch chooses a set of nodes for a request with a setRequest. If it finds none there is none, except for
// constraints with three or more counts of overlapping features on large clusters, where it gives up after a bounded
// search: so a refusal stands until something comes free.
type setSearch struct {
	req    *Request
	counts []grammar.FeatureCount // of the constraint
	buf    []Choice               // memory for the result
}

func (s setSearch) choose(view ledger.View) []Choice {
	w := s.req.Set
	if w.Preferred != nil {
		if picks := s.chooseUnder(w.Preferred, &view); picks != nil {
			return picks
		}
	}
	return s.chooseUnder(w.Constraint, &view)
}

// chooseUnder tries the alternatives of a constraint in turn.
func (s setSearch) chooseUnder(c *grammar.Constraint, view *ledger.View) []Choice {
	s.counts = nil
	if c != nil {
		s.counts = c.Counts
	}
	if c == nil || len(c.Either) == 0 {
		return s.chooseAmong(c, nil, view)
	}
	for _, f := range c.Either {
		if picks := s.chooseAmong(c, f, view); picks != nil {
			return picks
		}
	}
	return nil
}

// chooseAmong chooses among the nodes that fit a constraint and one of its alternatives.
func (s setSearch) chooseAmong(c *grammar.Constraint, either *grammar.Features, view *ledger.View) []Choice {
	w := s.req.Set
	all := s.candidates(c, either, view)
	if all == nil {
		return nil
	}
	if w.leastLoaded {
		slices.SortStableFunc(all, func(x, y Candidate) int { return compareLoad(x.Node, y.Node, view) })
	}
	net := w.ledger.Net
	if w.Contiguous || net != nil {
		w.ledger.AssignPositions()
	}
	switch {
	case w.Contiguous:
		return s.byWeight(all, s.chooseAdjacent)
	case net == nil, w.spread:
		if !w.spread && !w.WantsMax && !w.leastLoaded && !view.IfIdle && w.TasksPerNode == 0 && len(s.counts) == 0 {
			if picks := s.chooseOneNode(all); picks != nil {
				return s.assignTasks(picks)
			}
		}
		picks := s.chooseCover(all)
		if w.leastLoaded {
			slices.SortStableFunc(picks, func(x, y Choice) int { return ledger.CompareNodes(x.Node, y.Node) })
		}
		return s.assignTasks(picks)
	case view.IfIdle && w.Switches == 0 && w.ledger.OneSwitchJoinsAll(): // the question is whether it fits, not where
		return s.assignTasks(s.chooseCover(all))
	}
	return s.byWeight(all, func(some []Candidate) []Choice { return s.chooseConnected(net, some) })
}

// candidates lists the nodes with room that fit a constraint and one of its alternatives; nil if they cannot suffice.
func (s setSearch) candidates(c *grammar.Constraint, either *grammar.Features, view *ledger.View) []Candidate {
	req, w := s.req, s.req.Set
	all, required, room := w.scratch.candidates[:0], 0, int64(0)
	for _, node := range view.Nodes {
		r := req.TasksAt(view, node)
		if r <= 0 || r < w.TasksPerNode || !req.Accepts(node, view) || c != nil && !c.Meets(node.Record.Features) ||
			either != nil && !either.Has(node.Record.Features) {
			continue
		}
		k := Candidate{Node: node, Tasks: r, Required: len(req.Required) > 0 && req.Required[node.Record.Name]}
		for i := range s.counts {
			if s.counts[i].Of.Has(node.Record.Features) {
				k.features |= 1 << i
			}
		}
		if k.Required {
			required++
		}
		room += int64(r)
		all = append(all, k)
	}
	w.scratch.candidates = all
	if required < len(req.Required) || len(all) < int(req.NodesMin) || room < int64(req.Tasks) || !s.roomiestSuffice(all) {
		return nil
	}
	return all
}

// compareLoad puts nodes of lower weight first, and among equals those with the larger part of their CPUs free.
func compareLoad(a, b *ledger.Node, view *ledger.View) int {
	if c := cmp.Compare(a.Record.Weight, b.Record.Weight); c != 0 {
		return c
	}
	fa := int64(view.Free(a).Cpus)
	return cmp.Compare(int64(view.Free(b).Cpus)*int64(a.Capacity.Cpus), fa*int64(b.Capacity.Cpus))
}

// byWeight tries the nodes of the lowest weight alone, then with those of the next, and so on: for jobs that want as
// many as there are, from the weight on where there are as many.
func (s setSearch) byWeight(all []Candidate, try func([]Candidate) []Choice) []Choice {
	for i := 1; i <= len(all); i++ {
		if i < len(all) && (all[i].Node.Record.Weight == all[i-1].Node.Record.Weight || i < int(s.req.NodesMin) ||
			s.req.Set.WantsMax && i < int(s.req.NodesMax)) {
			continue
		}
		some := append(s.req.Set.scratch.subset[:0], all[:i]...)
		s.req.Set.scratch.subset = some
		if picks := try(some); picks != nil {
			return picks
		}
	}
	return nil
}

// assignTasks assigns tasks to the nodes.
func (s setSearch) assignTasks(picks []Choice) []Choice {
	if picks == nil {
		return nil
	}
	if w := s.req.Set; w.TasksPerNode > 0 {
		m := *s.req
		m.Tasks = w.TasksPerNode * int32(len(picks))
		m.assignTasks(picks)
		return picks
	}
	s.req.assignTasks(picks)
	return picks
}

// chooseAdjacent chooses nodes that follow each other without a gap, in the shortest row that has enough of them, or as
// many as the job would like.
func (s setSearch) chooseAdjacent(some []Candidate) []Choice {
	slices.SortFunc(some, func(x, y Candidate) int { return cmp.Compare(x.Node.Position.Line, y.Node.Position.Line) })
	wanted := int(s.req.NodesMin)
	if s.req.Set.WantsMax {
		wanted = int(s.req.NodesMax)
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
		if i, k, ok := s.shortestRun(some[from:to]); ok && (row == nil || better(to-from, len(row))) {
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
	picks := s.buf[:0]
	for _, k := range row[at : at+size] {
		picks = append(picks, Choice{Node: k.Node, Capacity: k.Tasks})
	}
	return s.assignTasks(picks)
}

// shortestRun finds the first of the shortest parts of a row that is enough of it.
func (s setSearch) shortestRun(row []Candidate) (at, size int, ok bool) {
	h := s.newSelection()
	for from, to := 0, 0; from < len(row); from++ {
		for to < len(row) && !h.isEnough() {
			h.add(&row[to], 1)
			to++
		}
		if !h.isEnough() {
			return at, size, ok
		}
		if k := to - from; k <= int(s.req.NodesMax) && (!ok || k < size) {
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

func (s setSearch) newSelection() selection {
	h := selection{req: s.req, counts: s.counts}
	if len(s.counts) > 0 {
		h.counted = make([]int32, len(s.counts))
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
