package engine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state"
)

// An engine that does not lead keeps a copy of the state: it asks the store how far the state is, once a second or when
// somebody waits for more, and loads it again when it has moved. The copy is as of one moment, and what was in it is
// never taken back: a store that is behind it has lost commits, and the copy is given up for the store's.

// followEvery is how often a copy is compared with the store; maxFollowShare bounds what loading takes of the time.
const (
	followEvery    = time.Second
	maxFollowShare = 4
)

// Following is closed once an engine that does not lead has a copy of the state.
func (c *Copy) Following() <-chan struct{} { return c.following }

// Copy is the state of an engine that does not lead, as it was copied from the store.
type Copy struct {
	e         *Engine
	following chan struct{} // closed when there is a copy
	at        atomic.Pointer[copied]
	moved     atomic.Pointer[chan struct{}] // closed when the copy has moved
	catchUp   chan struct{}                 // somebody waits for what the copy does not have
}

// init makes the copy of an engine.
func (c *Copy) init(e *Engine) {
	c.e, c.following, c.catchUp = e, make(chan struct{}), make(chan struct{}, 1)
	moved := make(chan struct{})
	c.moved.Store(&moved)
}

// copied is what an engine that follows knows of its copy.
type copied struct {
	seq     int64
	epoch   int64
	holder  string
	checked time.Duration // by Config.Clock, when the store was last asked
	current time.Duration // when the copy was last known to be all there is
	took    time.Duration // to load it
}

// LeaderHolder is who led when the store was last asked; "": not known.
func (c *Copy) LeaderHolder() string {
	if at := c.at.Load(); at != nil {
		return at.holder
	}
	return ""
}

// Behind tells how old the copy of an engine that follows may be; 0 for one that leads.
func (c *Copy) Behind() time.Duration {
	if c.e.HoldsLease() {
		return 0
	}
	if at := c.at.Load(); at != nil {
		return c.e.cfg.Clock() - at.current
	}
	return 0
}

// Await waits until the state that readers get has an event's number. It gives up with ctx.
func (c *Copy) Await(ctx context.Context, seq int64) error {
	for {
		s := c.e.snapshot.Load()
		if s != nil && s.Seq() >= seq {
			return nil
		}
		moved := c.moved.Load()
		if s := c.e.snapshot.Load(); s != nil && s.Seq() >= seq {
			return nil
		}
		select {
		case c.catchUp <- struct{}{}:
		default:
		}
		select {
		case <-*moved:
		case <-ctx.Done():
			return core.Errorf(core.Unavailable, "this server's copy of the state does not have event %d yet; try again", seq)
		}
	}
}

// follow keeps the copy for d, or until it is time to try to lead.
func (c *Copy) follow(ctx context.Context, d time.Duration, why string) bool {
	e := c.e
	if e.cfg.Lease == 0 {
		return e.refuseFor(ctx, d, why)
	}
	asking, answered := context.WithTimeout(ctx, max(e.cfg.Lease, followEvery))
	defer answered()
	now := e.cfg.Clock()
	at := c.at.Load()
	due := at == nil || now-at.checked >= followEvery && now-at.checked >= maxFollowShare*at.took
	select {
	case <-c.catchUp:
		due = due || at == nil || now-at.checked >= at.took // half of the time at most, whoever asks
	default:
	}
	if due {
		if err := c.refresh(asking); err != nil && ctx.Err() == nil {
			e.log.Debug("the copy of the state was not brought up to date", "err", err)
		}
	}
	return e.refuseFor(ctx, d, why)
}

// refresh brings the copy up to date.
func (c *Copy) refresh(ctx context.Context) error {
	e := c.e
	began := e.cfg.Clock()
	l, err := e.store.Leader(ctx)
	if err != nil {
		return err
	}
	old := c.at.Load()
	next := &copied{epoch: l.Epoch, holder: l.Holder, checked: began, current: began}
	if old != nil && old.seq == l.Seq && old.epoch == l.Epoch {
		next.seq, next.took = old.seq, old.took
		c.at.Store(next)
		return nil
	}
	if old != nil && l.Seq < old.seq {
		e.log.Error("the store has lost events that this server's copy has: the copy is dropped", "copy", old.seq,
			"store", l.Seq)
	}
	img, err := e.store.Load(ctx)
	if err != nil {
		return err
	}
	st, err := e.build((*state.Image)(img))
	if err != nil {
		return fmt.Errorf("the copy: %w", err)
	}
	next.seq, next.took = img.Seq, e.cfg.Clock()-began
	c.at.Store(next)
	c.show(st.Snapshot(), true)
	select {
	case <-c.following:
	default:
		close(c.following)
	}
	return nil
}

// show gives readers and subscribers a state that was loaded.
func (c *Copy) show(s *state.Snapshot, tell bool) {
	c.e.snapshot.Store(s)
	fresh := make(chan struct{})
	close(*c.moved.Swap(&fresh))
	if tell {
		c.e.publish(&Published{Changes: &core.Changes{}, Snapshot: s, Reloaded: true})
	}
}

// errSteppedDown is why Run ends after StepDown.
var errSteppedDown = errors.New("it was asked to step down")

// StepDown has an engine that leads give the lease back, once what is under way is written. Run returns.
func (e *Engine) StepDown() error {
	if e.cfg.Lease == 0 {
		return core.Errorf(core.Conflict, "no other server can lead: the store is this server's own")
	}
	end := e.stepDown.Load()
	if end == nil {
		return core.Errorf(core.Conflict, "this server does not lead")
	}
	(*end)(fmt.Errorf("%w: %w", ErrLeadershipLost, errSteppedDown))
	return nil
}

// SteppedDown reports whether Run ended because of StepDown.
func SteppedDown(err error) bool { return errors.Is(err, errSteppedDown) }
