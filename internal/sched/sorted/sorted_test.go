package sorted

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

type number int

func (n *number) Compare(o *number) int { return cmp.Compare(*n, *o) }

func all(c Cursor[number, *number]) (out []number) {
	for e := c.Current(); e != nil; e = c.Current() {
		out = append(out, *e)
		c.Next()
	}
	return out
}

// A list holds what a sorted slice holds, through thousands of insertions and removals.
func TestListIsASortedSet(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	var list List[number, *number]
	var want []number
	for range 20_000 {
		n := number(r.IntN(3000))
		at, has := slices.BinarySearch(want, n)
		if r.IntN(5) < 3 {
			if list.Insert(n); !has {
				want = slices.Insert(want, at, n)
			}
		} else if list.Remove(n); has {
			want = slices.Delete(want, at, at+1)
		}
		if list.Len != len(want) {
			t.Fatalf("%d members, want %d", list.Len, len(want))
		}
	}
	if got := all(Cursor[number, *number]{List: &list}); !slices.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	for n := range number(3002) {
		at, has := slices.BinarySearch(want, n)
		if _, _, ok := list.Find(&n); ok != has {
			t.Fatalf("Find(%d): %v, want %v", n, ok, has)
		}
		behind := at
		if has {
			behind++
		}
		if !slices.Equal(all(list.Seek(&n)), want[at:]) || !slices.Equal(all(list.After(&n)), want[behind:]) ||
			!slices.Equal(all(list.First(func(e *number) bool { return *e >= n })), want[at:]) {
			t.Fatalf("a walk from %d goes another way", n)
		}
	}
	for _, n := range want {
		list.Remove(n)
	}
	if list.Len != 0 || len(list.Chunks) != 0 {
		t.Fatalf("%d members in %d chunks are left", list.Len, len(list.Chunks))
	}
}

func TestHeapPopsTheLowest(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	var h Heap[int64]
	var want []int64
	for range 2000 {
		switch k := int64(r.IntN(500)); {
		case r.IntN(3) > 0 || len(want) == 0:
			h.Push(k, -k)
			want = append(want, k)
		case r.IntN(50) == 0:
			keep := func(k int64) bool { return k%3 != 0 }
			h.Keep(func(x HeapItem[int64]) bool { return keep(x.Key) })
			want = slices.DeleteFunc(want, func(k int64) bool { return !keep(k) })
		default:
			slices.Sort(want)
			if got := h.Pop(); got.Key != want[0] || got.Value != -want[0] {
				t.Fatalf("popped %+v, want %d", got, want[0])
			}
			want = want[1:]
		}
	}
}
