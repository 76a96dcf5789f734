package proxy

import (
	"sync"
	"time"
)

// counter bounds what each of many holds.
type counter struct {
	mu sync.Mutex
	n  map[string]int
}

// add takes one of at most most, and reports whether it could.
func (c *counter) add(who string, most int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	if c.n[who] >= most {
		return false
	}
	c.n[who]++
	return true
}

func (c *counter) remove(who string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n[who]--; c.n[who] <= 0 {
		delete(c.n, who)
	}
}

// maxBuckets bounds the clients that are told apart by one limit: a client may invent any number of header values.
const maxBuckets = 10_000

// buckets are the leaky buckets of a service's rate limits: one a limit and client.
type buckets struct {
	mu   sync.Mutex
	full map[bucketKey]time.Time // when what was taken has leaked out
}

type bucketKey struct{ prefix, client string }

// take lets a request of a client pass or not, as nginx's limit_req with nodelay: rps a second, and burst more at once.
func (b *buckets) take(prefix, client string, rps float64, burst int64, now time.Time) bool {
	if len(client) > 256 {
		client = client[:256]
	}
	each := time.Duration(float64(time.Second) / rps)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.full == nil {
		b.full = map[bucketKey]time.Time{}
	}
	k := bucketKey{prefix, client}
	at, known := b.full[k]
	if !known && len(b.full) >= maxBuckets {
		for k, t := range b.full {
			if t.Before(now) {
				delete(b.full, k)
			}
		}
		if len(b.full) >= maxBuckets {
			return false
		}
	}
	if at.Before(now) {
		at = now
	}
	if at.Sub(now) > time.Duration(burst)*each {
		return false
	}
	b.full[k] = at.Add(each)
	return true
}
