package api

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/limit"
)

// limits are what callers may take, and what they have taken.
type limits struct {
	known   limit.Rules // of a user
	unknown limit.Rules // of an address that has shown no identity
}

func limitsOf(c *config.Config) *limits {
	l := &c.Limits
	return &limits{
		known: limit.Rules{
			PerSecond: int(l.RequestsPerSecond), Burst: int(l.RequestsBurst), InFlight: int(l.RequestsInFlight), AtOnce: int(l.RequestsAtOnce),
			Bytes: int64(l.RequestBytes), Streams: int(l.Streams), Followers: int(l.Followers),
		},
		unknown: limit.Rules{PerSecond: int(l.UnknownRequests), Burst: unknownBurst * int(l.UnknownRequests)},
	}
}

// unknownBurst is how many seconds' calls an unknown caller may make at once.
const unknownBurst = 4

// held is what a call has of its caller's limits, until it is released.
type held struct {
	caller   *limit.Caller
	rules    *limit.Rules
	stream   bool
	follower bool
	working  bool
	bytes    int64
}

// admit counts a call of a known user and waits for its turn. Administrators are not limited.
func (a *Base) admit(w *answer, r *http.Request, who *caller, follower bool) error {
	if who.Admin {
		return nil
	}
	rules, now := &a.limits.Load().known, time.Now()
	stream := w.isStream
	c, x := a.known.Caller(string(who.User), rules, now, func(c *limit.Caller) *limit.Excess {
		if stream {
			return c.Open(rules, now, follower)
		}
		return c.Enter(rules, now)
	})
	if x != nil {
		return tooMuch("user "+string(who.User), x)
	}
	w.held = held{caller: c, rules: rules, stream: stream, follower: follower}
	if stream {
		return nil
	}
	if err := c.Begin(r.Context(), rules); err != nil {
		return err // the caller left
	}
	w.held.working = true
	return nil
}

// heavyAtOnce is how many calls over much of the history, or all samples of a job, one user has worked on at once; the others wait.
const heavyAtOnce = 2

// heavy waits for the caller's turn to read history: each such call may take a processor for a while.
func (a *Base) heavy(ctx context.Context, who *caller) (done func(), err error) {
	if who.Admin {
		return func() {}, nil
	}
	rules := &limit.Rules{AtOnce: heavyAtOnce}
	c, _ := a.known.Caller("history of "+string(who.User), rules, time.Now(), func(c *limit.Caller) *limit.Excess {
		err = c.Begin(ctx, rules)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return c.End, nil
}

// release gives back what a call has.
func (h *held) release() {
	if h.caller == nil {
		return
	}
	if h.bytes > 0 {
		h.caller.Free(h.bytes)
	}
	if h.working {
		h.caller.End()
	}
	if h.stream {
		h.caller.Close(h.follower)
	} else {
		h.caller.Leave()
	}
	h.caller = nil
}

// turn does a part of a stream's work when it is the caller's turn.
func (h *held) turn(ctx context.Context, f func() error) error {
	if h.caller == nil {
		return f()
	}
	if err := h.caller.Begin(ctx, h.rules); err != nil {
		return err
	}
	defer h.caller.End()
	return f()
}

// streams is how many the caller has open; 0 for one who is not limited.
func (h *held) streams() int {
	if h.caller == nil {
		return 0
	}
	return h.caller.Streams()
}

// reserve takes n more bytes for the call's body.
func (h *held) reserve(n int64) error {
	if h.caller == nil || n <= announced {
		return nil
	}
	if x := h.caller.Reserve(h.rules, n); x != nil {
		return tooMuch("you", x)
	}
	h.bytes += n
	return nil
}

// admitUnknown counts a call of somebody who has shown no identity, or a false one.
func (a *Base) admitUnknown(r *http.Request) error {
	name := limit.Address(r.RemoteAddr)
	if cred, ok := r.Context().Value(peerKey{}).(*unix.Ucred); ok {
		if cred.Uid == 0 {
			return nil
		}
		name = "uid " + strconv.FormatUint(uint64(cred.Uid), 10)
	}
	rules, now := &a.limits.Load().unknown, time.Now()
	c, x := a.unknown.Caller(name, rules, now, func(c *limit.Caller) *limit.Excess { return c.Enter(rules, now) })
	if x != nil {
		x.Limit = "unknown_requests"
		return tooMuch("the address "+name+", without an identity,", x)
	}
	c.Leave() // only its rate counts
	return nil
}

// excesses say what a limit bounds.
var excesses = map[string]string{
	"requests_per_second": "makes more than %d requests a second",
	"unknown_requests":    "makes more than %d requests a second",
	"requests_in_flight":  "has more than %d requests under way",
	"request_bytes":       "sends more than %d bytes in the requests under way",
	"streams":             "has %d streams open, the most there may be",
	"followers":           "follows %d logs, the most there may be",
}

// tooMuch is the error of a call over a limit.
func tooMuch(who string, x *limit.Excess) error {
	e := core.Errorf(core.Exhausted, "%s "+excesses[x.Limit]+" (limits.%s in the server's settings)", who, x.Value, x.Limit).Because("limit_" + x.Limit)
	if x.After > 0 {
		e.Message += fmt.Sprintf("; try again in %v", x.After.Round(time.Millisecond))
	}
	e.Err = x
	return e
}
