package samples

import (
	"testing"
	"time"

	"bireme.dev/bireme/internal/core"
)

func sample(at time.Duration, node core.NodeName, util float64, mem core.Bytes) *core.Sample {
	return &core.Sample{
		At: core.Time(1).Add(at), Node: node, CPU: at, Mem: core.GiB,
		GPUs: []core.UnitUse{{Index: 3, Util: util, Mem: mem}},
	}
}

func TestSamplesAreKeptAndAddedUp(t *testing.T) {
	t.Parallel()
	dir, k := t.TempDir(), Key{Job: 7, Attempt: 1}
	s := New(dir)
	for i, util := range []float64{50, 100} {
		if err := s.Add(k, sample(time.Duration(i)*10*time.Second, "a", util, core.GiB)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = New(dir) // the server was started again
	defer s.Close()
	if err := s.Add(k, sample(20*time.Second, "b", 60, 2*core.GiB)); err != nil {
		t.Fatal(err)
	}
	var u core.Usage
	s.Use(k, &u)
	want := core.Usage{GPUUtil: 160, GPUUtilAve: 103, GPUMem: 3 * core.GiB, GPUMemAve: 5 * core.GiB / 3}
	if u != want {
		t.Errorf("%+v, want %+v", u, want)
	}
	list, err := s.Read(k)
	if err != nil || len(list) != 3 || list[2].Node != "b" || list[1].GPUs[0].Util != 100 {
		t.Errorf("%v %v", list, err)
	}
	s.End(k)
	u = core.Usage{}
	if s.Use(k, &u); u != (core.Usage{}) {
		t.Errorf("after its end: %+v", u)
	}
	if list, err := s.Read(k); err != nil || len(list) != 3 {
		t.Errorf("after its end: %v %v", list, err)
	}
	if list, err := s.Read(Key{Job: 8, Attempt: 1}); err != nil || list != nil {
		t.Errorf("of nobody: %v %v", list, err)
	}
}

func TestLongJobsAreThinnedOut(t *testing.T) {
	t.Parallel()
	s, k := New(t.TempDir()), Key{Job: 1, Attempt: 1}
	defer s.Close()
	for at := time.Duration(0); at < 2*time.Hour; at += 10 * time.Second {
		if err := s.Add(k, sample(at, "a", 10, core.MiB)); err != nil {
			t.Fatal(err)
		}
	}
	list, err := s.Read(k)
	if err != nil || len(list) != 361+59 {
		t.Errorf("%d samples are kept, %v", len(list), err)
	}
}
