package srun

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

// say takes a message of a node.
func (p *pump) say(t *testing.T, node, op string, nodes int, payload, fault string) {
	t.Helper()
	m := wire.StepMeet{Node: core.NodeName(node), Op: op, Nodes: nodes, Err: fault}
	if err := p.pass(context.Background(), 0, m, []byte(payload)); err != nil {
		t.Fatal(err)
	}
}

func TestGather(t *testing.T) {
	p := &pump{}
	p.say(t, "n1", "fence/all/0", 2, "one", "")
	p.say(t, "n1", "fence/all/0", 2, "one", "") // again: it has heard nothing
	if g := p.gathers.open["fence/all/0"]; g == nil || len(g.came) != 1 || string(g.all) != "one" {
		t.Fatalf("%+v", p.gathers)
	}
	p.say(t, "n2", "fence/all/0", 2, "two", "")
	p.say(t, "n1", "fence/all/0", 2, "one", "") // the answer was lost
	if g := p.gathers.last["all"]; len(p.gathers.open) != 0 || g == nil || string(g.all) != "onetwo" {
		t.Fatalf("%+v", p.gathers)
	}
	// A task that is gone ends a fence at once, also for the node that comes later.
	p.say(t, "n1", "fence/all/1", 2, "", "task 3 is gone")
	p.say(t, "n2", "fence/all/1", 2, "two", "")
	if g := p.gathers.last["all"]; len(p.gathers.open) != 0 || g.op != "fence/all/1" || g.err != "task 3 is gone" {
		t.Fatalf("%+v", p.gathers)
	}
	// Questions and answers are passed on, nothing is kept.
	p.say(t, "n1", "ask/7", 0, "key", "")
	p.say(t, "n2", "tell/7", 0, "value", "")
	for i := range maxGathers + 10 {
		p.say(t, "n1", fmt.Sprintf("fence/set%d/0", i), 1, "", "")
	}
	if len(p.gathers.last) != maxGathers || len(p.gathers.order) != maxGathers || p.gathers.last["all"] != nil {
		t.Errorf("%d answers are kept", len(p.gathers.last))
	}
	p.say(t, "n1", "fence/big/0", 2, strings.Repeat("x", maxGather+1), "")
	if g := p.gathers.last["big"]; g == nil || g.err == "" || len(g.all) != 0 {
		t.Errorf("too much is passed on")
	}
}
