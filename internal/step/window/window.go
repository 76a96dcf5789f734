package window

import "bireme.dev/bireme/internal/wire"

// Sizes of the buffers of a window: a task that prints a line now and then gets by with the least, one that fills what
// it is given gets twice as much the next time.
const (
	leastBuffer = 8 << 10
	mostBuffer  = 128 << 10
	leastRead   = 4 << 10
)

// Window is the part of a stream that was not acknowledged yet. It is read into where it stays, and sent from there.
// Who reads calls room and add in turn; between them the bytes are its own.
type Window struct {
	from   int64 // offset of the first byte
	held   int
	list   []piece
	buffer []byte // being filled
	open   []byte // the rest of it
	joined bool   // the last piece ends where open begins
	size   int    // of the next buffer
	spare  [][]byte
}

// piece is some bytes of a window; buffer, if any, has nothing else in it and can be used again after it.
type piece struct{ b, buffer []byte }

// Start is the offset of the first byte that is held.
func (w *Window) Start() int64 { return w.from }

// Len is how many bytes are held.
func (w *Window) Len() int { return w.held }

// End is the offset behind the last one.
func (w *Window) End() int64 { return w.from + int64(w.held) }

// Room returns where to read to, never more than the window still takes.
func (w *Window) Room() []byte {
	switch {
	case w.buffer != nil && w.held == 0:
		w.open, w.joined = w.buffer, false
	case w.buffer == nil:
		w.size = max(w.size, leastBuffer)
		if n := len(w.spare); n > 0 && len(w.spare[n-1]) == w.size {
			w.buffer, w.spare = w.spare[n-1], w.spare[:n-1]
		} else {
			w.buffer, w.spare = make([]byte, w.size), nil
		}
		w.open, w.joined = w.buffer, false
	}
	if left := wire.StreamWindow - w.held; left > 0 {
		return w.open[:min(left, len(w.open))]
	}
	return w.open
}

// Add takes the first n bytes of room.
func (w *Window) Add(n int) {
	if n == 0 {
		return
	}
	if w.joined {
		last := &w.list[len(w.list)-1]
		last.b = last.b[:len(last.b)+n]
	} else {
		w.list = append(w.list, piece{b: w.open[:n]})
		w.joined = true
	}
	switch {
	case n == len(w.open):
		w.size = min(2*w.size, mostBuffer)
	case n < w.size/4:
		w.size = max(w.size/2, leastBuffer)
	}
	w.open = w.open[n:]
	w.held += n
	if len(w.open) < leastRead {
		w.list[len(w.list)-1].buffer = w.buffer
		w.buffer, w.joined = nil, false
	}
}

// Put adds bytes that were not read into room; b is the window's from here on.
func (w *Window) Put(b []byte) {
	w.list = append(w.list, piece{b: b})
	w.joined = false
	w.held += len(b)
}

// Ack lets go of all before an offset.
func (w *Window) Ack(offset int64) {
	n := int(min(offset-w.from, int64(w.held)))
	if n <= 0 {
		return
	}
	w.from += int64(n)
	w.held -= n
	for n > 0 {
		p := &w.list[0]
		k := min(n, len(p.b))
		p.b = p.b[k:]
		n -= k
		if len(p.b) > 0 {
			break
		}
		if len(p.buffer) == w.size && len(w.spare) < wire.StreamWindow/mostBuffer {
			w.spare = append(w.spare, p.buffer)
		}
		w.list[0] = piece{}
		w.list = w.list[1:]
	}
	if len(w.list) == 0 {
		w.list, w.joined = nil, false
	}
}

// Bytes is a copy of all that is held.
func (w *Window) Bytes() []byte {
	b := make([]byte, 0, w.held)
	for _, p := range w.list {
		b = append(b, p.b...)
	}
	return b
}
