// Package history takes over what another system knows of jobs that have ended and of what was used.
package history

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/store"
)

// History answers POST /history.
type History struct{ *call.Base }

// Take checks all of a call before anything is done. A job that is here already, with the same user and time of
// submission, is left alone, so that a call may be sent again; one of another user or time is a conflict.
func (a *History) Take(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	if !who.Admin {
		return nil, core.Errorf(core.Denied, "only administrators take over jobs and usage").Because("access_denied")
	}
	var in client.TakeHistory
	if err := call.Decode(r, &in); err != nil {
		return nil, err
	}
	if len(in.Jobs)+len(in.Steps)+len(in.Known) > client.MaxHistory {
		return nil, core.Errorf(core.Invalid, "a call takes over at most %d jobs and steps", client.MaxHistory).
			Because("too_many")
	}
	out := &client.HistoryTaken{HalfLife: a.halfLife()}
	fresh, err := a.sort(r.Context(), &in, out)
	if err != nil || in.DryRun || len(out.Conflicts) > 0 {
		return out, err
	}
	done, err := engine.Do(r.Context(), a.Engine, &state.TakeHistory{
		By: who.Identity, Jobs: fresh, Steps: in.Steps, Spent: in.Spent, NextJob: in.NextJob,
	})
	if err != nil {
		return nil, err
	}
	out.Spent = done.Spent
	return out, nil
}

func (a *History) halfLife() core.Seconds {
	if p := a.Settings().Priority; p.HalfLife > 0 {
		return core.Seconds(time.Duration(p.HalfLife).Seconds())
	}
	return 0
}

// sort finds which jobs are new here.
func (a *History) sort(ctx context.Context, in *client.TakeHistory, out *client.HistoryTaken) ([]*core.Job, error) {
	known := in.Known
	for _, j := range in.Jobs {
		if j == nil || j.Spec == nil {
			return nil, core.Errorf(core.Invalid, "jobs: one has no spec").Because("invalid_history")
		}
		known = append(known, client.KnownJob{ID: j.ID, User: j.Spec.User, Submit: j.Submit})
	}
	ids := make([]core.JobID, len(known))
	for i := range known {
		ids[i] = known[i].ID
	}
	here := map[core.JobID]*core.Job{}
	if len(ids) > 0 {
		list, err := a.Store.Jobs(ctx, store.JobQuery{IDs: ids, Exact: true, Live: true, Limit: len(ids)})
		if err != nil {
			return nil, err
		}
		for _, j := range list {
			here[j.ID] = j
		}
	}
	for i := range known {
		k := &known[i]
		switch j := here[k.ID]; {
		case j == nil:
			out.Taken++
		case j.Spec.User == k.User && j.Submit == k.Submit:
			out.Same++
		default:
			out.Conflicts = append(out.Conflicts, client.HistoryConflict{
				ID: k.ID,
				Why: fmt.Sprintf("%s submitted a job of this id here at %s", j.Spec.User,
					j.Submit.Go().UTC().Format("2006-01-02T15:04:05Z")),
			})
		}
	}
	var fresh []*core.Job
	for _, j := range in.Jobs {
		if here[j.ID] == nil {
			fresh = append(fresh, j)
		}
	}
	return fresh, nil
}
