package slurm

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/core"
)

func TestTopology(t *testing.T) {
	t.Parallel()
	tree := &core.Topology{Kind: core.TopologyTree, Switches: []core.Switch{
		{Name: "s1", Nodes: "n[1-2]"}, {Name: "s2", Nodes: "n[3-4]"}, {Name: "top", Switches: "s[1-2]"},
	}}
	blocks := &core.Topology{
		Kind: core.TopologyBlock, BlockSizes: []int32{2, 4},
		Blocks: []core.Switch{{Name: "b1", Nodes: "n[1-2]"}, {Name: "b2", Nodes: "n[3-4]"}},
	}
	for _, tc := range []struct {
		t             *core.Topology
		addr, pattern string
		lines         string
	}{
		{tree, "top.s2.n3", "switch.switch.node", "SwitchName=s1 Level=0 LinkSpeed=1 Nodes=n[1-2]\nSwitchName=s2 " +
			"Level=0 LinkSpeed=1 Nodes=n[3-4]\n" +
			"SwitchName=top Level=1 LinkSpeed=1 Nodes=n[1-4] Switches=s[1-2]"},
		{blocks, "b2.n3", "block.node", "BlockName=b1 BlockIndex=0 Nodes=n[1-2] BlockSize=2\nBlockName=b2 " +
			"BlockIndex=1 Nodes=n[3-4] BlockSize=2\n" +
			"AggregatedBlock=b1,b2 BlockIndex=2 Nodes=n[1-4] BlockSize=4"},
		{nil, "n3", "node", ""},
	} {
		places := PlacesOf(tc.t)
		if addr, pattern := places("n3"); addr != tc.addr || pattern != tc.pattern {
			t.Errorf("n3 is at %s, %s; want %s, %s", addr, pattern, tc.addr, tc.pattern)
		}
		if addr, pattern := places("x9"); addr != "x9" || pattern != "node" {
			t.Errorf("a node outside is at %s, %s", addr, pattern)
		}
		if d := cmp.Diff(tc.lines, strings.Join(TopologyLines(tc.t), "\n")); d != "" {
			t.Errorf("lines (-want +got):\n%s", d)
		}
	}
}
