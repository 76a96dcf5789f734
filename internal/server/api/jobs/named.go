package jobs

import (
	"context"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/api/selection"
	"bireme.dev/bireme/internal/server/api/view"
	"bireme.dev/bireme/internal/store"
)

// standing is what a request needs to know of a job that it names.
type standing struct {
	live    int  // records that live
	matches bool // one of them passes the filters
	open    bool // one that does has not ended
}

// named turns references into work; what is not there is answered at once.
func (a *Control) named(ctx context.Context, v *view.Viewer, ids []string, sel *selection.Selection,
	out *client.Cancelled,
) ([]cancelTodo, error) {
	// a reference that is none has id 0, which no job has
	refs, wrong := make([]selection.JobRef, len(ids)), make([]error, len(ids))
	budget := selection.RefBudget{}
	for i, text := range ids {
		refs[i], wrong[i] = budget.Parse(text)
		if core.CodeOf(wrong[i]) == core.TooLarge {
			return nil, wrong[i] // all or nothing: half of such a request would surprise
		}
	}
	only := *sel
	only.States, only.Completing = nil, false // the engine checks those
	found := make([]standing, len(refs))
	selection.EachLive(v, refs, func(i int, j *core.Job) {
		s := &found[i]
		if s.live++; !s.open && only.Match(j) {
			s.matches, s.open = true, !j.State.Final()
		}
	})
	known, err := a.endedRefs(ctx, v, refs, found)
	if err != nil {
		return nil, err
	}
	var todo []cancelTodo
	for i, ref := range refs {
		switch s := found[i]; {
		case wrong[i] != nil:
			err = wrong[i]
		case s.live == 0 && !known[i]:
			err = core.Errorf(core.NotFound, "there is no job %s", ids[i]).Because("invalid_job_id")
		case s.live == 0, s.matches && !s.open && s.live == 1:
			err = core.Errorf(core.Conflict, "job %s has ended already", ids[i]).Because("job_finished")
		case !s.matches: // filtered out
			continue
		default:
			todo = append(todo, cancelTodo{
				label: ids[i], job: ref.Id, tasks: ref.Tasks, part: ref.Part,
				states: stateFilter(sel),
			})
			continue
		}
		out.Results = append(out.Results, client.CancelResult{ID: ids[i], Error: asCoreError(err)})
	}
	return todo, nil
}

// maxEndedTasks bounds the records of ended tasks that are read to report whether one was there.
const maxEndedTasks = 10_000

// endedRefs returns which of the references without a live job name one that has ended, by one query for all of them,
// and one more where tasks of arrays are named.
func (a *Control) endedRefs(ctx context.Context, v *view.Viewer, refs []selection.JobRef, found []standing) (
	map[int]bool, error,
) {
	var ids []core.JobID
	tasks := false
	for i, f := range refs {
		if found[i].live == 0 {
			ids = append(ids, f.Id)
			tasks = tasks || !f.Tasks.Empty()
		}
	}
	known := map[int]bool{}
	if len(ids) == 0 {
		return known, nil
	}
	list, err := a.Store.Jobs(ctx, store.JobQuery{IDs: ids, Exact: true, Limit: len(ids)})
	if err == nil && tasks {
		var more []*core.Job
		more, err = a.Store.Jobs(ctx, store.JobQuery{IDs: ids, Limit: maxEndedTasks})
		list = append(list, more...)
	}
	if err != nil {
		return nil, call.StoreError(err)
	}
	x := selection.IndexRefs(refs)
	for _, j := range list {
		if !v.SeesJob(j) {
			continue
		}
		x.Each(j, func(i int) bool { known[i] = true; return true })
	}
	return known, nil
}
