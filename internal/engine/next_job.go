package engine

import (
	"context"
	"fmt"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/store"
)

// raiseNextJob moves the next job id of what was loaded to the least one that Config.LeastJob allows, in the store
// first: ids that were given out before an older copy of the store was put back do not come again.
func (e *Engine) raiseNextJob(ctx context.Context, img *store.Image) error {
	if e.cfg.LeastJob == nil {
		return nil
	}
	least := e.cfg.LeastJob(img.Seq)
	if least <= img.NextJob {
		return nil
	}
	if err := e.store.Commit(ctx, e.epoch.Load(), &core.Changes{Now: img.Now, NextJob: least}); err != nil {
		return fmt.Errorf("raise the next job id: %w", err)
	}
	e.log.Warn("the database is older than this server has seen it: a copy was put back; "+
		"job ids go on after those given out since",
		"seq", img.Seq, "next_was", img.NextJob, "next", least)
	img.NextJob = least
	return nil
}
