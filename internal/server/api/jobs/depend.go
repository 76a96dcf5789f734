package jobs

import (
	"context"
	"strconv"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/store"
)

// Bounds of a dependency: the jobs it names, and the ended tasks of arrays among them.
const (
	maxNeeded      = 1000
	maxNeededTasks = 1_000_000
)

// endings looks up how the jobs ended that a dependency names and that have left memory. The snapshot comes first: a
// job that leaves it later is known to the engine.
func (a *Submissions) endings(ctx context.Context, who *call.Caller, in *state.Submit) error {
	d := in.Spec.More().Dependency
	if d.IsZero() {
		return nil
	}
	x, err := a.ended(ctx, who, d)
	in.Ended, in.Seen, in.Hidden = x.jobs, x.seen, x.hidden
	return err
}

// needed is what is known of the jobs that a dependency names.
type needed struct {
	jobs   []*core.Job  // those that have left memory
	seen   int64        // the number of the snapshot that was looked at
	hidden []core.JobID // those the caller is not to know of
}

// ended is the same for any dependency. One that does not parse is refused by the engine, in its own words.
func (a *Submissions) ended(ctx context.Context, who *call.Caller, d core.Dependency) (out needed, err error) {
	needs := d.Needs()
	if needs == nil {
		return out, nil
	}
	v, err := a.Viewer(who)
	if err != nil {
		return out, err
	}
	out.seen = max(1, v.Snap.Seq())
	q := store.JobQuery{Limit: 10_000}
	if n := len(needs.Left); n > maxNeeded {
		return out, core.Errorf(core.TooLarge, "a dependency on %d jobs is too long; the limit is %d", n, maxNeeded).
			Because("invalid_dependency")
	}
	for _, n := range needs.Left {
		if n.Job != 0 {
			q.IDs = append(q.IDs, n.Job)
			if v.HidesLive(n.Job) {
				out.hidden = append(out.hidden, n.Job)
				who.Hid("job "+strconv.FormatInt(int64(n.Job), 10), "")
			}
		}
	}
	if len(q.IDs) == 0 {
		return out, nil
	}
	for { // an array may have ended task by task
		jobs, err := a.Store.Jobs(ctx, q)
		if err != nil {
			return out, call.StoreError(err)
		}
		for _, j := range jobs {
			if v.SeesJob(j) {
				out.jobs = append(out.jobs, &core.Job{ID: j.ID, Array: j.Array, State: j.State})
				continue
			}
			who.Hid("job "+strconv.FormatInt(int64(j.ID), 10), j.Spec.User)
			if out.hidden = append(out.hidden, j.ID); j.Array != nil {
				out.hidden = append(out.hidden, j.Array.Base)
			}
		}
		if len(jobs) < q.Limit {
			return out, nil
		}
		if len(out.jobs)+len(out.hidden) > maxNeededTasks {
			return out, core.Errorf(core.TooLarge, "the arrays of the dependency have more than %d ended tasks", maxNeededTasks).
				Because("invalid_dependency")
		}
		q.After = jobs[len(jobs)-1].ID
	}
}
