package conf

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
)

func TestRead(t *testing.T) {
	t.Parallel()
	c, err := ReadFS(fstest.MapFS{
		"slurm.conf": {Data: []byte(`# a site
ClusterName=Anchor
SlurmctldHost=a(10.0.0.1)
SlurmctldHost=b
schedulerparameters=bf_window=10,\
default_queue_depth=5 # the rest is a comment
MailProg="/usr/bin/my mail" EnforcePartLimits=ANY
Include nodes-%c.conf
PartitionName=DEFAULT MaxTime=1:00:00 State=UP
PartitionName=main Nodes=ALL Default=YES
PartitionName=long Nodes=big MaxTime=7-0
NodeSet=big Feature=large
DownNodes=n3 State=DRAIN Reason="bad fan"
`)},
		"nodes-anchor.conf": {Data: []byte("NodeName=DEFAULT CPUs=4 RealMemory=1000\r\nNodeName=n[1-3] " +
			"RealMemory=2000\nNodeName=g1 Gres=gpu:a100:4\n")},
		"gres.conf":     {Data: []byte("NodeName=g1 Name=gpu Type=a100 File=/dev/nvidia[0-3]\n")},
		"cgroup.conf":   {Data: []byte("ConstrainCores=yes\n")},
		"topology.conf": {Data: []byte("SwitchName=s0 Nodes=n[1-3]\nSwitchName=s1 Switches=s0\n")},
	}, "slurm.conf")
	if err != nil || len(c.Faults) > 0 {
		t.Fatalf("%v, faults %v", err, c.Faults)
	}
	var got strings.Builder
	for _, s := range c.Settings {
		fmt.Fprintf(&got, "%s %s=%s\n", s.Where, s.Key, s.Value)
	}
	for _, n := range c.Nodes {
		mem, _ := n.Get("realmemory")
		cpus, _ := n.Get("CPUs")
		fmt.Fprintf(&got, "%s %v cpus=%s mem=%s\n", n.Where, n.Names, cpus, mem)
	}
	for _, p := range c.Partitions {
		most, _ := p.Get("MaxTime")
		fmt.Fprintf(&got, "%s %s max=%s\n", p.Where, p.Name, most)
	}
	reason, _ := c.Down[0].Get("Reason")
	fmt.Fprintf(&got, "%s %q; %s; gres %s; cgroup %s; switch %s %s\n", c.Down[0].Name, reason, c.NodeSets[0].Name,
		c.Gres[0].Name, c.Cgroup[0].Key, c.Switches[0].Name, c.Switches[1].Name)
	want := `slurm.conf:2 ClusterName=Anchor
slurm.conf:3 SlurmctldHost=a(10.0.0.1)
slurm.conf:4 SlurmctldHost=b
slurm.conf:5 schedulerparameters=bf_window=10,default_queue_depth=5
slurm.conf:7 MailProg=/usr/bin/my mail
slurm.conf:7 EnforcePartLimits=ANY
nodes-anchor.conf:2 [n1 n2 n3] cpus=4 mem=2000
nodes-anchor.conf:3 [g1] cpus=4 mem=1000
slurm.conf:10 main max=1:00:00
slurm.conf:11 long max=7-0
n3 "bad fan"; big; gres gpu; cgroup ConstrainCores; switch s0 s1
`
	if got.String() != want {
		t.Errorf("read:\n%s\nwant:\n%s", got.String(), want)
	}
}

func TestReadBad(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ text, want string }{
		"no value":     {"ClusterName\n", `slurm.conf:1: "ClusterName" is not KEY=VALUE`},
		"open quotes":  {"\nMailProg=\"x\n", "slurm.conf:2: the quotes of MailProg are not closed"},
		"no include":   {"Include gone.conf\n", "slurm.conf:1: Include gone.conf: open gone.conf: file does not exist"},
		"circle":       {"Include slurm.conf\n", "slurm.conf:1: 16 files include each other in a row; is it a circle?"},
		"twice":        {"NodeName=a\nNodeName=a\n", "slurm.conf:2: node a is there already, at slurm.conf:1"},
		"bad names":    {"NodeName=a[1\n", "slurm.conf:1: NodeName=a[1 is no list of names"},
		"default addr": {"NodeName=DEFAULT NodeAddr=x\n", "slurm.conf:1: NodeAddr is not allowed with NodeName=DEFAULT"},
		"two partition": {
			"PartitionName=p\nPartitionName=p\n",
			"slurm.conf:2: partition p is there already, at slurm.conf:1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := ReadFS(fstest.MapFS{"slurm.conf": {Data: []byte(tc.text)}}, "slurm.conf")
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range c.Faults {
				if f.String() == tc.want {
					return
				}
			}
			t.Errorf("faults %v, want %q", c.Faults, tc.want)
		})
	}
	if _, err := ReadFS(fstest.MapFS{}, "slurm.conf"); err == nil {
		t.Error("a file that is not there was read")
	}
}
