package state

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
	"bireme.dev/bireme/internal/core/taskset"
	"bireme.dev/bireme/internal/sched"
	"bireme.dev/bireme/internal/sched/fit"
)

// endBatch takes what the planner and the store are given, as the engine does.
func endBatch(st *State) sched.Changes {
	c := st.PlannerChanges()
	st.Flush()
	return c
}

// benchCluster is a state with nodes and one user.
func benchCluster(tb testing.TB, nodes int) *State {
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
	endBatch(st)
	return st
}

// typical is the submission of a small batch job as sbatch sends it, with unique script and environment.
func typical(i int) *Submit {
	id := []byte(fmt.Sprint(i))
	spec := coretest.Job().Name("job").CPUs(4).Mem(4 * core.GiB).Time(time.Hour).Set(func(s *core.Spec) {
		s.Script, s.Env = sha256.Sum256(append(id, 's')), sha256.Sum256(append(id, 'e'))
		s.IO = core.IO{WorkDir: "/home/alice/project", Stdout: "/home/alice/project/slurm-%j.out"}
		s.From = core.Origin{
			Host: "login1", Dir: "/home/alice/project", Command: "/home/alice/project/job.sh",
			Line: "sbatch job.sh", Sid: 4711,
		}
		s.Shape.Given = core.GivenCPUsPerTask | core.GivenMemPerNode
	}).Spec()
	return &Submit{
		By: core.Identity{User: "alice", UID: 1000}, Spec: spec,
		Key: fmt.Sprintf("01234567-89ab-cdef-0123-%012d", i),
	}
}

// BenchmarkSubmit is one submission through Apply, flushed by the hundred. The budget is 3 µs.
func BenchmarkSubmit(b *testing.B) {
	st := benchCluster(b, 100)
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
			endBatch(st)
		}
	}
}

// BenchmarkArray is the submission of an array of 100,000 tasks. The budget is 10 ms end to end.
func BenchmarkArray(b *testing.B) {
	st := benchCluster(b, 100)
	st.cfg.MaxJobs = 1 << 40
	for i := 0; b.Loop(); i++ {
		in := typical(i)
		in.Spec.Array = "0-99999"
		if _, err := st.Apply(in); err != nil {
			b.Fatal(err)
		}
		endBatch(st)
	}
}

// BenchmarkGreatArray is what people do with an array of many tasks: one record, so it costs the same whatever its
// size.
func BenchmarkGreatArray(b *testing.B) {
	hold, free, limit := true, false, core.Seconds(7200)
	by := core.Identity{User: "alice", UID: 1000}
	for _, tasks := range []int{1000, 1_000_000, taskset.MaxIndex + 1} {
		part := func(text string) taskset.Set {
			set, err := taskset.Parse(text)
			if err != nil {
				b.Fatal(err)
			}
			return set
		}
		half := part(fmt.Sprintf("%d-%d", tasks/4, tasks*3/4))
		for _, op := range []struct {
			name string
			in   func(core.JobID) Input
		}{
			{"submit", nil},
			{"hold", func(id core.JobID) Input { return &UpdateJob{By: by, Job: id, Hold: &hold} }},
			{"release", func(id core.JobID) Input { return &UpdateJob{By: by, Job: id, Hold: &free} }},
			{"update", func(id core.JobID) Input { return &UpdateJob{By: by, Job: id, TimeLimit: &limit} }},
			{"cancel-task", func(id core.JobID) Input { return &Cancel{By: by, Job: id, Tasks: taskset.Of(tasks / 2)} }},
			{"cancel-range", func(id core.JobID) Input { return &Cancel{By: by, Job: id, Tasks: half} }},
			{"cancel", func(id core.JobID) Input { return &Cancel{By: by, Job: id} }},
		} {
			b.Run(fmt.Sprintf("tasks=%d/%s", tasks, op.name), func(b *testing.B) {
				st := benchCluster(b, 1)
				st.cfg.MaxJobs = 1 << 40
				apply := func(in Input) any {
					reply, err := st.Apply(in)
					if err != nil {
						b.Fatal(err)
					}
					endBatch(st)
					return reply
				}
				for i := 0; b.Loop(); i++ {
					b.StopTimer()
					in := typical(i)
					in.Spec.Array, in.Spec.Hold = fmt.Sprintf("0-%d", tasks-1), op.name == "release"
					if op.in == nil {
						b.StartTimer()
						apply(in)
						continue
					}
					id := apply(in).(*Submitted).ID
					b.StartTimer()
					apply(op.in(id))
				}
			})
		}
	}
}

// BenchmarkArrayTask is the start and the end of one task of an array of 100,000.
func BenchmarkArrayTask(b *testing.B) {
	st := benchCluster(b, 1)
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
		reply, err := st.Apply(&Start{
			Job: base, Task: task,
			Alloc: &core.Alloc{
				Partition: "main",
				Nodes:     []core.NodeAlloc{{Node: "n1", CPUs: 4, Cores: []int32{0, 1, 2, 3}, Tasks: 1}},
			},
		})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := st.Apply(&Exited{
			Node: "n1", Job: reply.(*Started).ID, Attempt: 1, Step: "batch",
			JobDone: true,
		}); err != nil {
			b.Fatal(err)
		}
		if task = (task + 1) % 100_000; n%100 == 0 {
			endBatch(st)
		}
	}
}

// shaped is typical of a long queue: of 7,000 things that people ask for, by 500 users, with strings of its own as a
// decoder makes them.
func shaped(r *rand.Rand, i int) *Submit {
	in := typical(i)
	s, user := in.Spec, core.UserName(fmt.Sprintf("u%03d", r.IntN(500)))
	kind := rand.New(rand.NewPCG(uint64(r.IntN(7000)), 1))
	s.Shape.CPUsPerTask, s.Shape.MemPerNode = int32(1+kind.IntN(48)), core.Bytes(1+kind.IntN(160))*core.GiB
	if kind.IntN(5) == 0 {
		s.Shape.NodesMin = int32(2) << kind.IntN(9)
		s.Shape.NodesMax, s.Shape.Tasks, s.Shape.CPUsPerTask = s.Shape.NodesMin, s.Shape.NodesMin, int32(1+kind.IntN(12))
	}
	if kind.IntN(100) < 3 {
		s.Extra = &core.Extra{Constraint: coretest.Constraint("ib&fat")}
	}
	s.TimeLimit = core.Seconds(600 * (1 + r.IntN(144)))
	home := fmt.Sprintf("/home/%s/project%d", user, kind.IntN(20))
	s.Name, s.IO.WorkDir, s.IO.Stdout = fmt.Sprintf("job%d", kind.IntN(1000)), strings.Clone(home), home+"/slurm-%j.out"
	s.From = core.Origin{
		Host: strings.Clone("login1"), Dir: strings.Clone(home), Command: home + "/job.sh",
		Line: fmt.Sprintf("sbatch -c %d job.sh", s.Shape.CPUsPerTask), Sid: int32(i),
	}
	in.By = core.Identity{User: user, UID: 1000}
	in.Spec.User = user
	return in
}

// BenchmarkMemory tells what a waiting job takes in state and planner, spec and submit key included, of 100,000 in more
// than 5,000 shapes: live on the heap, and resident. Must reach: 1.5 KiB.
func BenchmarkMemory(b *testing.B) {
	const jobs = 100_000
	for b.Loop() {
		b.StopTimer()
		st := benchCluster(b, 1)
		for u := range 500 {
			if _, err := st.Apply(&EnsureUser{UID: uint32(2000 + u), UnixName: fmt.Sprintf("u%03d", u)}); err != nil {
				b.Fatal(err)
			}
		}
		for i := range 1024 {
			n := coretest.Node(core.NodeName(fmt.Sprintf("big%d", i+1))).CPUs(64).Mem(256 * core.GiB).Build()
			n.Features = []string{"ib", "fat"}
			if _, err := st.Apply(&Register{
				Node: n.Name, Hardware: n.Hardware, Host: n.Host, Roles: n.Roles,
				Features: n.Features,
			}); err != nil {
				b.Fatal(err)
			}
		}
		p := sched.New(PlannerConfig(Config{}))
		p.Apply(st.All())
		endBatch(st)
		r := rand.New(rand.NewPCG(1, 1))
		heap, rss := memory(b)
		keys := map[fit.Key]bool{}
		b.StartTimer()
		for i := range jobs {
			in := shaped(r, i)
			in.By.UID = 2000 + uint32(in.By.User[1]-'0')*100 + uint32(in.By.User[2]-'0')*10 + uint32(in.By.User[3]-'0')
			if i%10 == 0 {
				keys[fit.KeyOf(in.Spec)] = true
			}
			if _, err := st.Apply(in); err != nil {
				b.Fatal(err)
			}
			if i%100 == 99 {
				p.Apply(endBatch(st))
				st.Snapshot()
			}
		}
		p.Pass(epoch)
		b.StopTimer()
		shapes := len(keys)
		keys = nil
		heap2, rss2 := memory(b)
		b.ReportMetric(float64(heap2-heap)/jobs, "bytes/job")
		b.ReportMetric(float64(rss2-rss)/jobs, "resident-bytes/job")
		b.ReportMetric(float64(shapes), "shapes-of-a-tenth")
		runtime.KeepAlive(st)
		runtime.KeepAlive(p)
		b.StartTimer()
	}
}

// memory is what lives on the heap and what of the process is in memory, once all that can be given back has been.
func memory(tb testing.TB) (heap, resident int64) {
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if data, err := os.ReadFile("/proc/self/statm"); err == nil {
		var size int64
		if _, err := fmt.Sscan(string(data), &size, &resident); err != nil {
			tb.Fatal(err)
		}
	}
	return int64(m.HeapAlloc), resident * int64(os.Getpagesize())
}
