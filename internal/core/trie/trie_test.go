package trie

import (
	"maps"
	"math"
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func collect(m *Map[int]) (ids []int64, vals map[int64]int) {
	vals = map[int64]int{}
	for id, v := range m.All() {
		ids = append(ids, id)
		vals[id] = v
	}
	return ids, vals
}

// check holds a map against the plain map it should equal, in every way of reading it.
func check(t *rapid.T, name string, m *Map[int], want map[int64]int, probe int64) {
	ids, vals := collect(m)
	if !maps.Equal(vals, want) || m.Len() != len(want) {
		t.Fatalf("%s holds %v (Len %d), want %v", name, vals, m.Len(), want)
	}
	if !slices.IsSorted(ids) || len(ids) != len(want) {
		t.Fatalf("%s: ids out of order or repeated: %v", name, ids)
	}
	for id, v := range want {
		if got, ok := m.Get(id); !ok || got != v {
			t.Fatalf("%s: Get(%d) = %d, %v, want %d", name, id, got, ok, v)
		}
	}
	if _, ok := m.Get(probe); ok != contains(want, probe) {
		t.Fatalf("%s: Get(%d) found %v", name, probe, ok)
	}
	var tail []int64
	for id := range m.From(probe) {
		tail = append(tail, id)
	}
	at, _ := slices.BinarySearch(ids, probe)
	if !slices.Equal(tail, ids[at:]) {
		t.Fatalf("%s: From(%d) = %v, want %v", name, probe, tail, ids[at:])
	}
	if m.root != nil {
		checkNodes(t, m.root, m.shift, m.Len())
	}
}

func contains(m map[int64]int, id int64) bool { _, ok := m[id]; return ok }

func checkNodes(t *rapid.T, n *node[int], shift uint8, total int) {
	if n.bitmap == 0 {
		t.Fatalf("an empty node was left at shift %d (%d entries)", shift, total)
	}
	if shift > 0 {
		for _, k := range n.kids {
			checkNodes(t, k, shift-fan, total)
		}
	}
}

func genID() *rapid.Generator[int64] {
	return rapid.OneOf(
		rapid.Int64Range(0, 200),
		rapid.Int64Range(4000, 4200),
		rapid.Int64Range(0, 1<<20),
		rapid.Int64Range(0, math.MaxInt64),
		rapid.SampledFrom([]int64{0, 63, 64, 4095, 4096, 1 << 60, 1<<60 - 1, math.MaxInt64}),
	)
}

// TestAgainstPlainMap edits several maps that descend from each other by Snapshot; none may see
// what is done to another.
func TestAgainstPlainMap(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		type pair struct {
			m    *Map[int]
			want map[int64]int
		}
		all := []pair{{new(Map[int]), map[int64]int{}}}
		pick := func() pair { return all[rapid.IntRange(0, len(all)-1).Draw(t, "map")] }
		next := 0
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				p, id := pick(), genID().Draw(t, "id")
				next++
				p.m.Set(id, next)
				p.want[id] = next
			},
			"setRun": func(t *rapid.T) {
				p, from := pick(), rapid.Int64Range(0, 300).Draw(t, "from")
				for id := from; id < from+100; id++ {
					next++
					p.m.Set(id, next)
					p.want[id] = next
				}
			},
			"delete": func(t *rapid.T) {
				p, id := pick(), genID().Draw(t, "id")
				if p.m.Delete(id) != contains(p.want, id) {
					t.Fatalf("Delete(%d) answered wrongly", id)
				}
				delete(p.want, id)
			},
			"deleteHeld": func(t *rapid.T) {
				p := pick()
				ids := slices.Sorted(maps.Keys(p.want))
				if len(ids) == 0 {
					return
				}
				from := rapid.IntRange(0, len(ids)-1).Draw(t, "from")
				for _, id := range ids[from:min(from+70, len(ids))] {
					p.m.Delete(id)
					delete(p.want, id)
				}
			},
			"snapshot": func(t *rapid.T) {
				if len(all) == 5 {
					all = all[1:]
				}
				p := pick()
				s := p.m.Snapshot()
				all = append(all, pair{&s, maps.Clone(p.want)})
			},
			"": func(t *rapid.T) {
				probe := genID().Draw(t, "probe")
				for _, p := range all {
					check(t, "map", p.m, p.want, probe)
				}
			},
		})
	})
}

func TestEdges(t *testing.T) {
	t.Parallel()
	var m Map[string]
	if _, ok := m.Get(0); ok || m.Delete(0) || m.Len() != 0 {
		t.Error("the zero map is not empty")
	}
	m.Set(math.MaxInt64, "last")
	if v, ok := m.Get(math.MaxInt64); v != "last" || !ok {
		t.Error("the greatest id is lost")
	}
	if _, ok := m.Get(-1); ok {
		t.Error("a negative id was found")
	}
	m.Delete(math.MaxInt64)
	if m.root != nil {
		t.Error("an emptied map keeps nodes")
	}
	for range m.All() {
		t.Error("an emptied map yields")
	}
	m.Set(3, "a")
	m.Set(5, "b")
	for id := range m.From(-7) {
		if id != 3 {
			t.Errorf("From(-7) begins at %d", id)
		}
		break
	}
	defer func() {
		if recover() == nil {
			t.Error("Set(-1) did not panic")
		}
	}()
	m.Set(-1, "x")
}

// TestSnapshotReaders is for the race detector: readers of a snapshot beside the writer.
func TestSnapshotReaders(t *testing.T) {
	t.Parallel()
	var m Map[int]
	for id := range int64(5000) {
		m.Set(id, int(id))
	}
	done := make(chan int)
	for range 4 {
		s := m.Snapshot()
		go func() {
			sum := 0
			for _, v := range s.All() {
				sum += v
			}
			done <- sum
		}()
		for id := range int64(5000) {
			m.Set(id, int(id)) // same values: every reader must see the same sum
		}
	}
	for range 4 {
		if sum := <-done; sum != 4999*5000/2 {
			t.Errorf("a reader saw the sum %d", sum)
		}
	}
}

func TestMemoryPerEntry(t *testing.T) {
	const n = 100_000
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var m Map[*int]
	for id := range int64(n) {
		m.Set(id, nil)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	per := float64(after.HeapAlloc-before.HeapAlloc)/n - 8 // less the value itself
	if per >= 24 {
		t.Errorf("%.1f bytes an entry beside the value, want < 24", per)
	}
	runtime.KeepAlive(m)
}

func BenchmarkSet100k(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		var m Map[*int]
		for id := range int64(100_000) {
			m.Set(id, nil)
		}
	}
}

// BenchmarkBatch is the writer's rhythm: publish, then change a hundred entries out of 100,000.
func BenchmarkBatch(b *testing.B) {
	var m Map[*int]
	for id := range int64(100_000) {
		m.Set(id, nil)
	}
	b.ReportAllocs()
	i := int64(0)
	for b.Loop() {
		_ = m.Snapshot()
		for range 100 {
			m.Set(i%100_000, nil)
			i++
		}
	}
}

func BenchmarkGet(b *testing.B) {
	var m Map[int]
	for id := range int64(100_000) {
		m.Set(id, int(id))
	}
	i := int64(0)
	for b.Loop() {
		if v, _ := m.Get(i % 100_000); v != int(i%100_000) {
			b.Fatal(v)
		}
		i++
	}
}

func BenchmarkAll100k(b *testing.B) {
	var m Map[int]
	for id := range int64(100_000) {
		m.Set(id, int(id))
	}
	for b.Loop() {
		n := 0
		for range m.All() {
			n++
		}
		if n != 100_000 {
			b.Fatal(n)
		}
	}
}
