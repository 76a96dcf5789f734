package conf

import (
	"errors"
	"slices"
	"testing"
	"testing/fstest"
	"time"

	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
)

// What becomes of jobs where no option says it.
func TestJobKeys(t *testing.T) {
	t.Parallel()
	const head = "ClusterName=c\nNodeName=n1 CPUs=1\nPartitionName=p Nodes=n1\n"
	apply := func(text string) (*config.Config, error) {
		c, err := ReadFS(fstest.MapFS{"slurm.conf": {Data: []byte(head + text)}}, "slurm.conf")
		if err != nil {
			return nil, err
		}
		cfg := config.Default()
		_, err = c.Apply(cfg)
		return cfg, err
	}
	cfg, err := apply("RequeueExit=1,5-7\nRequeueExitHold=9\nMinJobAge=2\nWaitTime=30\nJobRequeue=0\nJobFileAppend=1\n" +
		"KillOnBadExit=1\nDependencyParameters=kill_invalid_depend,max_depend_depth=5\nPrologFlags=Alloc,Contain\n")
	if err != nil {
		t.Fatal(err)
	}
	j := &cfg.Jobs
	if codes, _ := config.ParseExitCodes(j.RequeueExit); !slices.Equal(codes, []int32{1, 5, 6, 7}) ||
		j.RequeueExitHold != "9" || j.RequeueDelay.D() != 2*time.Minute || j.MinAge.D() != 2*time.Second ||
		j.WaitTime.D() != 30*time.Second || j.MayRequeue || !j.AppendOutput || !j.KillOnBadExit || !j.KillInvalidDep {
		t.Errorf("%+v", j)
	}
	_, err = apply("RequeueExit=300\nRequeueExitHold=7-5\nJobRequeue=yes\nDependencyParameters=x\nPrologFlags=Alloc,foo\n")
	var e *core.Error
	if !errors.As(err, &e) || len(e.Faults) != 5 {
		t.Fatalf("of five faults: %v", err)
	}
	for i, f := range e.Faults {
		if want := "slurm.conf:" + string(rune('4'+i)); f.Path != want {
			t.Errorf("%q is told of at %s, want %s", f.Message, f.Path, want)
		}
	}
}
