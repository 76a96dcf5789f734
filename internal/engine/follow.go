package engine

import (
	"context"
	"errors"
	"fmt"
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
func (e *Engine) Following() <-chan struct{} { return e.following }

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
func (e *Engine) LeaderHolder() string {
	if c := e.copy.Load(); c != nil {
		return c.holder
	}
	return ""
}

// Behind tells how old the copy of an engine that follows may be; 0 for one that leads.
func (e *Engine) Behind() time.Duration {
	if e.HoldsLease() {
		return 0
	}
	if c := e.copy.Load(); c != nil {
		return e.cfg.Clock() - c.current
	}
	return 0
}

// Await waits until the state that readers get has an event's number. It gives up with ctx.
func (e *Engine) Await(ctx context.Context, seq int64) error {
	for {
		s := e.snapshot.Load()
		if s != nil && s.Seq() >= seq {
			return nil
		}
		moved := e.moved.Load()
		if s := e.snapshot.Load(); s != nil && s.Seq() >= seq {
			return nil
		}
		select {
		case e.catchUp <- struct{}{}:
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
func (e *Engine) follow(ctx context.Context, d time.Duration, why string) bool {
	if e.cfg.Lease == 0 {
		return e.refuseFor(ctx, d, why)
	}
	asking, answered := context.WithTimeout(ctx, max(e.cfg.Lease, followEvery))
	defer answered()
	now := e.cfg.Clock()
	c := e.copy.Load()
	due := c == nil || now-c.checked >= followEvery && now-c.checked >= maxFollowShare*c.took
	select {
	case <-e.catchUp:
		due = true
	default:
	}
	if due {
		if err := e.refresh(asking); err != nil && ctx.Err() == nil {
			e.log.Debug("the copy of the state was not brought up to date", "err", err)
		}
	}
	return e.refuseFor(ctx, d, why)
}

// refresh brings the copy up to date.
func (e *Engine) refresh(ctx context.Context) error {
	began := e.cfg.Clock()
	l, err := e.store.Leader(ctx)
	if err != nil {
		return err
	}
	old := e.copy.Load()
	next := &copied{epoch: l.Epoch, holder: l.Holder, checked: began, current: began}
	if old != nil && old.seq == l.Seq && old.epoch == l.Epoch {
		next.seq, next.took = old.seq, old.took
		e.copy.Store(next)
		return nil
	}
	if old != nil && l.Seq < old.seq {
		e.log.Error("the store has lost events that this server's copy has: the copy is dropped", "copy", old.seq, "store",
			l.Seq)
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
	e.copy.Store(next)
	e.show(st.Snapshot(), true)
	select {
	case <-e.following:
	default:
		close(e.following)
	}
	return nil
}

// show gives readers and subscribers a state that was loaded.
func (e *Engine) show(s *state.Snapshot, tell bool) {
	e.snapshot.Store(s)
	fresh := make(chan struct{})
	close(*e.moved.Swap(&fresh))
	if tell {
		e.publish(&Published{Changes: &core.Changes{}, Snapshot: s, Reloaded: true})
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
