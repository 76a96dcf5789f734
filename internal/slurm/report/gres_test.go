package report

import (
	"testing"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
)

// TestNodeGres has what show node and sinfo of Slurm 22.05.8 print (node.show, sinfo.gres): parts of GPUs are where the
// GPUs are, and only devices have indices.
func TestNodeGres(t *testing.T) {
	t.Parallel()
	node := func(kind string) *client.Node {
		n := &client.Node{}
		n.Hardware.Gres = []core.Gres{
			{Name: "gpu", Type: kind, Count: 4}, {Name: "mps", Count: 400}, {Name: "craynetwork", Count: 4},
		}
		n.Hardware.Units = []core.Unit{
			{Name: "gpu", Type: kind, Socket: 1},
			{Name: "gpu", Type: kind, Socket: 1},
			{Name: "gpu", Type: kind, Socket: 2},
			{Name: "gpu", Type: kind, Socket: 2},
		}
		return n
	}
	for kind, want := range map[string][2]string{
		"": {
			"gpu:4(S:0-1),mps:400(S:0-1),craynetwork:4",
			"gpu:(null):0(IDX:N/A),mps:(null):0(IDX:N/A),craynetwork:0",
		},
		"a100": {
			"gpu:a100:4(S:0-1),mps:a100:400(S:0-1),craynetwork:4",
			"gpu:a100:0(IDX:N/A),mps:a100:0(IDX:N/A),craynetwork:0",
		},
	} {
		n := node(kind)
		if got := nodeGres(&n.Hardware); got != want[0] {
			t.Errorf("Gres=%s, want %s", got, want[0])
		}
		if got := gresUsed(n); got != want[1] {
			t.Errorf("GresUsed=%s, want %s", got, want[1])
		}
	}
}
