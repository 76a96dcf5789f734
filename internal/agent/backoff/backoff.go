// Package backoff spaces attempts.
package backoff

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff waits a little longer each time, with jitter so that a thousand agents do not come back together.
type Backoff struct {
	Least, Most time.Duration
	next        time.Duration
}

// Reset makes the next wait the shortest.
func (b *Backoff) Reset() { b.next = 0 }

// Wait waits for its turn; false means that ctx ended first.
func (b *Backoff) Wait(ctx context.Context) bool {
	b.next = min(max(b.Least, 2*b.next), b.Most)
	t := time.NewTimer(b.next/2 + rand.N(b.next/2+1))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
