package sched

import (
	"cmp"
	"slices"

	"bireme.dev/bireme/internal/core/grammar"
)

// candidate is a node with room, on the way to a choice.
type candidate struct {
	a    *account
	room int32
	must bool
	in   bool   // chosen
	has  uint64 // the counts of a constraint that it helps to meet
}

// place is where a node is in the line of all nodes, and under which leaf of the network.
type place struct{ line, leaf int32 }

// seeking is what a ledger keeps for choices: to which shape of it the places of its nodes belong, and room to work in, so
// that they allocate little.
type seeking struct {
	labelled int
	stray    bool // some node is not in the network

	all, some, tried []candidate
	segs             []segment
	parts            []span
}

// seek finds nodes for a need with a wish, or none. What it does not find is not there, but for constraints with three or
// more counts of overlapping features on large clusters, where it gives up after a bounded search: so a refusal stands
// until something comes free.
func (n *need) seek(at look, buf []pick) []pick {
	w := n.wish
	if w.soft != nil {
		if picks := n.seekUnder(w.soft, &at, buf); picks != nil {
			return picks
		}
	}
	return n.seekUnder(w.hard, &at, buf)
}

// seekUnder tries the alternatives of a constraint in turn.
func (n *need) seekUnder(c *grammar.Constraint, at *look, buf []pick) []pick {
	if c == nil || len(c.Either) == 0 {
		return n.seekAmong(c, nil, at, buf)
	}
	for _, f := range c.Either {
		if picks := n.seekAmong(c, f, at, buf); picks != nil {
			return picks
		}
	}
	return nil
}

// seekAmong chooses among the nodes that fit a constraint and one of its alternatives.
func (n *need) seekAmong(c *grammar.Constraint, either *grammar.Features, at *look, buf []pick) []pick {
	w := n.wish
	s := &w.ledger.seeking
	var counts []grammar.FeatureCount
	if c != nil {
		counts = c.Counts
	}
	all, must, room := s.all[:0], 0, int64(0)
	for _, a := range at.nodes {
		r := at.room(n, a)
		if r <= 0 || r < w.each || !n.suits(a, at) || !agrees(c, a.node) || either != nil && !either.Has(a.node.Features) {
			continue
		}
		k := candidate{a: a, room: r, must: len(n.must) > 0 && n.must[a.node.Name]}
		for i := range counts {
			if counts[i].Of.Has(a.node.Features) {
				k.has |= 1 << i
			}
		}
		if k.must {
			must++
		}
		room += int64(r)
		all = append(all, k)
	}
	s.all = all
	if must < len(n.must) || len(all) < int(n.nodesMin) || room < int64(n.tasks) || !n.roomy(all) {
		return nil
	}
	if w.idle {
		slices.SortStableFunc(all, func(x, y candidate) int { return lessLoaded(x.a, y.a, at) })
	}
	net := w.ledger.net
	if w.contiguous || net != nil {
		w.ledger.label()
	}
	switch {
	case w.contiguous:
		return n.byWeight(all, func(some []candidate) []pick { return n.adjacent(some, counts, buf) })
	case net == nil, w.spread:
		if !w.spread && !w.most && !w.idle && !at.empty && w.each == 0 && len(counts) == 0 {
			if picks := n.onOne(all, buf); picks != nil {
				return n.finish(picks)
			}
		}
		picks := n.cover(all, counts, buf)
		if w.idle {
			slices.SortStableFunc(picks, func(x, y pick) int { return inOrder(x.a, y.a) })
		}
		return n.finish(picks)
	case at.empty && w.switches == 0 && w.ledger.joined(): // it is asked whether, not where
		return n.finish(n.cover(all, counts, buf))
	}
	return n.byWeight(all, func(some []candidate) []pick { return n.connected(net, some, counts, buf) })
}

// lessLoaded puts nodes of lower weight first, and among equals those with the larger part of their CPUs free.
func lessLoaded(a, b *account, at *look) int {
	if c := cmp.Compare(a.node.Weight, b.node.Weight); c != 0 {
		return c
	}
	fa := int64(at.balance(a).cpus)
	return cmp.Compare(int64(at.balance(b).cpus)*int64(a.full.cpus), fa*int64(b.full.cpus))
}

// byWeight tries the nodes of the lowest weight alone, then with those of the next, and so on: for jobs that want as many
// as there are, from the weight on where there are as many.
func (n *need) byWeight(all []candidate, try func([]candidate) []pick) []pick {
	for i := 1; i <= len(all); i++ {
		if i < len(all) && (all[i].a.node.Weight == all[i-1].a.node.Weight || i < int(n.nodesMin) || n.wish.most && i < int(n.nodesMax)) {
			continue
		}
		some := append(n.wish.ledger.seeking.some[:0], all[:i]...)
		n.wish.ledger.seeking.some = some
		if picks := try(some); picks != nil {
			return picks
		}
	}
	return nil
}

// finish gives each node its tasks.
func (n *need) finish(picks []pick) []pick {
	if picks == nil {
		return nil
	}
	if w := n.wish; w.each > 0 {
		m := *n
		m.tasks = w.each * int32(len(picks))
		m.spread(picks)
		return picks
	}
	n.spread(picks)
	return picks
}

// adjacent chooses nodes that follow each other without a gap, in the shortest row that has enough of them, or as many as
// the job would like.
func (n *need) adjacent(some []candidate, counts []grammar.FeatureCount, buf []pick) []pick {
	slices.SortFunc(some, func(x, y candidate) int { return cmp.Compare(x.a.place.line, y.a.place.line) })
	wanted := int(n.nodesMin)
	if n.wish.most {
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
		for to < len(some) && some[to].a.place.line == some[to-1].a.place.line+1 {
			to++
		}
		if i, k, ok := n.window(some[from:to], counts); ok && (row == nil || better(to-from, len(row))) {
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
		picks = append(picks, pick{a: k.a, room: k.room})
	}
	return n.finish(picks)
}

// window finds the first of the shortest parts of a row that is enough of it.
func (n *need) window(row []candidate, counts []grammar.FeatureCount) (at, size int, ok bool) {
	h := n.hold(counts)
	for from, to := 0, 0; from < len(row); from++ {
		for to < len(row) && !h.enough() {
			h.add(&row[to], 1)
			to++
		}
		if !h.enough() {
			return at, size, ok
		}
		if k := to - from; k <= int(n.nodesMax) && (!ok || k < size) {
			at, size, ok = from, k, true
		}
		h.add(&row[from], -1)
	}
	return at, size, ok
}

// hold is what a growing choice has so far, against what it needs.
type hold struct {
	n      *need
	counts []grammar.FeatureCount
	nodes  int32
	must   int
	room   int64
	have   []int32 // nodes for each count
}

func (n *need) hold(counts []grammar.FeatureCount) hold {
	h := hold{n: n, counts: counts}
	if len(counts) > 0 {
		h.have = make([]int32, len(counts))
	}
	return h
}

func (h *hold) add(k *candidate, sign int32) {
	h.nodes += sign
	h.room += int64(sign) * int64(k.room)
	if k.must {
		h.must += int(sign)
	}
	for i := range h.have {
		if k.has&(1<<i) != 0 {
			h.have[i] += sign
		}
	}
}

// open gives the counts that are not met yet.
func (h *hold) open() (left uint64) {
	for i := range h.have {
		if h.have[i] < h.counts[i].Count {
			left |= 1 << i
		}
	}
	return left
}

func (h *hold) enough() bool {
	return h.nodes >= h.n.nodesMin && h.room >= int64(h.n.tasks) && h.must == len(h.n.must) && h.open() == 0
}
