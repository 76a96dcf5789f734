package engine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/store"
)

// ErrLeadershipLost is why Run ends when somebody else leads, or may.
var ErrLeadershipLost = errors.New("leadership lost")

// lease is what an engine knows of its leadership by its own clock. The store's end of the lease is never read: the
// holder counts from when it asked, so its end always comes first (docs/adr/0011).
type lease struct {
	until atomic.Int64 // by Config.Clock, in nanoseconds; not after it, not even for a moment
	over  atomic.Bool  // it was given up, and no answer that is still under way brings it back
}

// margin is the part of a lease that its holder does not use: clocks may run at rates that differ by so much. It is far
// more than any two quartzes do.
const margin = 8

// grant notes that the store gave or renewed the lease for a request made at sent.
func (l *lease) grant(sent, length time.Duration) {
	if until := int64(sent + length - length/margin); until > l.until.Load() {
		l.until.Store(until)
	}
}

// holds reports whether the lease holds at now.
func (l *lease) holds(now time.Duration) bool {
	return !l.over.Load() && int64(now) < l.until.Load()
}

// HoldsLease reports whether nobody else can lead at this moment. What outlives the answer (a fence that is renewed)
// must have been begun before the question.
func (e *Engine) HoldsLease() bool {
	return e.cfg.Lease == 0 || e.lease.holds(e.cfg.Clock())
}

// lead waits for its turn; commands that come meanwhile are refused, not kept. It returns nil too when ctx ends.
func (e *Engine) lead(ctx context.Context) error {
	for began := e.cfg.Clock(); e.cfg.Yield > 0 && e.cfg.Clock()-began < e.cfg.Yield; {
		if !e.Copy.follow(ctx, e.cfg.Yield/8, "this server has stepped down") {
			return nil
		}
	}
	for {
		if why := clockFault(ctx, e); why != "" {
			if e.ReadOnly() != why {
				e.log.Error("this server does not lead", "why", why)
			}
			e.readOnly.Store(&why)
			if !e.Copy.follow(ctx, followEvery, why) {
				return nil
			}
			continue
		}
		sent := e.cfg.Clock()
		asking, answered := ctx, context.CancelFunc(func() {})
		if e.cfg.Lease > 0 {
			asking, answered = context.WithTimeout(ctx, e.cfg.Lease)
		}
		epoch, err := e.store.Lead(asking, e.cfg.Holder, e.cfg.Lease, 0, e.cfg.leaseNow())
		answered()
		if err == nil {
			e.lease.grant(sent, e.cfg.Lease)
			e.epoch.Store(epoch)
			e.readOnly.Store(nil)
			e.log.Info("leading", "epoch", epoch)
			return nil
		}
		if ctx.Err() != nil {
			return nil
		}
		why := "another server leads"
		switch held := errors.Is(err, store.ErrHeld); {
		case !held:
			why = "the store is away: " + err.Error()
			if e.ReadOnly() != why {
				e.log.Warn("cannot take the lead yet", "err", err)
			}
		case e.ReadOnly() != why:
			e.log.Info("following: another server leads", "err", err)
		}
		e.readOnly.Store(&why)
		if !e.Copy.follow(ctx, max(e.cfg.Lease/8, 20*time.Millisecond), why) {
			return nil
		}
	}
}

// maxClockFault is how much the clock of a server that leads may differ from the database's. Jobs are stamped with it,
// and the state's time never goes back: an hour too late would be there for an hour after the clock is right again.
const maxClockFault = 5 * time.Minute

// clockFault says why this server must not lead because of its clock; "": it may.
func clockFault(ctx context.Context, e *Engine) string {
	if e.cfg.Lease == 0 {
		return ""
	}
	asking, answered := context.WithTimeout(ctx, e.cfg.Lease)
	defer answered()
	l, err := e.store.Leader(asking)
	if err != nil {
		return "" // asking for the lead tells why
	}
	if off := e.cfg.Now().Sub(l.Now.Go()); off.Abs() > maxClockFault {
		return fmt.Sprintf("this server's clock is %v off the database's: set it (chronyc tracking tells), or the database's",
			off.Round(time.Second))
	}
	return ""
}

// leaseNow is the clock leases go by: the database's where several servers share one, so that theirs need not agree.
func (c *Config) leaseNow() core.Time {
	if c.Lease > 0 {
		return 0
	}
	return core.At(c.Now())
}

// resign gives the lease back, so that the next leader need not wait for its end.
func resign(e *Engine) {
	if e.lease.over.Swap(true) { // from the next line on somebody else may lead
		return // it was lost
	}
	ctx, cancel := context.WithTimeout(context.Background(), e.cfg.Lease)
	defer cancel()
	_, err := e.store.Lead(ctx, e.cfg.Holder, 0, e.epoch.Load(), e.cfg.leaseNow())
	if err != nil && !errors.Is(err, store.ErrStale) && !errors.Is(err, store.ErrHeld) {
		e.log.Warn("give the lease back", "err", err)
	}
}

// renewLease extends the lease until ctx ends. A renewal that hangs is given up with the lease, and is a failed one.
func renewLease(ctx context.Context, e *Engine, lost func(error)) {
	every := e.cfg.Lease / 3
	for pause(ctx, every) {
		sent := e.cfg.Clock()
		asking, answered := context.WithTimeout(ctx, e.cfg.Lease)
		_, err := e.store.Lead(asking, e.cfg.Holder, e.cfg.Lease, e.epoch.Load(), e.cfg.leaseNow())
		answered()
		every = e.cfg.Lease / 3
		switch {
		case err == nil:
			e.lease.grant(sent, e.cfg.Lease)
		case errors.Is(err, store.ErrStale), errors.Is(err, store.ErrHeld):
			lost(err)
			return
		case ctx.Err() == nil:
			e.log.Warn("the lease was not renewed", "left", time.Duration(e.lease.until.Load())-e.cfg.Clock(), "err", err)
			every = e.cfg.Lease / 16 // the store may be back in time
		}
	}
}

// watch ends the leadership with the lease, whatever its renewal waits for.
func (l *lease) watch(ctx context.Context, cfg *Config, lost func(error)) {
	for {
		left := time.Duration(l.until.Load()) - cfg.Clock()
		if left <= 0 {
			lost(fmt.Errorf("the lease of %v was not renewed in time", cfg.Lease))
			return
		}
		if !pause(ctx, left) {
			return
		}
	}
}
