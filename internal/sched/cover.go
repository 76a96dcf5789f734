package sched

import (
	"cmp"
	"math/bits"
	"slices"

	"bireme.dev/bireme/internal/core/grammar"
)

// cover chooses among candidates: all that must be there, enough for each count, then the first in order until there are
// enough nodes and room for all tasks. If that needs too many nodes, the roomiest are tried, and then every mixture.
func (n *need) cover(all []candidate, counts []grammar.FeatureCount, buf []pick) []pick {
	if !n.wish.least && n.fill(all, counts) {
		return taken(all, buf)
	}
	if !n.roomy(all) {
		return nil
	}
	slices.SortStableFunc(all, func(x, y candidate) int { return cmp.Compare(y.room, x.room) })
	if n.fill(all, counts) || len(counts) > 1 && n.mix(all, counts) {
		return taken(all, buf)
	}
	return nil
}

// roomy tells whether as many of the roomiest candidates as the job may have take all its tasks. It counts them, which is
// cheaper than sorting.
func (n *need) roomy(all []candidate) bool {
	var with [65]int32 // candidates by room, 64 and more in the last
	most := int64(0)
	for i := range all {
		with[min(all[i].room, 64)]++
		most = max(most, int64(all[i].room))
	}
	left, tasks := n.nodesMax, int64(n.tasks)
	for room := len(with) - 1; room > 0 && left > 0 && tasks > 0; room-- {
		each := int64(room)
		if room == 64 {
			each = most
		}
		k := min(left, with[room])
		left -= k
		tasks -= int64(k) * each
	}
	return tasks <= 0
}

// taken lists what was chosen.
func taken(all []candidate, buf []pick) []pick {
	picks := buf[:0]
	for i := range all {
		if all[i].in {
			picks = append(picks, pick{a: all[i].a, room: all[i].room})
		}
	}
	return picks
}

// fill chooses in the order of the candidates and tells whether that was enough. With one count at most and the roomiest
// first nothing else could be.
func (n *need) fill(all []candidate, counts []grammar.FeatureCount) bool {
	h := n.hold(counts)
	for i := range all {
		if all[i].in = all[i].must; all[i].in {
			h.add(&all[i], 1)
		}
	}
	// Nodes that help with most counts first; what a node helps with only gets less, so one round for each number is enough.
	for many := len(counts); many > 0; many-- {
		for i := range all {
			left := h.open()
			if left == 0 {
				break
			}
			if k := &all[i]; !k.in && bits.OnesCount64(k.has&left) >= many {
				k.in = true
				h.add(k, 1)
			}
		}
	}
	if h.open() != 0 {
		return false
	}
	for i := range all {
		if k := &all[i]; !k.in && h.nodes < n.nodesMax && (n.wish.most || !h.enough()) {
			k.in = true
			h.add(k, 1)
		}
	}
	return h.nodes <= n.nodesMax && h.enough()
}

// mixTries bounds the search for a mixture of nodes that meets several counts at once.
const mixTries = 20_000

// mix searches how many nodes to take of each sort, where nodes of a sort help with the same counts. The candidates are in
// order of room, so the first of a sort are its best.
func (n *need) mix(all []candidate, counts []grammar.FeatureCount) bool {
	m := mixture{n: n, all: all, tries: mixTries}
	for i := range all {
		if k := &all[i]; k.must {
			k.in = true
		} else if k.in = false; k.has != 0 && !slices.Contains(m.sorts, k.has) {
			m.sorts = append(m.sorts, k.has)
		}
	}
	slices.SortStableFunc(m.sorts, func(x, y uint64) int { return bits.OnesCount64(y) - bits.OnesCount64(x) })
	m.counts = counts
	return m.search(0)
}

type mixture struct {
	n      *need
	all    []candidate
	counts []grammar.FeatureCount
	sorts  []uint64
	tries  int
}

// search decides how many to take of a sort and all after it.
func (m *mixture) search(sort int) bool {
	h := m.n.hold(m.counts)
	for i := range m.all {
		if m.all[i].in {
			h.add(&m.all[i], 1)
		}
	}
	if m.tries--; m.tries < 0 || h.nodes > m.n.nodesMax {
		return false
	}
	left := h.open()
	if left == 0 {
		return m.complete(&h)
	}
	if sort == len(m.sorts) {
		return false
	}
	var used []int
	for i := range m.all { // as many as can help, then one fewer, and so on
		if k := &m.all[i]; !k.in && k.has == m.sorts[sort] && k.has&h.open() != 0 && h.nodes < m.n.nodesMax {
			k.in = true
			h.add(k, 1)
			used = append(used, i)
		}
	}
	for {
		if m.search(sort + 1) {
			return true
		}
		if len(used) == 0 {
			return false
		}
		m.all[used[len(used)-1]].in = false
		used = used[:len(used)-1]
	}
}

// complete adds the roomiest nodes that are left until it is enough; it leaves all as it was if it never is.
func (m *mixture) complete(h *hold) bool {
	var used []int
	for i := range m.all {
		if k := &m.all[i]; !k.in && h.nodes < m.n.nodesMax && (m.n.wish.most || !h.enough()) {
			k.in = true
			h.add(k, 1)
			used = append(used, i)
		}
	}
	if h.enough() {
		return true
	}
	for _, i := range used {
		m.all[i].in = false
	}
	return false
}
