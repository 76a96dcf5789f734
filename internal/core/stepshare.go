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
	places := NodePlaces{List: free}
	for _, st := range steps {
		if st.State.Final() || st.Attempt != j.Attempt || len(st.Holds) == 0 {
			continue
		}
		ended := st.endedNodes()
		for i := range st.Holds {
			if ended != nil && ended[i] { // its node has said that it is over there
				continue
			}
			if at := places.Of(st.Nodes[i]); at >= 0 {
				free[at].take(&st.Holds[i])
			}
		}
	}
	return free
}

// endedNodes says of each node where the step holds something whether it is over there; nil: it is over on none.
func (st *Step) endedNodes() []bool {
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

// NodePlaces finds nodes by name in the list of an allocation. What is looked up in the list's order costs one
// comparison: a search for each node of a large job would hold up the server's writer.
type NodePlaces struct {
	List []NodeAlloc
	next int // the place after the one found last
	all  map[NodeName]int
}

// fewPlaces is the length of a list that is searched without a map.
const fewPlaces = 32

// Of is the place of a node in the list; -1: it is not there.
func (p *NodePlaces) Of(name NodeName) int {
	if p.next < len(p.List) && p.List[p.next].Node == name {
		p.next++
		return p.next - 1
	}
	at := p.search(name)
	if at >= 0 {
		p.next = at + 1
	}
	return at
}

func (p *NodePlaces) search(name NodeName) int {
	if len(p.List) <= fewPlaces {
		for i := range p.List {
			if p.List[i].Node == name {
				return i
			}
		}
		return -1
	}
	if p.all == nil {
		p.all = make(map[NodeName]int, len(p.List))
		for i := range p.List {
			p.all[p.List[i].Node] = i
		}
	}
	if at, ok := p.all[name]; ok {
		return at
	}
	return -1
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

// Holds reports whether a step could have h to itself out of what is free here; whole is what the job has: memory it
// does not count is not held.
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
