package agent

import (
	"context"
	"math/rand/v2"
	"time"
)

// backoff waits a little longer each time, with jitter so that a thousand agents do not come back together.
type backoff struct {
	least, most time.Duration
	next        time.Duration
}

func (b *backoff) reset() { b.next = 0 }

// wait waits for its turn; false means that ctx ended first.
func (b *backoff) wait(ctx context.Context) bool {
	b.next = min(max(b.least, 2*b.next), b.most)
	t := time.NewTimer(b.next/2 + rand.N(b.next/2+1))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
