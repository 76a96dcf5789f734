package config

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/core"
)

func TestTopology(t *testing.T) {
	t.Parallel()
	c, err := Parse("site.yml", []byte(`
topology:
  kind: tree
  max_switch_wait: 1m
  switches:
    - {name: s1, nodes: "n[1-4]"}
    - {name: s2, nodes: "n[5-8]"}
    - {name: top, switches: "s[1-2]"}
`))
	if err != nil {
		t.Fatalf("%+v", err)
	}
	want := &core.Topology{Kind: "tree", Switches: []core.Switch{
		{Name: "s1", Nodes: "n[1-4]"},
		{Name: "s2", Nodes: "n[5-8]"},
		{Name: "top", Switches: "s[1-2]"},
	}}
	if d := cmp.Diff(want, c.CoreTopology()); d != "" || c.Topology.MaxSwitchWait.D() != time.Minute {
		t.Errorf("tree (-want +got):\n%s", d)
	}
	c, err = Parse("site.yml",
		[]byte(
			`topology: {kind: block, block_sizes: [2, 4], blocks: [{name: b1, nodes: "n[1-2]"}, {name: b2, nodes: "n[3-5]"}]}`))
	if err != nil {
		t.Fatalf("%+v", err)
	}
	want = &core.Topology{
		Kind:   "block",
		Blocks: []core.Switch{{Name: "b1", Nodes: "n[1-2]"}, {Name: "b2", Nodes: "n[3-5]"}}, BlockSizes: []int32{2, 4},
	}
	if d := cmp.Diff(want, c.CoreTopology()); d != "" {
		t.Errorf("blocks (-want +got):\n%s", d)
	}
	if c := Default(); c.CoreTopology() != nil || c.Topology.MaxSwitchWait.D() != 5*time.Minute {
		t.Errorf("default: %+v", c.Topology)
	}
}

func TestTopologyFaults(t *testing.T) {
	t.Parallel()
	for _, tc := range [][2]string{
		{`{kind: ring}`, `"ring" is not one of tree, block`},
		{`{kind: block, switches: [{name: a, nodes: n1}]}`, "only a topology of kind tree has switches"},
		{`{kind: tree, block_sizes: [4]}`, "only a topology of kind block has blocks and block sizes"},
		{`{kind: tree, switches: [{name: a, nodes: n1}, {name: b, nodes: "n[1-2]"}]}`, "node n1 is already under a"},
		{
			`{kind: tree, switches: [{name: a, nodes: n1}, {name: a, nodes: n2}]}`,
			`"a" is already the name of topology.switches[0]`,
		},
		{`{kind: tree, switches: [{name: a}]}`, `switch "a" needs nodes or switches, and not both`},
		{`{kind: tree, switches: [{name: a, switches: b}]}`, `there is no switch "b"`},
		{`{kind: tree, switches: [{name: a, switches: b}, {name: b, switches: a}]}`, "switch a contains itself"},
		{
			`{kind: block, block_sizes: [3], blocks: [{name: a, nodes: "n[1-2]"}]}`,
			"larger than the smallest block, which has 2 node(s)",
		},
		{`{kind: block, block_sizes: [2, 3], blocks: [{name: a, nodes: "n[1-2]"}]}`, "3 is not a multiple of 2"},
		{`{kind: tree, switches: [{name: a, nodes: "n[1-"}]}`, ""},
		{`{kind: tree, max_switch_wait: -1s}`, ""},
		{
			`{kind: tree, switches: [{name: a, nodes: n1}, {name: b, switches: "a"}, {name: c, switches: "a"}]}`,
			"switch a is already under b",
		},
	} {
		text, want := tc[0], tc[1]
		_, err := Parse("site.yml", []byte("topology: "+text))
		var e *core.Error
		if !errors.As(err, &e) || len(e.Faults) == 0 {
			t.Errorf("%s: %v", text, err)
		} else if want != "" && e.Faults[0].Message != want {
			t.Errorf("%s: %+v, want %s", text, e.Faults, want)
		}
	}
}
