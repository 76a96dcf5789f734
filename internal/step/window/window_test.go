package window

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"bireme.dev/bireme/internal/wire"
)

// TestWindow reads, puts lines between, acknowledges at any place, and compares with a plain slice.
func TestWindow(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		var w Window
		var want []byte
		var from int64
		next := byte(0)
		fill := func(b []byte) []byte {
			for i := range b {
				b[i] = next
				next++
			}
			return b
		}
		for range 2000 {
			switch r.IntN(4) {
			case 0, 1:
				if w.held >= wire.StreamWindow {
					continue
				}
				room := w.Room()
				if len(room) == 0 || w.held+len(room) > wire.StreamWindow {
					t.Fatalf("seed %d: room of %d with %d held", seed, len(room), w.held)
				}
				line := []byte(nil)
				if r.IntN(10) == 0 { // somebody speaks between room and add
					line = []byte("a line")
					w.Put(line)
					want = append(want, line...)
				}
				n := 1 + r.IntN(len(room))
				if r.IntN(2) == 0 {
					n = len(room)
				}
				want = append(want, fill(room[:n])...)
				w.Add(n)
			case 2:
				if len(want) > 0 {
					n := 1 + r.IntN(len(want))
					if r.IntN(3) == 0 {
						n = len(want)
					}
					from += int64(n)
					want = want[n:]
					w.Ack(from)
				}
			case 3:
				w.Ack(from) // again, and from before
				w.Ack(from - 10)
			}
			if w.from != from || w.held != len(want) || w.End() != from+int64(len(want)) {
				t.Fatalf("seed %d: from %d held %d, want %d and %d", seed, w.from, w.held, from, len(want))
			}
			if !bytes.Equal(w.Bytes(), want) {
				t.Fatalf("seed %d: the bytes differ", seed)
			}
		}
	}
}
