package api

import (
	"context"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/store"
)

// endings looks up how the jobs ended that a dependency names and that have left memory. The snapshot comes first: a job
// that leaves it later is known to the engine.
func (a *API) endings(ctx context.Context, in *state.Submit) error {
	text := in.Spec.More().Dependency
	if text == "" {
		return nil
	}
	needs, err := grammar.ParseDependency(text)
	if err != nil {
		return nil // the engine refuses it in its own words
	}
	snap := a.Engine.Snapshot()
	in.Seen = max(1, snap.Seq())
	q := store.JobQuery{Limit: 10_000}
	for _, n := range needs.Left {
		if n.Job != 0 {
			q.IDs = append(q.IDs, n.Job)
		}
	}
	if len(q.IDs) == 0 {
		return nil
	}
	for { // an array may have ended task by task
		jobs, err := a.Store.Jobs(ctx, q)
		if err != nil {
			return storeError(err)
		}
		for _, j := range jobs {
			in.Ended = append(in.Ended, &core.Job{ID: j.ID, Array: j.Array, State: j.State})
		}
		if len(jobs) < q.Limit {
			return nil
		}
		q.After = jobs[len(jobs)-1].ID
	}
}
