package steplayout

import (
	"slices"

	"bireme.dev/bireme/internal/core"
)

// Free is what of a job's nodes no running step of its attempt has to itself.
func Free(j *core.Job, steps []*core.Step) []core.NodeAlloc {
	if j.Alloc == nil {
		return nil
	}
	free := slices.Clone(j.Alloc.Nodes)
	places := core.NodePlaces{List: free}
	for _, st := range steps {
		if st.State.Final() || st.Attempt != j.Attempt || len(st.Holds) == 0 {
			continue
		}
		ended := endedNodes(st)
		for i := range st.Holds {
			if ended != nil && ended[i] { // its node has said that it is over there
				continue
			}
			if at := places.Of(st.Nodes[i]); at >= 0 {
				take(&free[at], &st.Holds[i])
			}
		}
	}
	return free
}

// endedNodes says of each node where the step holds something whether it is over there; nil: it is over on none.
func endedNodes(st *core.Step) []bool {
	if len(st.Ended) == 0 {
		return nil
	}
	out := make([]bool, len(st.Holds))
	for _, i := range st.Ended {
		if 0 <= i && int(i) < len(out) {
			out[i] = true
		}
	}
	return out
}

// take lessens what is free by what a step holds. Slices are the job's own and are replaced, never written.
func take(n *core.NodeAlloc, h *core.StepHold) {
	n.CPUs = max(0, n.CPUs-h.CPUs)
	n.Mem = max(0, n.Mem-h.Mem)
	if len(h.Cores) > 0 {
		n.Cores = without(n.Cores, h.Cores)
	}
	if len(h.Gres) == 0 {
		return
	}
	gres := slices.Clone(n.Gres)
	for _, g := range h.Gres {
		for i := range gres {
			if gres[i].Name == g.Name && gres[i].Type == g.Type {
				gres[i].Units = without(gres[i].Units, g.Units)
			}
		}
	}
	n.Gres = gres
}

func without(list, gone []int32) []int32 {
	out := make([]int32, 0, len(list))
	for _, n := range list {
		if !slices.Contains(gone, n) {
			out = append(out, n)
		}
	}
	return out
}

// CanHold reports whether a step could have h to itself out of what is free on n; whole is what the job has: memory it
// does not count is not held.
func CanHold(n *core.NodeAlloc, h *core.StepHold, whole *core.NodeAlloc) bool {
	if h.CPUs > n.CPUs || whole.Mem > 0 && h.Mem > n.Mem {
		return false
	}
	for _, c := range h.Cores {
		if !slices.Contains(n.Cores, c) {
			return false
		}
	}
	for _, g := range h.Gres {
		for _, u := range g.Units {
			if !slices.ContainsFunc(n.Gres, func(have core.GresAlloc) bool {
				return have.Name == g.Name && have.Type == g.Type && slices.Contains(have.Units, u)
			}) {
				return false
			}
		}
	}
	return true
}
