package limit

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

var start = time.Unix(1e9, 0)

func TestBucket(t *testing.T) {
	t.Parallel()
	r := &Rules{PerSecond: 10, Burst: 20}
	c := &Caller{at: start}
	call := func(now time.Time) *Excess {
		x := c.Enter(r, now)
		if x == nil {
			c.Leave()
		}
		return x
	}
	for i := range 20 {
		if x := call(start); x != nil {
			t.Fatalf("call %d of the burst: %v", i, x)
		}
	}
	x := call(start)
	if x == nil || x.Limit != "requests_per_second" || x.Value != 10 || x.After != 100*time.Millisecond {
		t.Fatalf("one more: %+v", x)
	}
	if x := call(start.Add(x.After)); x != nil {
		t.Errorf("after the time it was told: %v", x)
	}
	if x := call(start.Add(x.After)); x == nil {
		t.Error("the bucket filled faster than its rate")
	}
	if x := call(start.Add(-time.Hour)); x == nil {
		t.Error("a clock that went back filled the bucket")
	}
	n := 0
	for call(start.Add(time.Hour)) == nil {
		n++
	}
	if n != 20 {
		t.Errorf("a full bucket has %d", n)
	}
}

func TestInFlightAndBytesAndStreams(t *testing.T) {
	t.Parallel()
	r := &Rules{InFlight: 2, Bytes: 100, Streams: 3, Followers: 1}
	c := &Caller{}
	for range 2 {
		if x := c.Enter(r, start); x != nil {
			t.Fatal(x)
		}
	}
	if x := c.Enter(r, start); x == nil || x.Limit != "requests_in_flight" {
		t.Errorf("a third call: %v", x)
	}
	c.Leave()
	if x := c.Enter(r, start); x != nil {
		t.Errorf("after one left: %v", x)
	}
	if x := c.Reserve(r, 500); x != nil {
		t.Errorf("the only body: %v", x)
	}
	if x := c.Reserve(r, 1); x == nil || x.Limit != "request_bytes" {
		t.Errorf("a second body: %v", x)
	}
	c.Free(500)
	if x := c.Reserve(r, 100); x != nil {
		t.Errorf("after it went: %v", x)
	}
	if x := c.Open(r, start, true); x != nil {
		t.Error(x)
	}
	if x := c.Open(r, start, true); x == nil || x.Limit != "followers" || x.After != 0 {
		t.Errorf("a second follower: %v", x)
	}
	for range 2 {
		if c.Open(r, start, false) != nil {
			t.Error("streams within the limit were refused")
		}
	}
	if x := c.Open(r, start, false); x == nil || x.Limit != "streams" {
		t.Errorf("a fourth stream: %v", x)
	}
	c.Close(true)
	if x := c.Open(r, start, true); x != nil {
		t.Errorf("after one closed: %v", x)
	}
}

// Calls beyond those worked on at once wait in the order they came; one that leaves loses its place only.
func TestTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &Rules{AtOnce: 1}
		c := &Caller{}
		if err := c.Begin(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		ctx, leave := context.WithCancel(t.Context())
		var got []int
		for i := range 4 {
			of := t.Context()
			if i == 1 {
				of = ctx
			}
			go func() {
				if c.Begin(of, r) != nil {
					return
				}
				got = append(got, i)
				c.End()
			}()
			synctest.Wait()
		}
		leave()
		synctest.Wait()
		c.End()
		synctest.Wait()
		if fmt.Sprint(got) != "[0 2 3]" || c.working != 0 || len(c.waiting) != 0 {
			t.Errorf("turns %v, %d working, %d waiting", got, c.working, len(c.waiting))
		}
	})
}

func TestTableForgetsIdleCallers(t *testing.T) {
	t.Parallel()
	r := &Rules{PerSecond: 1, Burst: 2}
	var table Table
	enter := func(name string, now time.Time) (*Caller, *Excess) {
		return table.Caller(name, r, now, func(c *Caller) *Excess { return c.Enter(r, now) })
	}
	kept, _ := enter("kept", start)
	for i := range 10 * firstSweep {
		c, x := enter(fmt.Sprint(i), start.Add(time.Duration(i)*time.Second))
		if x != nil {
			t.Fatal(x)
		}
		c.Leave()
	}
	if n := table.Len(); n > 2*firstSweep {
		t.Errorf("%d callers are kept", n)
	}
	if c, _ := enter("kept", start.Add(time.Hour)); c != kept {
		t.Error("a caller with a call under way was forgotten")
	}
}

func TestAddress(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{
		"192.0.2.7:443": "192.0.2.7", "[::ffff:192.0.2.7]:1": "192.0.2.7",
		"[2001:db8:1:2:3:4:5:6]:99": "2001:db8:1:2::/64", "@": "@",
	} {
		if got := Address(addr); got != want {
			t.Errorf("%s: %s", addr, got)
		}
	}
}
