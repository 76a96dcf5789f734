package sched

// Jobs that ask for GPUs of several types as a whole: a node may have one of them and not the other, so each node gives
// what it has of each, the first in order first. How the network joins them is not looked at.

// sorts counts the kinds of resources a job asks for as a whole.
func (w *wide) sorts() (n int) {
	for i := range w.asks {
		if w.asks[i].total > 0 {
			n++
		}
	}
	return n
}

// offer is what a node gives of each kind that is still missing, no more than most of all together, and how many tasks it
// could have.
func (s *supply) offer(missing []int64, most int64) (counts []int64, sum int64, tasks int32) {
	n, w := s.n, s.n.more
	counts = make([]int64, len(w.asks))
	taken := make([]int64, len(s.a.gres))
	take := func(a *ask, want int64) (got int64) {
		for k := range s.a.gres {
			if a.takes(&s.a.gres[k]) {
				more := max(0, min(want-got, s.b.gres[k]-taken[k]))
				taken[k] += more
				got += more
			}
		}
		return got
	}
	for i := range w.asks { // what each node must have
		if a := &w.asks[i]; take(a, a.node) < a.node {
			return nil, 0, 0
		}
	}
	if w.cpusPerGPU > 0 {
		most = min(most, int64(s.cpus/w.cpusPerGPU))
	}
	if w.memPerGPU > 0 {
		most = min(most, int64(s.mem/w.memPerGPU))
	}
	for i := range w.asks {
		counts[i] = take(&w.asks[i], min(missing[i], most-sum))
		sum += counts[i]
	}
	tasks = s.cpus / n.cpusPerTask
	if n.perNode > 0 {
		tasks = min(tasks, n.perNode)
	}
	for tasks > 0 {
		if p := n.portionOf(s.a, tasks, sum); tasks <= s.tasks && p.cpus <= s.cpus && p.mem <= s.mem {
			return counts, sum, tasks
		}
		tasks--
	}
	return nil, 0, 0
}

func (w *wide) totals() []int64 {
	out := make([]int64, len(w.asks))
	for i := range w.asks {
		out[i] = w.asks[i].total
	}
	return out
}

// chooseKinds is choose for such jobs.
func (n *need) chooseKinds(at *look, buf []pick) []pick {
	w := n.more
	picks, missing, tasks := buf[:0], w.totals(), int64(0)
	var left int64
	for _, c := range missing {
		left += c
	}
	for _, must := range []bool{true, false} {
		for _, a := range at.nodes {
			done := left == 0 && len(picks) >= int(n.nodesMin) && tasks >= int64(w.tasks)
			if n.must[a.node.Name] != must || !must && (done || len(picks) >= int(n.nodesMax)) {
				continue
			}
			b := at.balance(a)
			if n.owner != "" {
				free := b.to(n.owner, a, at)
				b = &free
			}
			s, ok := at.supply(n, a, b)
			if !ok || !n.suits(a, at) {
				continue
			}
			after := int64(max(0, int(n.nodesMin)-len(picks)-1)) // nodes that must have one too
			counts, sum, room := s.offer(missing, left-after)
			if sum == 0 {
				continue
			}
			for i := range counts {
				missing[i] -= counts[i]
			}
			left -= sum
			tasks += int64(room)
			picks = append(picks, pick{a: a, room: room, tasks: int32(sum), kinds: counts})
		}
	}
	if left > 0 || len(picks) < max(int(n.nodesMin), len(n.must)) || tasks < int64(w.tasks) {
		return nil
	}
	return picks
}
