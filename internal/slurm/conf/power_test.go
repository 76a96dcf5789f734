package conf

import (
	"fmt"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/config"
)

func parsed(t *testing.T, text string) *Conf {
	t.Helper()
	c, err := ReadFS(fstest.MapFS{"slurm.conf": {Data: []byte(text)}}, "slurm.conf")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestPower: power saving is read as Slurm has it.
func TestPower(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	notes, err := parsed(
		t,
		"ClusterName=x\nSuspendProgram=/bin/off\nResumeProgram=/bin/on\nResumeFailProgram=/bin/lost\nSuspendTime=600\n"+
			"SuspendTimeout=45\nResumeTimeout=300\n"+
			"SuspendExcNodes=n1\nSuspendExcParts=a,b\nNodeName=n1 CPUs=2\nNodeName=c[1-2] CPUs=2 "+
			"State=CLOUD\nNodeName=f1 State=FUTURE\nNodeName=d1 State=DOWN Reason=\"no disk\"\nPartitionName=p "+
			"Nodes=ALL\n").Apply(cfg)
	if err != nil || len(notes) != 0 {
		t.Fatalf("%v %v", notes, err)
	}
	want := config.Power{
		SuspendProgram: "/bin/off", ResumeProgram: "/bin/on", ResumeFailProgram: "/bin/lost",
		SuspendTime:    config.Duration(10 * time.Minute),
		SuspendTimeout: config.Duration(45 * time.Second), ResumeTimeout: config.Duration(5 * time.Minute),
		ExcludeNodes: "n1", ExcludePartitions: []string{"a", "b"},
	}
	if diff := cmp.Diff(want, cfg.Power); diff != "" {
		t.Error(diff)
	}
	if cfg.Reboot.Timeout != config.Duration(5*time.Minute) {
		t.Errorf("a restart may take %v", cfg.Reboot.Timeout)
	}
	var got []string
	for _, n := range cfg.CoreNodes() {
		got = append(got, fmt.Sprintf("%s %s %v %s", n.Name, n.Flags, n.Cloud, n.Reason))
	}
	if diff := cmp.Diff([]string{
		"n1 unknown false ", "c1 unknown,powered-down true ", "c2 unknown,powered-down true ",
		"f1 unknown,future false ", "d1 unknown,down false no disk",
	}, got); diff != "" {
		t.Error(diff)
	}
	cfg.Power.SuspendTime = 1
	if _, err := parsed(t, "ClusterName=x\nSuspendTime=INFINITE\nPartitionName=p Nodes=ALL\n").Apply(cfg); err != nil ||
		cfg.Power.SuspendTime != 0 {
		t.Errorf("never: %v %v", cfg.Power.SuspendTime, err)
	}
}
