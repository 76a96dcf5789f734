package timetable

import (
	"math/rand/v2"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/alloc"
)

const machine = 8 // CPUs of the test's machine

// freeAt counts the CPUs that are free at a time, from the jobs alone.
func freeAt(t *Timetable, at core.Time) int64 {
	free := int64(machine)
	for _, j := range t.Jobs {
		if j.At <= at && at < alloc.AddTime(j.At, j.Length) {
			free -= j.CPUs
		}
	}
	return free
}

// earliest is the first time from now on at which so many CPUs are free for so long: now, or when a job ends.
func earliest(t *Timetable, cpus int64, length, now core.Time) core.Time {
	best := alloc.Never
	candidates := []core.Time{now}
	for _, j := range t.Jobs {
		candidates = append(candidates, alloc.AddTime(j.At, j.Length))
	}
	for _, at := range candidates {
		fits := at >= now && at < best && freeAt(t, at) >= cpus
		for _, j := range t.Jobs {
			if fits && j.At > at && j.At < alloc.AddTime(at, length) && freeAt(t, j.At) < cpus {
				fits = false
			}
		}
		if fits {
			best = at
		}
	}
	return best
}

// Every job gets the earliest place that is free for all of its time, and no CPU is given twice.
func TestPlaceIsEarliest(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		table, now := New(), core.Time(0)
		table.Forget(now, machine)
		for id := core.JobID(1); id <= 40; id++ {
			now += core.Time(r.IntN(3))
			table.Forget(now, machine)
			for k, j := range table.Jobs {
				if j.At <= now || r.IntN(10) == 0 { // it is over early, or was canceled
					if r.IntN(3) == 0 {
						table.Remove(k, now)
					}
				}
			}
			b := &Job{Length: core.Time(1 + r.IntN(20)), CPUs: int64(1 + r.IntN(machine))}
			if r.IntN(8) == 0 {
				b.Length = alloc.Never
			}
			want := earliest(table, b.CPUs, b.Length, now)
			table.Place(b, now)
			table.Jobs[id] = b
			if b.At != want {
				t.Fatalf("seed %d: job %d of %d CPUs for %d is placed at %d, want %d", seed, id, b.CPUs, b.Length, b.At, want)
			}
			for _, j := range table.Jobs {
				if j.At != alloc.Never && freeAt(table, j.At) < 0 {
					t.Fatalf("seed %d: at %d, %d CPUs are given", seed, j.At, machine-freeAt(table, j.At))
				}
			}
		}
	}
}

// A job that moves gets no later place than it had.
func TestMoveIsNeverLater(t *testing.T) {
	t.Parallel()
	table := New()
	table.Forget(0, machine)
	first, second := &Job{Length: 100, CPUs: machine}, &Job{Length: 10, CPUs: 1}
	table.AddRunning(1, first, 0)
	table.Place(second, 0)
	table.Jobs[2] = second
	if second.At != 100 {
		t.Fatalf("placed at %d, want 100: behind the one that runs", second.At)
	}
	if table.Move(second, 0); second.At != 100 {
		t.Fatalf("moved to %d while nothing changed", second.At)
	}
	if !table.Remove(1, 40) {
		t.Fatal("a job that ends 60 early frees nothing")
	}
	if table.Move(second, 40); second.At != 40 {
		t.Fatalf("moved to %d, want 40", second.At)
	}
	if table.Remove(2, 60) {
		t.Fatal("a job that ended at 50 frees CPUs at 60")
	}
}
