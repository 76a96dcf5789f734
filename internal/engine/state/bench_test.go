package state

import (
	"crypto/sha256"
	"fmt"
	"runtime"
	"testing"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
	"bireme.dev/bireme/internal/sched"
)

// cluster is a state with nodes and one user.
func cluster(tb testing.TB, nodes int) *State {
	tb.Helper()
	st := New(Config{}, &Image{})
	st.Advance(epoch)
	apply := func(in Input) {
		if _, err := st.Apply(in); err != nil {
			tb.Fatal(err)
		}
	}
	apply(&EnsureUser{UID: 1000, UnixName: "alice"})
	for i := range nodes {
		n := coretest.Node(core.NodeName(fmt.Sprintf("n%d", i+1))).CPUs(64).Mem(256 * core.GiB).Build()
		apply(&Register{Node: n.Name, Hardware: n.Hardware, Host: n.Host, Roles: n.Roles})
	}
	st.Flush()
	return st
}

// typical is the submission of a small batch job as sbatch sends it, with unique script and environment.
func typical(i int) *Submit {
	id := []byte(fmt.Sprint(i))
	spec := coretest.Job().Name("job").CPUs(4).Mem(4 * core.GiB).Time(time.Hour).Set(func(s *core.Spec) {
		s.Script, s.Env = sha256.Sum256(append(id, 's')), sha256.Sum256(append(id, 'e'))
		s.IO = core.IO{WorkDir: "/home/alice/project", Stdout: "/home/alice/project/slurm-%j.out"}
		s.From = core.Origin{Host: "login1", Dir: "/home/alice/project", Command: "/home/alice/project/job.sh", Line: "sbatch job.sh", Sid: 4711}
		s.Shape.Given = core.GivenCPUsPerTask | core.GivenMemPerNode
	}).Spec()
	return &Submit{By: core.Identity{User: "alice", UID: 1000}, Spec: spec, Key: fmt.Sprintf("01234567-89ab-cdef-0123-%012d", i)}
}

// BenchmarkSubmit is one submission through Apply, flushed by the hundred. The budget is 3 µs.
func BenchmarkSubmit(b *testing.B) {
	st := cluster(b, 100)
	const round = 10_000
	ins := make([]*Submit, round)
	n := 0
	for b.Loop() {
		if n%round == 0 {
			b.StopTimer()
			for i := range ins {
				ins[i] = typical(n + i)
			}
			b.StartTimer()
		}
		if _, err := st.Apply(ins[n%round]); err != nil {
			b.Fatal(err)
		}
		if n++; n%100 == 0 {
			st.Flush()
		}
	}
}

// BenchmarkArray is the submission of an array of 100,000 tasks. The budget is 10 ms end to end.
func BenchmarkArray(b *testing.B) {
	st := cluster(b, 100)
	st.cfg.MaxJobs = 1 << 40
	for i := 0; b.Loop(); i++ {
		in := typical(i)
		in.Spec.Array = "0-99999"
		if _, err := st.Apply(in); err != nil {
			b.Fatal(err)
		}
		st.Flush()
	}
}

// BenchmarkArrayTask is the start and the end of one task of an array of 100,000.
func BenchmarkArrayTask(b *testing.B) {
	st := cluster(b, 1)
	task, base := int32(0), core.JobID(0)
	for n := 1; b.Loop(); n++ {
		if task == 0 {
			in := typical(n)
			in.Spec.Array = "0-99999"
			reply, err := st.Apply(in)
			if err != nil {
				b.Fatal(err)
			}
			base = reply.(*Submitted).ID
		}
		reply, err := st.Apply(&Start{Job: base, Task: task, Alloc: &core.Alloc{Partition: "main", Nodes: []core.NodeAlloc{{Node: "n1", CPUs: 4, Cores: []int32{0, 1, 2, 3}, Tasks: 1}}}})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := st.Apply(&Exited{Node: "n1", Job: reply.(*Started).ID, Attempt: 1, Step: "batch", JobDone: true}); err != nil {
			b.Fatal(err)
		}
		if task = (task + 1) % 100_000; n%100 == 0 {
			st.Flush()
		}
	}
}

// BenchmarkMemory tells what a waiting job takes in state and planner. The budget is 2 KiB, spec and submit key included.
func BenchmarkMemory(b *testing.B) {
	const jobs = 50_000
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for b.Loop() {
		st := cluster(b, 1)
		p := sched.New(PlannerConfig(Config{}))
		p.Apply(st.All())
		before := heap()
		for i := range jobs {
			if _, err := st.Apply(typical(i)); err != nil {
				b.Fatal(err)
			}
			if i%100 == 99 {
				p.Apply(st.Flush().Touched)
				st.Snapshot()
			}
		}
		p.Pass(epoch)
		b.ReportMetric(float64(heap()-before)/jobs, "bytes/job")
		runtime.KeepAlive(st)
		runtime.KeepAlive(p)
	}
}
