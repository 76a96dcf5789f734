package conf

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
)

// TestPlacesOfGPUs: gres.conf says which socket GPUs are at and what joins them; what says nothing of it stays a count.
func TestPlacesOfGPUs(t *testing.T) {
	t.Parallel()
	c, err := ReadFS(fstest.MapFS{
		"slurm.conf": {Data: []byte(`ClusterName=a
SelectTypeParameters=CR_Socket_Memory,CR_LLN
NodeName=DEFAULT Sockets=2 CoresPerSocket=4 RealMemory=1000
NodeName=g[1-2] Gres=gpu:a100:4,nic:2
NodeName=g3 Gres=gpu:2
PartitionName=p Nodes=ALL OverSubscribe=FORCE:2 MaxCPUsPerNode=6 MaxMemPerCPU=500
PartitionName=w Nodes=ALL Exclusive=NODE
`)},
		"gres.conf": {Data: []byte(`NodeName=g[1-2] Name=gpu Type=a100 File=/dev/nvidia0 Cores=0-3 Links=-1,16,0,0
NodeName=g[1-2] Name=gpu Type=a100 File=/dev/nvidia1 Cores=0-3 Links=16,-1,0,0
NodeName=g[1-2] Name=gpu Type=a100 File=/dev/nvidia[2-3] Cores=4-7
NodeName=g3 Name=gpu File=/dev/nvidia[0-1]
`)},
	}, "slurm.conf")
	if err != nil || len(c.Faults) > 0 {
		t.Fatalf("%v, faults %v", err, c.Faults)
	}
	cfg := config.Default()
	if _, err := c.Apply(cfg); err != nil {
		t.Fatal(err)
	}
	nodes := cfg.CoreNodes()
	want := []core.Unit{
		{Name: "gpu", Type: "a100", Index: 0, Socket: 1, Links: 1},
		{Name: "gpu", Type: "a100", Index: 1, Socket: 1, Links: 1},
		{Name: "gpu", Type: "a100", Index: 2, Socket: 2},
		{Name: "gpu", Type: "a100", Index: 3, Socket: 2},
	}
	if diff := cmp.Diff(want, nodes[0].Hardware.Units); diff != "" {
		t.Error(diff)
	}
	if h := nodes[2].Hardware; h.Units != nil || core.CountGres(h.Gres, "gpu") != 2 {
		t.Errorf("g3 has %+v", h)
	}
	p := cfg.CorePartitions()
	if p[0].OverSubscribe != "FORCE:2" || p[0].MaxCPUsPerNode != 6 || p[0].MaxMemPerCPU != 500*core.MiB ||
		p[1].OverSubscribe != "EXCLUSIVE" {
		t.Errorf("partitions %+v", p)
	}
	if cfg.Scheduling.Select != "socket" {
		t.Errorf("select is %q", cfg.Scheduling.Select)
	}
}
