package sorted

// Heap is a heap of values, the one with the lowest key first. Unlike container/heap it allocates nothing per value.
type Heap[T any] []HeapItem[T]

// HeapItem is a value in a Heap with its key.
type HeapItem[T any] struct {
	Key   int64
	Value T
}

// Push adds a value.
func (h *Heap[T]) Push(key int64, value T) {
	items := append(*h, HeapItem[T]{key, value})
	for i := len(items) - 1; i > 0 && items[i].Key < items[(i-1)/2].Key; i = (i - 1) / 2 {
		items[i], items[(i-1)/2] = items[(i-1)/2], items[i]
	}
	*h = items
}

// Pop removes the first item and returns it.
func (h *Heap[T]) Pop() HeapItem[T] {
	items := *h
	first, last := items[0], len(items)-1
	items[0], items[last] = items[last], HeapItem[T]{}
	*h = items[:last]
	h.sink(0)
	return first
}

// Keep removes the items for which keep returns false.
func (h *Heap[T]) Keep(keep func(HeapItem[T]) bool) {
	kept := (*h)[:0]
	for _, x := range *h {
		if keep(x) {
			kept = append(kept, x)
		}
	}
	clear((*h)[len(kept):])
	*h = kept
	for i := len(kept)/2 - 1; i >= 0; i-- {
		h.sink(i)
	}
}

func (h Heap[T]) sink(i int) {
	for {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(h); c++ {
			if h[c].Key < h[least].Key {
				least = c
			}
		}
		if least == i {
			return
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}
