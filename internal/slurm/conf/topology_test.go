package conf

import (
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
)

func TestTopology(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		conf, topology string
		want           *core.Topology
		notes          int
	}{
		{
			"TopologyPlugin=topology/tree\nSchedulerParameters=max_switch_wait=60,bf_window=10\n",
			"SwitchName=s0 Nodes=n[1-2]\nSwitchName=s1 Nodes=n[3-4] LinkSpeed=5\nSwitchName=t Switches=s[0-1]\n",
			&core.Topology{Kind: "tree", Switches: []core.Switch{
				{Name: "s0", Nodes: "n[1-2]"},
				{Name: "s1", Nodes: "n[3-4]"},
				{Name: "t", Switches: "s[0-1]"},
			}}, 2,
		},
		{
			"TopologyPlugin=topology/block\nSchedulerParameters=max_switch_wait=60\n",
			"BlockName=b1 Nodes=n[1-2]\nBlockName=b2 Nodes=n[3-4]\nBlockSizes=2,4\n",
			&core.Topology{Kind: "block", Blocks: []core.Switch{
				{Name: "b1", Nodes: "n[1-2]"},
				{Name: "b2", Nodes: "n[3-4]"},
			}, BlockSizes: []int32{2, 4}}, 0,
		},
		{"TopologyPlugin=topology/flat\nSchedulerParameters=max_switch_wait=60\n", "SwitchName=s0 Nodes=n[1-2]\n", nil, 0},
		{"TopologyPlugin=topology/torus3d\nSchedulerParameters=max_switch_wait=60\n", "", nil, 1},
	} {
		c, err := ReadFS(fstest.MapFS{
			"slurm.conf":    {Data: []byte(tc.conf)},
			"topology.conf": {Data: []byte(tc.topology)},
		}, "slurm.conf")
		if err != nil {
			t.Fatal(err)
		}
		cfg := config.Default()
		notes, err := c.Apply(cfg)
		if err != nil || len(notes) != tc.notes || cfg.Topology.MaxSwitchWait.D() != time.Minute {
			t.Errorf("%s: %v, notes %v, wait %v", tc.conf, err, notes, cfg.Topology.MaxSwitchWait)
		}
		if d := cmp.Diff(tc.want, cfg.CoreTopology()); d != "" {
			t.Errorf("%s (-want +got):\n%s", tc.conf, d)
		}
	}
}
