package limit

import (
	"sync"
	"time"
)

// Budget counts what each of many takes of something that lasts, such as bytes in the store: a bucket that empties
// evenly over a day. The zero Budget is ready; it is safe for all goroutines.
type Budget struct {
	mu    sync.Mutex
	spent map[string]spent
	sweep int // size at which empty buckets are looked for
}

type spent struct {
	n  float64
	at time.Time // when that was computed
}

const day = 24 * time.Hour

// Spend takes n of what somebody may have in a day (0: no limit), or reports that it is too much and takes nothing. A
// negative n gives back.
func (b *Budget) Spend(name string, n, perDay int64, now time.Time) bool {
	if perDay <= 0 {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.spent[name].after(now, perDay)
	if s.n += float64(n); n > 0 && s.n > float64(perDay) {
		return false
	}
	if b.spent == nil {
		b.spent, b.sweep = map[string]spent{}, firstSweep
	}
	s.n = max(0, s.n)
	b.spent[name] = s
	if len(b.spent) >= b.sweep {
		for other, s := range b.spent {
			if s.after(now, perDay).n == 0 {
				delete(b.spent, other)
			}
		}
		b.sweep = max(firstSweep, 2*len(b.spent))
	}
	return true
}

// after is what is left of a bucket at a later time.
func (s spent) after(now time.Time, perDay int64) spent {
	if d := now.Sub(s.at); d > 0 {
		s.n = max(0, s.n-float64(perDay)*d.Seconds()/day.Seconds())
		s.at = now
	}
	return s
}
