package core

// StepHold is what a step has to itself on one of its nodes, out of what its job has there.
type StepHold struct {
	CPUs  int32       `json:"cpus,omitempty"`
	Cores []int32     `json:"cores,omitempty"` // which CPUs, where the job knows
	Mem   Bytes       `json:"mem,omitempty"`
	Gres  []GresAlloc `json:"gres,omitempty"`
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
