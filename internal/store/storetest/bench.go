package storetest

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/store"
)

// Bench measures what the engine does all day. Each job has a script of 2 KiB and an environment of 6 KiB of its own.
func Bench(b *testing.B, fresh func(b *testing.B) store.Store) {
	for _, batch := range []int{1, 32, 256} {
		b.Run(fmt.Sprintf("CommitSubmit/%d", batch), func(b *testing.B) { benchSubmit(b, fresh(b), batch) })
	}
	for _, batch := range []int{32, 256} {
		b.Run(fmt.Sprintf("CommitStartEnd/%d", batch), func(b *testing.B) { benchStartEnd(b, fresh(b), batch) })
	}
	b.Run("Load100k", func(b *testing.B) { benchLoad(b, fresh(b), 100_000) })
	b.Run("Blobs", func(b *testing.B) { benchBlobs(b, fresh(b)) })
}

// load makes changes as the engine would.
type load struct {
	epoch int64
	seq   int64
	next  core.JobID
	now   core.Time
	rng   *rand.ChaCha8
}

func newLoad(b *testing.B, s store.Store) *load {
	epoch, err := s.Lead(b.Context(), "bench", time.Hour, 0, 1)
	if err != nil {
		b.Fatal(err)
	}
	return &load{epoch: epoch, next: 1, now: 1_700_000_000_000_000, rng: rand.NewChaCha8([32]byte{1})}
}

// text is n bytes that look like text and are like no others.
func (l *load) text(n int) core.Blob {
	t := make([]byte, n)
	for i := range t {
		t[i] = 'a' + byte(i%23)
	}
	_, _ = l.rng.Read(t[:32])
	return core.Blob{Hash: sha256.Sum256(t), Data: t}
}

func (l *load) submit(n int) *core.Changes {
	c := &core.Changes{}
	for range n {
		script, env := l.text(2<<10), l.text(6<<10)
		s := &core.Spec{
			Name: "train.sh", User: "ann", UID: 1000, GID: 1000, Project: "physics", Partition: core.ListPartitions("main"),
			Runtime: "process",
			Script:  script.Hash, Env: env.Hash, Args: []string{"--epochs", "3"},
			Shape: core.Shape{
				NodesMin: 1, NodesMax: 1, Tasks: 1, CPUsPerTask: 1, MemPerNode: core.GiB,
				Given: core.GivenTasks,
			},
			TimeLimit: 3600, IO: core.IO{WorkDir: "/home/ann/work/run", Stdout: "slurm-%j.out"}, Requeue: true,
			From: core.Origin{
				Host: "login1", Dir: "/home/ann/work/run", Command: "/home/ann/work/run/train.sh",
				Line: "sbatch train.sh --epochs 3", Sid: 4711,
			},
		}
		j := &core.Job{ID: l.next, SpecID: l.next, Spec: s, Submit: l.now, Eligible: l.now, Priority: 100}
		l.next++
		var key [16]byte
		_, _ = l.rng.Read(key[:])
		c.Blobs = append(c.Blobs, script, env)
		c.Specs = append(c.Specs, core.SpecRow{ID: j.ID, Spec: s})
		c.Jobs = append(c.Jobs, j)
		c.Keys = append(c.Keys, core.SubmitKey{Key: fmt.Sprintf("%x", key), Job: j.ID, At: l.now, User: "ann"})
		c.Events = append(c.Events, l.event(core.JobSubmitted, j))
	}
	l.stamp(c)
	return c
}

func (l *load) event(kind core.EventKind, j *core.Job) core.Event {
	l.seq++
	return core.Event{
		Seq: l.seq, At: l.now, Kind: kind, Job: j.ID, User: "ann", By: "ann",
		Data: []byte(`{"state":"PENDING"}`),
	}
}

func (l *load) stamp(c *core.Changes) { l.now++; c.Now, c.NextJob = l.now, l.next }

func (l *load) move(jobs []*core.Job, kind core.EventKind, change func(*core.Job)) *core.Changes {
	c := &core.Changes{}
	for i, j := range jobs { // jobs are replaced, so that the next move starts from these
		d := *j
		change(&d)
		jobs[i] = &d
		c.Jobs = append(c.Jobs, &d)
		c.Events = append(c.Events, l.event(kind, &d))
	}
	l.stamp(c)
	return c
}

func (l *load) start(j *core.Job) {
	j.State, j.Start, j.Attempt = core.Running, l.now, 1
	j.Alloc = &core.Alloc{Partition: "main", Nodes: []core.NodeAlloc{{
		Node: "n1", CPUs: 1, Cores: []int32{3},
		Mem: core.GiB, Tasks: 1,
	}}}
}

func (l *load) end(j *core.Job) {
	j.State, j.End = core.Completed, l.now
	j.Usage = core.Usage{User: time.Millisecond, Sys: 2 * time.Millisecond, MaxRSS: 3 * core.MiB}
}

// perJob reports wall and CPU time a job: on a shared machine only the second can be compared.
func perJob(b *testing.B, name string, jobs int, run func()) {
	b.ResetTimer()
	cpu := cpuTime()
	run()
	b.StopTimer()
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(jobs), "µs/"+name)
	b.ReportMetric(float64((cpuTime()-cpu).Microseconds())/float64(jobs), "cpu-µs/"+name)
	b.ReportMetric(0, "ns/op")
}

func benchSubmit(b *testing.B, s store.Store, batch int) {
	l := newLoad(b, s)
	var all []*core.Changes
	for range b.N {
		all = append(all, l.submit(batch))
	}
	var took []time.Duration
	perJob(b, "job", b.N*batch, func() {
		for _, c := range all {
			start := time.Now()
			if err := s.Commit(b.Context(), l.epoch, c); err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Since(start))
		}
	})
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(took[len(took)-1].Microseconds())/1000, "max-ms")
}

func benchStartEnd(b *testing.B, s store.Store, batch int) {
	l := newLoad(b, s)
	var submitted []*core.Changes
	for range b.N {
		submitted = append(submitted, l.submit(batch))
	}
	commit := func(all []*core.Changes) {
		for _, c := range all {
			if err := s.Commit(b.Context(), l.epoch, c); err != nil {
				b.Fatal(err)
			}
		}
	}
	commit(submitted)
	var moves []*core.Changes
	for _, c := range submitted {
		moves = append(moves, l.move(c.Jobs, core.JobStarted, l.start), l.move(c.Jobs, core.JobEnded, l.end))
	}
	perJob(b, "change", 2*b.N*batch, func() { commit(moves) })
}

func benchLoad(b *testing.B, s store.Store, jobs int) {
	l := newLoad(b, s)
	for n := 0; n < jobs; n += 500 {
		if err := s.Commit(b.Context(), l.epoch, l.submit(500)); err != nil {
			b.Fatal(err)
		}
	}
	var img *store.Image
	before, cpu := heap(), cpuTime()
	for b.Loop() {
		var err error
		img = nil
		if img, err = s.Load(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	b.ReportMetric(float64((cpuTime()-cpu).Milliseconds())/float64(b.N), "cpu-ms/op")
	if len(img.Jobs) != jobs {
		b.Fatalf("loaded %d jobs", len(img.Jobs))
	}
	img.Keys = nil
	b.ReportMetric(float64(heap()-before)/float64(jobs), "B/job")
	runtime.KeepAlive(img)
}

func benchBlobs(b *testing.B, s store.Store) {
	l := newLoad(b, s)
	var specs []core.SpecRow
	for range 100 {
		c := l.submit(200)
		if err := s.Commit(b.Context(), l.epoch, c); err != nil {
			b.Fatal(err)
		}
		specs = append(specs, c.Specs...)
	}
	i, cpu := 0, cpuTime()
	defer func() { b.ReportMetric(float64((cpuTime()-cpu).Microseconds())/float64(b.N), "cpu-µs/op") }()
	for b.Loop() {
		r := specs[i*7919%len(specs)]
		i++
		if _, err := s.Blobs(b.Context(), r.ID, r.Spec.Script, r.Spec.Env); err != nil {
			b.Fatal(err)
		}
	}
}

func cpuTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
