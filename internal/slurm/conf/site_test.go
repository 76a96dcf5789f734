package conf

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
)

// TestForAllPartitions: what slurm.conf says of all partitions holds for those whose lines say nothing of it.
func TestForAllPartitions(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	notes, err := parsed(t, "OverTimeLimit=5\nDisableRootJobs=YES\nDefMemPerNode=100\nDefCpuPerGPU=2\nDefMemPerGPU=300\n"+
		"NodeName=n1 CPUs=2\nPartitionName=a Nodes=n1\nPartitionName=b Nodes=n1 OverTimeLimit=UNLIMITED "+
		"DisableRootJobs=NO DefMemPerCPU=7 JobDefaults=DefCpuPerGPU=9 Hidden=YES CpuBind=cores\n").Apply(cfg)
	if err != nil || len(notes) != 0 {
		t.Fatal(notes, err)
	}
	show := func(p config.Partition) string {
		return fmt.Sprintf("%d %v %d %d %d %d", p.OverTime, p.NoRoot, p.DefMemPerNode/config.Size(core.MiB),
			p.DefMemPerCPU/config.Size(core.MiB), p.DefCPUsPerGPU, p.DefMemPerGPU/config.Size(core.MiB))
	}
	if got := show(cfg.Partitions[0]); got != "300 true 100 0 2 300" {
		t.Errorf("a has %s", got)
	}
	if got, want := show(cfg.Partitions[1]), fmt.Sprintf("%d false 0 7 9 0", forever); got != want {
		t.Errorf("b has %s, want %s", got, want)
	}
}

// TestDownNodes: DownNodes lines set the state in which nodes begin.
func TestDownNodes(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	_, err := parsed(t, "NodeName=n[1-4] CPUs=2\nNodeName=m1 CPUs=1\nDownNodes=n[2-3] State=DRAIN Reason=\"new disk\"\n"+
		"DownNodes=m1\nPartitionName=a Nodes=ALL\n").Apply(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, n := range cfg.Nodes {
		got = append(got, fmt.Sprintf("%s %d %s %s", n.Names, n.CPUs, n.State, n.Reason))
	}
	if d := cmp.Diff([]string{"n[1,4] 2  ", "n[2-3] 2 drain new disk", "m1 1 down "}, got); d != "" {
		t.Error(d)
	}
	for text, want := range map[string]string{
		"NodeName=n1\nDownNodes=n9\n":             "slurm.conf:2 DownNodes=n9: no NodeName line has it",
		"NodeName=n1\nDownNodes=n1 State=HAPPY\n": "slurm.conf:2 State=happy: expected DOWN, DRAIN or FAIL",
		"NodeName=n1\nPartitionName=p Nodes=n[1-3]\n": "slurm.conf:2 partition p: there is no node n[2-3]: " +
			"no NodeName line has it",
	} {
		_, err := parsed(t, text).Apply(config.Default())
		if f := core.FaultsOf(err); len(f) != 1 || f[0].Path+" "+f[0].Message != want {
			t.Errorf("%q: %v, want %s", text, f, want)
		}
	}
}

// bigSite is a slurm.conf of 1,000 nodes with typed GRES, and a topology of 40 leaf switches.
func bigSite() fstest.MapFS {
	var conf, gres, topo strings.Builder
	conf.WriteString("ClusterName=big\nSlurmctldHost=ctl\nSlurmUser=root\nGresTypes=gpu\nTopologyPlugin=topology/tree\n" +
		"SelectType=select/cons_tres\nSelectTypeParameters=CR_Core_Memory\nPriorityType=priority/multifactor\n")
	for i := range 1000 { // a line each, as generated files have them
		fmt.Fprintf(&conf, "NodeName=node%04d NodeAddr=10.0.%d.%d Sockets=2 CoresPerSocket=32 ThreadsPerCore=2 "+
			"RealMemory=1031000 Gres=gpu:a100:4,gpu:h100:4 Feature=ib,rack%d Weight=%d State=UNKNOWN\n", i, i/250,
			i%250+1, i/25, i%10+1)
	}
	for i := range 20 {
		fmt.Fprintf(&conf, "PartitionName=p%02d Nodes=node[%04d-%04d] MaxTime=7-0 DefaultTime=60 PriorityTier=%d "+
			"AllowAccounts=a%d TRESBillingWeights=CPU=1.0,Mem=0.25G,GRES/gpu=8\n", i, i*50, i*50+49, i, i)
	}
	conf.WriteString("PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE\n")
	for _, kind := range []string{"a100", "h100"} {
		fmt.Fprintf(&gres, "NodeName=node[0000-0999] Name=gpu Type=%s Count=4 Cores=0-31\n", kind)
	}
	for i := range 40 {
		fmt.Fprintf(&topo, "SwitchName=leaf%02d Nodes=node[%04d-%04d]\n", i, i*25, i*25+24)
	}
	topo.WriteString("SwitchName=spine Switches=leaf[00-39]\n")
	return fstest.MapFS{
		"slurm.conf": {Data: []byte(conf.String())}, "gres.conf": {Data: []byte(gres.String())},
		"topology.conf": {Data: []byte(topo.String())},
	}
}

// loadSite reads a site's files as a server does: parsed, converted, checked, and made into the engine's records.
func loadSite(fsys fstest.MapFS) (*config.Config, error) {
	c, err := ReadFS(fsys, "slurm.conf")
	if err != nil {
		return nil, err
	}
	cfg := config.Default()
	if _, err := c.Apply(cfg); err != nil {
		return nil, err
	}
	if cfg, err = config.ParseOver(cfg, "", nil, "dir=/x"); err != nil {
		return nil, err
	}
	return cfg, nil
}

// TestBigSite: all of it is there.
func TestBigSite(t *testing.T) {
	t.Parallel()
	cfg, err := loadSite(bigSite())
	if err != nil {
		t.Fatal(err, core.FaultsOf(err))
	}
	nodes, tree := cfg.CoreNodes(), cfg.CoreTopology()
	if len(nodes) != 1000 || len(nodes[999].Hardware.Gres) != 2 || len(cfg.CorePartitions()) != 21 || tree == nil {
		t.Errorf("%d nodes, %d partitions, topology %v", len(nodes), len(cfg.CorePartitions()), tree != nil)
	}
}

// BenchmarkLoadSite loads a slurm.conf of 1,000 nodes with typed GRES and a topology, the aim being one second.
func BenchmarkLoadSite(b *testing.B) {
	files := bigSite()
	for b.Loop() {
		cfg, err := loadSite(files)
		if err != nil {
			b.Fatal(err)
		}
		if len(cfg.CoreNodes()) != 1000 || cfg.CoreTopology() == nil {
			b.Fatal("nodes or topology are missing")
		}
	}
}

// TestCompletions: JobCompType=jobcomp/filetxt and JobCompLoc, in any order.
func TestCompletions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"JobCompType=jobcomp/filetxt\n":                  "/var/log/slurm_jobcomp.log",
		"JobCompLoc=/x\nJobCompType=jobcomp/filetxt\n":   "/x",
		"JobCompType=jobcomp/none\nJobCompLoc=/x\n":      "",
		"JobCompLoc=http://x\nJobCompType=jobcomp/kafka": "",
	} {
		cfg := config.Default()
		notes, err := parsed(t, text).Apply(cfg)
		if err != nil || cfg.Accounting.CompletedFile != want || len(notes) != strings.Count(text, "kafka") {
			t.Errorf("%q: %q, %v %v", text, cfg.Accounting.CompletedFile, notes, err)
		}
	}
}
