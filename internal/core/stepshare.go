package core

import "slices"

// StepHold is what a step has to itself on one of its nodes, out of what its job has there.
type StepHold struct {
	CPUs  int32       `json:"cpus,omitempty"`
	Cores []int32     `json:"cores,omitempty"` // which CPUs, where the job knows
	Mem   Bytes       `json:"mem,omitempty"`
	Gres  []GresAlloc `json:"gres,omitempty"`
}

// FreeForSteps is what of a job's nodes no running step of its attempt has to itself.
func FreeForSteps(j *Job, steps []*Step) []NodeAlloc {
	if j.Alloc == nil {
		return nil
	}
	free := slices.Clone(j.Alloc.Nodes)
	for _, st := range steps {
		if st.State.Final() || st.Attempt != j.Attempt {
			continue
		}
		for i := range st.Holds {
			if slices.Contains(st.Ended, int32(i)) { // its node has said that it is over there
				continue
			}
			if at := slices.IndexFunc(free, func(n NodeAlloc) bool { return n.Node == st.Nodes[i] }); at >= 0 {
				free[at].take(&st.Holds[i])
			}
		}
	}
	return free
}

// take lessens what is free by what a step holds. Slices are the job's own and are replaced, never written.
func (n *NodeAlloc) take(h *StepHold) {
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

// Holds tells whether a step could have h to itself out of what is free here; whole is what the job has: memory it does
// not count is not held.
func (n *NodeAlloc) Holds(h *StepHold, whole *NodeAlloc) bool {
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
			if !slices.ContainsFunc(n.Gres, func(have GresAlloc) bool {
				return have.Name == g.Name && have.Type == g.Type && slices.Contains(have.Units, u)
			}) {
				return false
			}
		}
	}
	return true
}
