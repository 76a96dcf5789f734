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
func (a *API) endings(ctx context.Context, in *state.Submit) (err error) {
	if text := in.Spec.More().Dependency; text != "" {
		in.Ended, in.Seen, err = a.ended(ctx, text)
	}
	return err
}

// ended is the same for any dependency, with the number of the snapshot that was looked at.
func (a *API) ended(ctx context.Context, text string) (out []*core.Job, seen int64, err error) {
	needs, err := grammar.ParseDependency(text)
	if err != nil {
		return nil, 0, nil // the engine refuses it in its own words
	}
	seen = max(1, a.Engine.Snapshot().Seq())
	q := store.JobQuery{Limit: 10_000}
	for _, n := range needs.Left {
		if n.Job != 0 {
			q.IDs = append(q.IDs, n.Job)
		}
	}
	if len(q.IDs) == 0 {
		return nil, seen, nil
	}
	for { // an array may have ended task by task
		jobs, err := a.Store.Jobs(ctx, q)
		if err != nil {
			return nil, 0, storeError(err)
		}
		for _, j := range jobs {
			out = append(out, &core.Job{ID: j.ID, Array: j.Array, State: j.State})
		}
		if len(jobs) < q.Limit {
			return out, seen, nil
		}
		q.After = jobs[len(jobs)-1].ID
	}
}
