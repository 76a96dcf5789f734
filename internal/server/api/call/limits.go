package call

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
			PerSecond: int(l.RequestsPerSecond), Burst: int(l.RequestsBurst), InFlight: int(l.RequestsInFlight),
			AtOnce: int(l.RequestsAtOnce),
			Bytes:  int64(l.RequestBytes), Streams: int(l.Streams), Followers: int(l.Followers),
		},
		unknown: limit.Rules{PerSecond: int(l.UnknownRequests), Burst: unknownBurst * int(l.UnknownRequests)},
	}
}

// unknownBurst is how many seconds' calls an unknown caller may make at once.
const unknownBurst = 4

// Held is what a call has of its caller's limits, until it is released.
type Held struct {
	caller   *limit.Caller
	rules    *limit.Rules
	stream   bool
	follower bool
	working  bool
	bytes    int64
}

// Admit counts a call of a known user and waits for its turn. Administrators are not limited.
func (a *Base) Admit(w *Answer, r *http.Request, who *Caller, follower bool) error {
	if who.Admin {
		return nil
	}
	rules, now := &a.limits.Load().known, time.Now()
	stream := w.IsStream
	c, x := a.known.Caller(string(who.User), rules, now, func(c *limit.Caller) *limit.Excess {
		if stream {
			return c.Open(rules, now, follower)
		}
		return c.Enter(rules, now)
	})
	if x != nil {
		refuseLate(r.Context())
		return tooMuch("user "+string(who.User), x)
	}
	w.Held = Held{caller: c, rules: rules, stream: stream, follower: follower}
	if stream {
		return nil
	}
	if err := c.Begin(r.Context(), rules); err != nil {
		return err // the caller left
	}
	w.Held.working = true
	return nil
}

// refusalDelay is how long a call over a limit waits for its refusal. A caller who minds none makes fewer calls so,
// and the server has less to do for them. Those who wait are as many as the caller has connections.
const refusalDelay = 100 * time.Millisecond

func refuseLate(ctx context.Context) {
	t := time.NewTimer(refusalDelay)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// heavyAtOnce is how many calls over much of the history, all samples of a job, all jobs or all shares one user has
// worked on at once; the others wait.
const heavyAtOnce = 2

// Heavy waits for the caller's turn to read history, or much of the state: each such call may take a processor for a
// while.
func (a *Base) Heavy(ctx context.Context, who *Caller) (done func(), err error) {
	if who.Admin || ctx.Value(heavyKey{}) != nil {
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

// heavyKey is where calls that a handler makes have that it has its turn, see Heavy.
type heavyKey struct{}

// WithHeavy makes a context of calls that a handler makes which has had its turn of Heavy: they need none of their own.
func WithHeavy(ctx context.Context) context.Context { return context.WithValue(ctx, heavyKey{}, true) }

// Release releases what a call holds.
func (h *Held) Release() {
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

// Turn does a part of a stream's work when it is the caller's turn.
func (h *Held) Turn(ctx context.Context, f func() error) error {
	if h.caller == nil {
		return f()
	}
	if err := h.caller.Begin(ctx, h.rules); err != nil {
		return err
	}
	defer h.caller.End()
	return f()
}

// Streams is how many the caller has open; 0 for one who is not limited.
func (h *Held) Streams() int {
	if h.caller == nil {
		return 0
	}
	return h.caller.Streams()
}

// reserve takes n more bytes for the call's body.
func (h *Held) reserve(n int64) error {
	if h.caller == nil || n <= announced {
		return nil
	}
	if x := h.caller.Reserve(h.rules, n); x != nil {
		return tooMuch("you", x)
	}
	h.bytes += n
	return nil
}

// AdmitUnknown counts a call of somebody who has shown no identity, or a false one.
func (a *Base) AdmitUnknown(r *http.Request) error {
	name := limit.Address(r.RemoteAddr)
	if cred, ok := r.Context().Value(PeerKey{}).(*unix.Ucred); ok {
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
	e := core.Errorf(core.Exhausted, "%s "+excesses[x.Limit]+" (limits.%s in the server's settings)", who, x.Value,
		x.Limit).Because("limit_" + x.Limit)
	if x.After > 0 {
		e.Message += fmt.Sprintf("; try again in %v", x.After.Round(time.Millisecond))
	}
	e.Err = x
	return e
}
