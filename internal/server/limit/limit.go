package limit

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Rules are the limits of one caller; 0 means none.
type Rules struct {
	PerSecond int   // calls a second
	Burst     int   // calls that may come at once; less than PerSecond counts as PerSecond
	InFlight  int   // calls under way, those that wait included
	AtOnce    int   // calls worked on at once
	Bytes     int64 // bodies of the calls under way
	Streams   int   // open streams, followers included
	Followers int   // streams that follow a log
}

// Excess is a refusal.
type Excess struct {
	Limit string        // the setting: "requests_per_second"
	Value int64         // and its value
	After time.Duration // when to try again; 0: waiting does not help by itself
}

func (e *Excess) Error() string { return fmt.Sprintf("over limits.%s of %d", e.Limit, e.Value) }

// Caller is one who calls. It is kept as long as it has something under way or its bucket is not full.
type Caller struct {
	mu        sync.Mutex
	spent     float64   // calls taken out of the bucket
	at        time.Time // when that was computed
	inFlight  int
	working   int
	waiting   []chan struct{} // calls that wait for their turn, in order
	bytes     int64
	streams   int
	followers int
	idle      bool // it was taken out of the table
}

// take lets one call out of the bucket. c.mu is held.
func (c *Caller) take(r *Rules, now time.Time) *Excess {
	if r.PerSecond <= 0 {
		return nil
	}
	c.refill(r, now)
	if burst := float64(max(r.Burst, r.PerSecond)); c.spent+1 > burst {
		return &Excess{
			"requests_per_second", int64(r.PerSecond),
			time.Duration((c.spent + 1 - burst) / float64(r.PerSecond) * float64(time.Second)),
		}
	}
	c.spent++
	return nil
}

// refill computes what has come back into the bucket by now. c.mu is held.
func (c *Caller) refill(r *Rules, now time.Time) {
	if d := now.Sub(c.at); d > 0 {
		c.spent = max(0, c.spent-d.Seconds()*float64(r.PerSecond))
		c.at = now
	}
}

// Enter admits a call. It must be followed by Leave.
func (c *Caller) Enter(r *Rules, now time.Time) *Excess {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.InFlight > 0 && c.inFlight >= r.InFlight {
		return &Excess{"requests_in_flight", int64(r.InFlight), time.Second}
	}
	if x := c.take(r, now); x != nil {
		return x
	}
	c.inFlight++
	return nil
}

// Leave ends a call.
func (c *Caller) Leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inFlight--
}

// Begin waits until the call may be worked on. It must be followed by End unless it gives an error, which is that of
// ctx.
func (c *Caller) Begin(ctx context.Context, r *Rules) error {
	c.mu.Lock()
	if r.AtOnce <= 0 || c.working < r.AtOnce {
		c.working++
		c.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	c.waiting = append(c.waiting, turn)
	c.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, w := range c.waiting {
		if w == turn {
			c.waiting = append(c.waiting[:i], c.waiting[i+1:]...)
			return ctx.Err()
		}
	}
	c.next() // the turn came in this very moment: it is passed on
	return ctx.Err()
}

// End lets the next call be worked on.
func (c *Caller) End() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next()
}

// next passes a turn on. c.mu is held.
func (c *Caller) next() {
	if len(c.waiting) == 0 {
		c.working--
		return
	}
	close(c.waiting[0])
	c.waiting = c.waiting[1:]
}

// Reserve takes n bytes for the body of a call; Free gives them back.
func (c *Caller) Reserve(r *Rules, n int64) *Excess {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.Bytes > 0 && c.bytes > 0 && c.bytes+n > r.Bytes { // one body is bounded by its call
		return &Excess{"request_bytes", r.Bytes, time.Second}
	}
	c.bytes += n
	return nil
}

// Free releases n reserved bytes.
func (c *Caller) Free(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bytes -= n
}

// Open admits a stream. It must be followed by Close with the same follower.
func (c *Caller) Open(r *Rules, now time.Time, follower bool) *Excess {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.Streams > 0 && c.streams >= r.Streams {
		return &Excess{"streams", int64(r.Streams), 0}
	}
	if follower && r.Followers > 0 && c.followers >= r.Followers {
		return &Excess{"followers", int64(r.Followers), 0}
	}
	if x := c.take(r, now); x != nil {
		return x
	}
	c.streams++
	if follower {
		c.followers++
	}
	return nil
}

// Close ends a stream.
func (c *Caller) Close(follower bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.streams--
	if follower {
		c.followers--
	}
}

// Streams is how many the caller has open.
func (c *Caller) Streams() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.streams
}

// busy reports whether the caller has to be kept. c.mu is held.
func (c *Caller) busy(r *Rules, now time.Time) bool {
	c.refill(r, now)
	return c.inFlight > 0 || c.working > 0 || c.streams > 0 || c.bytes > 0 || c.spent >= 1
}
