package fit

import "bireme.dev/bireme/internal/sched/ledger"

// countTotals counts the kinds of resources a job asks for as a whole.
func (w *requestDetail) countTotals() (n int) {
	for i := range w.gres {
		if w.gres[i].total > 0 {
			n++
		}
	}
	return n
}

// gpuOffer returns what a node has of each kind that is still missing, at most so many in all, and how many tasks it
// could take.
func (s *nodeSupply) gpuOffer(missing []int64, most int64) (counts []int64, sum int64, tasks int32) {
	req, w := s.req, s.req.Detail
	counts = make([]int64, len(w.gres))
	taken := make([]int64, len(s.node.Gres))
	take := func(a *gresRequest, want int64) (got int64) {
		for k := range s.node.Gres {
			if a.accepts(&s.node.Gres[k]) {
				more := max(0, min(want-got, s.free.Gres[k]-taken[k]))
				taken[k] += more
				got += more
			}
		}
		return got
	}
	for i := range w.gres { // what each node must have
		if a := &w.gres[i]; take(a, a.node) < a.node {
			return nil, 0, 0
		}
	}
	if w.cpusPerGPU > 0 {
		most = min(most, int64(s.cpus/w.cpusPerGPU))
	}
	if w.memPerGPU > 0 {
		most = min(most, int64(s.mem/w.memPerGPU))
	}
	for i := range w.gres {
		counts[i] = take(&w.gres[i], min(missing[i], most-sum))
		sum += counts[i]
	}
	tasks = s.cpus / req.CpusPerTask
	if req.tasksPerNode > 0 {
		tasks = min(tasks, req.tasksPerNode)
	}
	for tasks > 0 {
		if p := req.Detail.cpusAndMem(req, s.node, tasks, sum); tasks <= s.tasks && p.cpus <= s.cpus && p.mem <= s.mem {
			return counts, sum, tasks
		}
		tasks--
	}
	return nil, 0, 0
}

func (w *requestDetail) totals() []int64 {
	out := make([]int64, len(w.gres))
	for i := range w.gres {
		out[i] = w.gres[i].total
	}
	return out
}

// chooseTypes is Choose for jobs that ask for several kinds of GPUs for the whole job.
func (req *Request) chooseTypes(view *ledger.View, buf []Choice) []Choice {
	w := req.Detail
	picks, missing, tasks := buf[:0], w.totals(), int64(0)
	var left int64
	for _, c := range missing {
		left += c
	}
	for _, must := range []bool{true, false} {
		for _, node := range view.Nodes {
			done := left == 0 && len(picks) >= int(req.NodesMin) && tasks >= int64(w.tasks)
			if req.Required[node.Record.Name] != must || !must && (done || len(picks) >= int(req.NodesMax)) {
				continue
			}
			b := view.Free(node)
			if req.User != "" {
				free := b.FreeFor(req.User, node, view)
				b = &free
			}
			s, ok := req.supplyAt(view, node, b)
			if !ok || !req.Accepts(node, view) {
				continue
			}
			after := int64(max(0, int(req.NodesMin)-len(picks)-1)) // nodes that must have one too
			counts, sum, room := s.gpuOffer(missing, left-after)
			if sum == 0 {
				continue
			}
			for i := range counts {
				missing[i] -= counts[i]
			}
			left -= sum
			tasks += int64(room)
			picks = append(picks, Choice{Node: node, Capacity: room, Tasks: int32(sum), gres: counts})
		}
	}
	if left > 0 || len(picks) < max(int(req.NodesMin), len(req.Required)) || tasks < int64(w.tasks) {
		return nil
	}
	return picks
}
