package conf

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
)

const site = `ClusterName=Anchor
SlurmUser=slurm
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityMaxAge=14-0
PriorityDecayHalfLife=0
DefMemPerCPU=10
MaxArraySize=100001
KillWait=5
TaskPlugin=task/cgroup,task/affinity
AccountingStorageEnforce=associations,limits,qos
SlurmctldPort=16817
BurstBufferType=burst_buffer/lua
Licenses=matlab:4,ansys
PreemptType=preempt/qos
PreemptMode=SUSPEND,GANG
PreemptExemptTime=00:10:00
PreemptParameters=youngest_first
MaxTasksPerNode=128
NodeName=n[001-008] NodeHostname=vm Port=[1-8] CPUs=64 Boards=1 SocketsPerBoard=2 CoresPerSocket=32 \
  RealMemory=65536 Gres=gpu:a100:4 Feature=fast,ib State=UNKNOWN
NodeName=h1 Sockets=1 CoresPerSocket=4 ThreadsPerCore=2 Weight=5
NodeSet=speedy Feature=fast
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE DefaultTime=60
PartitionName=quick Nodes=speedy MaxTime=30 MaxNodes=1 PriorityJobFactor=10 PreemptMode=REQUEUE \
  GraceTime=60 TRESBillingWeights=CPU=1.0,Mem=0.25G
`

func TestApply(t *testing.T) {
	t.Parallel()
	c, err := ReadFS(fstest.MapFS{
		"slurm.conf":  {Data: []byte(site)},
		"cgroup.conf": {Data: []byte("ConstrainCores=yes\n")},
	}, "slurm.conf")
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	notes, err := c.Apply(cfg)
	if err != nil {
		t.Fatalf("%v", err)
	}
	if len(notes) != 2 || !strings.Contains(notes[0].String(), "slurm.conf:12: SlurmctldPort=16817: ") ||
		notes[1].Why != "there are no burst buffers" {
		t.Errorf("notes %v", notes)
	}
	if cfg, err = config.ParseOver(cfg, "", nil, "dir=/x"); err != nil {
		t.Fatalf("what was made of it is refused: %v", err)
	}
	if cfg.Cluster != "anchor" || cfg.Jobs.MaxArray != 100001 || cfg.Jobs.MaxTasks != 128 ||
		cfg.Timers.KillWait.String() != "5s" || cfg.Admins[0] != "slurm" ||
		!cfg.Step.ConstrainCPUs || cfg.Step.ConstrainMem || len(cfg.Accounting.Enforce) == 0 ||
		cfg.Priority.MaxAge.String() != "14d" || cfg.Priority.HalfLife != 0 {
		t.Errorf("settings %+v", cfg)
	}
	if len(cfg.Licenses) != 2 || cfg.Licenses[0] != "matlab:4" {
		t.Errorf("licenses %v", cfg.Licenses)
	}
	if p := cfg.Preemption.Core(); p !=
		(core.Preemption{Type: core.PreemptByQOS, Mode: "suspend,gang", Exempt: 600, Order: core.Youngest}) {
		t.Errorf("preemption %+v", p)
	}
	if p := cfg.CorePartitions()[1]; p.PreemptMode != core.PreemptRequeue || p.Grace != 60 {
		t.Errorf("partition %s is preempted by %q after %d", p.Name, p.PreemptMode, p.Grace)
	}
	nodes := cfg.CoreNodes()
	if len(nodes) != 9 || nodes[0].Name != "n001" || nodes[0].Hardware.Sockets != 2 || nodes[0].Hardware.Memory !=
		64*core.GiB || nodes[0].Hardware.Gres[0].Count != 4 ||
		nodes[8].Hardware.CPUs != 8 || nodes[8].Weight != 5 {
		t.Errorf("nodes %+v", nodes)
	}
	parts := cfg.CorePartitions()
	if len(parts) != 2 || !parts[0].Default || parts[0].MaxTime != 0 || parts[0].DefaultTime != 3600 ||
		parts[1].Nodes != "n[001-008]" || parts[1].MaxTime != 1800 ||
		parts[1].MaxNodes != 1 || parts[1].PriorityFactor != 10 {
		t.Errorf("partitions %+v", parts)
	}
}

func TestApplyBad(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"KillWait=soon\n":                              "KillWait=soon: expected a number",
		"NodeName=a CPUs=x\n":                          "CPUs=x: expected a number",
		"NodeName=a CPUs=5 Sockets=2 CoresPerSocket=4": "CPUs=5; 2 sockets",
		"PartitionName=p State=SIDEWAYS\n":             "State=SIDEWAYS: expected UP, DOWN",
		"PriorityType=priority/best\n":                 "priority/basic or",
		"PartitionName=p MaxTime=1:2:3:4\n":            "MaxTime=1:2:3:4: ",
	} {
		c, err := ReadFS(fstest.MapFS{"slurm.conf": {Data: []byte(text)}}, "slurm.conf")
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Apply(config.Default())
		var e *core.Error
		if !errors.As(err, &e) || len(e.Faults) != 1 || e.Faults[0].Path != "slurm.conf:1" ||
			!strings.HasPrefix(e.Faults[0].Message, want) && !strings.Contains(e.Faults[0].Message, want) {
			t.Errorf("%q: %+v, want %q", text, err, want)
		}
	}
}
