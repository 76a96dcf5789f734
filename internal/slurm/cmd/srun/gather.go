package srun

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

// gathers are the exchanges of a PMIx program's nodes; see pmix.Message. Payloads are not read here.
type gathers struct {
	open map[string]*gather
	// The last that was answered of each set of tasks: a node may not have heard it. A node comes to the next only when
	// it has.
	last  map[string]*gather
	order []string // of last, oldest first
	abort int32    // the status by which a task ended the step; zero: none did
}

type gather struct {
	op   string
	came map[place]bool
	all  []byte
	err  string
}

// Bounds of what is kept for nodes.
const (
	maxGathers = 1024
	maxGather  = wire.MaxFrame / 2 // bytes of all nodes together
)

// pass takes a message of a node for others.
func (p *pump) pass(ctx context.Context, part int, m wire.StepMeet, payload []byte) error {
	kind, rest, _ := strings.Cut(m.Op, "/")
	switch {
	case m.Op == wire.MeetAbort:
		p.gathers.abort = cmp.Or(p.gathers.abort, int32(m.N&0xff)) // others may end because of the first
		p.abort(ctx)
		return nil
	case kind != "fence": // a question to whoever has the answer, or the answer
		return p.links.Send(wire.TypeStepMeet, wire.StepMeet{Op: m.Op}, payload)
	}
	set, _, _ := strings.Cut(rest, "/")
	if l := p.gathers.last[set]; l != nil && l.op == m.Op {
		return p.answer(l)
	}
	g := p.gathers.open[m.Op]
	if g == nil {
		if len(p.gathers.open) >= maxGathers {
			return fmt.Errorf("more than %d sets of tasks meet at once", maxGathers)
		}
		g = &gather{op: m.Op, came: map[place]bool{}}
		if p.gathers.open == nil {
			p.gathers.open, p.gathers.last = map[string]*gather{}, map[string]*gather{}
		}
		p.gathers.open[m.Op] = g
	}
	if at := (place{part, m.Node}); !g.came[at] {
		g.came[at] = true
		g.all = append(g.all, payload...)
	}
	if len(g.all) > maxGather {
		g.all, g.err = nil, "too many keys and values"
	}
	if g.err = cmp.Or(g.err, m.Err); g.err == "" && len(g.came) < m.Nodes {
		return nil
	}
	delete(p.gathers.open, m.Op)
	p.gathers.keep(set, g)
	return p.answer(g)
}

func (p *pump) answer(g *gather) error {
	return p.links.Send(wire.TypeStepMeet, wire.StepMeet{Op: g.op, Err: g.err}, g.all)
}

// keep remembers an answer in place of the one before it.
func (g *gathers) keep(set string, done *gather) {
	if g.last[set] == nil {
		if len(g.order) >= maxGathers {
			delete(g.last, g.order[0])
			g.order = g.order[1:]
		}
		g.order = append(g.order, set)
	}
	g.last[set] = done
}

// aborted is how the step ended, if a task ended it: by the status that it gave.
func (g *gathers) aborted(code int, exit core.Exit) (int, core.Exit) {
	if g.abort == 0 {
		return code, exit
	}
	return int(g.abort), core.Exit{Code: g.abort}
}
