package srun

import (
	"encoding/json"
	"maps"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

// fences are the meetings of an MPI program's tasks: srun hears each node and tells all.
type fences struct {
	open map[int]*fence
	last *fence // the one that was answered last: a node may not have heard it
}

// fence is one of them.
type fence struct {
	n    int
	came map[place]bool
	all  map[string]string
	text []byte // the answer
}

// place is a node of a part.
type place struct {
	part int
	node core.NodeName
}

// meet takes one node's part. When all have come they are told what everybody put.
func (p *pump) meet(part int, m wire.StepMeet, payload []byte) error {
	if l := p.fences.last; l != nil && m.N <= l.n {
		if m.N < l.n { // it has heard that one: it came to the next
			return nil
		}
		return p.links.Send(wire.TypeStepMeet, wire.StepMeet{N: l.n}, l.text)
	}
	f := p.fences.open[m.N]
	if f == nil {
		f = &fence{n: m.N, came: map[place]bool{}, all: map[string]string{}}
		if p.fences.open == nil {
			p.fences.open = map[int]*fence{}
		}
		p.fences.open[m.N] = f
	}
	var mine map[string]string
	if err := json.Unmarshal(payload, &mine); err != nil {
		return err
	}
	maps.Copy(f.all, mine)
	f.came[place{part, m.Node}] = true
	if len(f.came) < p.nodes {
		return nil
	}
	var err error
	if f.text, err = json.Marshal(f.all); err != nil {
		return err
	}
	delete(p.fences.open, f.n)
	p.fences.last = f
	return p.links.Send(wire.TypeStepMeet, wire.StepMeet{N: f.n}, f.text)
}
