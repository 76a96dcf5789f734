package fit

import (
	"cmp"
	"math/bits"
	"slices"
)

// chooseCover chooses among candidates: all required ones, enough for each count, then the first in order until there
// are enough nodes and room for all tasks. If that needs too many nodes, it tries the roomiest, then every mixture.
func (s setSearch) chooseCover(all []Candidate) []Choice {
	if !s.req.Set.wantsMin && s.fillInOrder(all) {
		return chosenNodes(all, s.buf)
	}
	if !s.roomiestSuffice(all) {
		return nil
	}
	slices.SortStableFunc(all, func(x, y Candidate) int { return cmp.Compare(y.Tasks, x.Tasks) })
	if s.fillInOrder(all) || len(s.counts) > 1 && s.searchMixtures(all) {
		return chosenNodes(all, s.buf)
	}
	return nil
}

// roomiestSuffice reports whether the roomiest candidates, as many as the job may have, take all its tasks. It counts
// them, which is cheaper than sorting.
func (s setSearch) roomiestSuffice(all []Candidate) bool {
	var with [65]int32 // candidates by room, 64 and more in the last
	most := int64(0)
	for i := range all {
		with[min(all[i].Tasks, 64)]++
		most = max(most, int64(all[i].Tasks))
	}
	left, tasks := s.req.NodesMax, int64(s.req.Tasks)
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

func chosenNodes(all []Candidate, buf []Choice) []Choice {
	picks := buf[:0]
	for i := range all {
		if all[i].chosen {
			picks = append(picks, Choice{Node: all[i].Node, Capacity: all[i].Tasks})
		}
	}
	return picks
}

// fillInOrder chooses in the order of candidates and reports whether that was enough. With one count at most and the
// roomiest first nothing else could be.
func (s setSearch) fillInOrder(all []Candidate) bool {
	h := s.newSelection()
	for i := range all {
		if all[i].chosen = all[i].Required; all[i].chosen {
			h.add(&all[i], 1)
		}
	}
	// Nodes that help with most counts first; what a node helps with only gets less, so one round for each number is
	// enough.
	for many := len(s.counts); many > 0; many-- {
		for i := range all {
			left := h.unmetCounts()
			if left == 0 {
				break
			}
			if k := &all[i]; !k.chosen && bits.OnesCount64(k.features&left) >= many {
				k.chosen = true
				h.add(k, 1)
			}
		}
	}
	if h.unmetCounts() != 0 {
		return false
	}
	for i := range all {
		if k := &all[i]; !k.chosen && h.nodes < s.req.NodesMax && (s.req.Set.WantsMax || !h.isEnough()) {
			k.chosen = true
			h.add(k, 1)
		}
	}
	return h.nodes <= s.req.NodesMax && h.isEnough()
}

// maxMixTries bounds the search for a mixture of nodes that meets several counts at once.
const maxMixTries = 20_000

// searchMixtures searches how many nodes to take of each sort, where nodes of a sort help with the same counts. The
// candidates are in order of room, so the first of a sort are its best.
func (s setSearch) searchMixtures(all []Candidate) bool {
	m := mixture{setSearch: s, candidates: all, tries: maxMixTries}
	for i := range all {
		if k := &all[i]; k.Required {
			k.chosen = true
		} else if k.chosen = false; k.features != 0 && !slices.Contains(m.featureSets, k.features) {
			m.featureSets = append(m.featureSets, k.features)
		}
	}
	slices.SortStableFunc(m.featureSets, func(x, y uint64) int { return bits.OnesCount64(y) - bits.OnesCount64(x) })
	return m.search(0)
}

type mixture struct {
	setSearch
	candidates  []Candidate
	featureSets []uint64
	tries       int
}

// search decides how many to take of a sort and all after it.
func (m *mixture) search(sort int) bool {
	h := m.newSelection()
	for i := range m.candidates {
		if m.candidates[i].chosen {
			h.add(&m.candidates[i], 1)
		}
	}
	if m.tries--; m.tries < 0 || h.nodes > m.req.NodesMax {
		return false
	}
	left := h.unmetCounts()
	if left == 0 {
		return m.complete(&h)
	}
	if sort == len(m.featureSets) {
		return false
	}
	var used []int
	for i := range m.candidates { // as many as can help, then one fewer, and so on
		if k := &m.candidates[i]; !k.chosen && k.features == m.featureSets[sort] && k.features&h.unmetCounts() != 0 &&
			h.nodes < m.req.NodesMax {
			k.chosen = true
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
		m.candidates[used[len(used)-1]].chosen = false
		used = used[:len(used)-1]
	}
}

// complete adds the roomiest nodes that are left until it is enough; it leaves all as it was if it never is.
func (m *mixture) complete(h *selection) bool {
	var used []int
	for i := range m.candidates {
		if k := &m.candidates[i]; !k.chosen && h.nodes < m.req.NodesMax && (m.req.Set.WantsMax || !h.isEnough()) {
			k.chosen = true
			h.add(k, 1)
			used = append(used, i)
		}
	}
	if h.isEnough() {
		return true
	}
	for _, i := range used {
		m.candidates[i].chosen = false
	}
	return false
}
