package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"bireme.dev/bireme/internal/store"
)

// commit writes batches in order. It returns nil when commits is closed, errReload when a commit failed or its fate is
// not known, store.ErrStale when somebody else leads.
func (e *Engine) commit(ctx context.Context, commits <-chan *batch, idle chan<- commitReport) error {
	for b := range commits {
		var err error
		began := time.Now()
		if !b.changes.Empty() {
			err = e.store.Commit(ctx, e.epoch.Load(), b.changes)
		}
		if err != nil {
			e.log.Error("commit", "inputs", len(b.waiting), "err", err)
			for _, r := range b.waiting {
				r.err = unavailable("the last write failed")
				close(r.done)
			}
			if errors.Is(err, store.ErrStale) {
				return err
			}
			return fmt.Errorf("%w: %w", errReload, err)
		}
		if b.config != nil {
			e.config.Store(b.config)
		}
		took := time.Since(began)
		e.snapshot.Store(b.snapshot)
		e.mu.Lock()
		e.stats.Batches++
		e.stats.Committing += took
		e.stats.Inputs += int64(len(b.waiting))
		e.mu.Unlock()
		back := 0
		for _, r := range b.waiting {
			if !r.isUrgent {
				back++
			}
			close(r.done)
		}
		if !b.changes.Empty() {
			e.publish(&Published{Changes: b.changes, Snapshot: b.snapshot})
		}
		idle <- commitReport{took: took, answered: back}
	}
	return nil
}
