package wire

import (
	"math/bits"
	"sync"
)

// Bodies of frames that carry much are used again: a stream of hundreds of megabytes a second would otherwise spend its
// time on clearing and collecting them. Sizes are powers of two with room for a header.
const (
	leastPooled = 13 // 8 KiB
	mostPooled  = 18 // 256 KiB
	headRoom    = 1 << 10
)

var pools [mostPooled - leastPooled + 1]sync.Pool

// class is which pool holds bodies of n bytes; -1: none does.
func class(n int) int {
	if n <= 1<<leastPooled/2 || n > 1<<mostPooled+headRoom {
		return -1
	}
	return max(0, bits.Len(uint(max(n-headRoom, 1)-1))-leastPooled)
}

// newBody returns n bytes of any content.
func newBody(n int) []byte {
	at := class(n)
	if at < 0 {
		return make([]byte, n)
	}
	if b, ok := pools[at].Get().(*[]byte); ok {
		return (*b)[:n]
	}
	return make([]byte, n, 1<<(leastPooled+at)+headRoom)
}

// Free releases the frame's bytes for later frames. Only who is done with all of Header and Payload may call it,
// and once; a frame that is never freed is collected as anything else.
func (f Frame) Free() {
	if f.body == nil {
		return
	}
	if at := class(len(f.body)); at >= 0 && cap(f.body) == 1<<(leastPooled+at)+headRoom {
		b := f.body
		pools[at].Put(&b)
	}
}
