package api

import (
	"context"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/store"
)

// refIndex finds the references that mean a job without looking at all of them, so that thousands of ids cost one pass
// over the live jobs.
type refIndex struct {
	refs  []jobRef
	whole map[core.JobID][]int // jobs, arrays, het jobs and ranges of tasks, by id
	tasks map[taskKey][]int    // single tasks
	array map[core.JobID][]int // single tasks too, by their array
}

type taskKey struct {
	array core.JobID
	task  int
}

func indexRefs(refs []jobRef) *refIndex {
	x := &refIndex{refs: refs, whole: map[core.JobID][]int{}, tasks: map[taskKey][]int{}, array: map[core.JobID][]int{}}
	for i, f := range refs {
		if f.tasks.Len() == 1 {
			k := taskKey{f.id, f.tasks.Min()}
			x.tasks[k] = append(x.tasks[k], i)
			x.array[f.id] = append(x.array[f.id], i)
		} else {
			x.whole[f.id] = append(x.whole[f.id], i)
		}
	}
	return x
}

// each calls found for every reference that means j, until it says that it has heard enough.
func (x *refIndex) each(j *core.Job, found func(ref int) (more bool)) {
	look := func(list []int) bool {
		for _, i := range list {
			if x.refs[i].is(j) && !found(i) {
				return false
			}
		}
		return true
	}
	if !look(x.whole[j.ID]) {
		return
	}
	if h := j.Spec.More().Het; h != nil && h.Lead != j.ID && !look(x.whole[h.Lead]) {
		return
	}
	if j.Array == nil {
		return
	}
	if base := j.Array.Base; base != j.ID && !look(x.whole[base]) {
		return
	}
	if j.IsArray() {
		look(x.array[j.Array.Base])
	} else {
		look(x.tasks[taskKey{j.Array.Base, int(j.Array.Task)}])
	}
}

// any tells whether some reference means j.
func (x *refIndex) any(j *core.Job) bool {
	hit := false
	x.each(j, func(int) bool { hit = true; return false })
	return hit
}

// eachLive calls f for every live job that a reference means: those named by a plain id are looked up, and one pass over
// all jobs finds the others.
func eachLive(v *viewer, refs []jobRef, f func(ref int, j *core.Job)) {
	var rest []jobRef
	var at []int
	for i, r := range refs {
		if mayBeArray(v.snap, r) {
			rest, at = append(rest, r), append(at, i)
		} else if j, ok := v.job(r.id); ok {
			f(i, j)
		}
	}
	if len(rest) == 0 {
		return
	}
	x := indexRefs(rest)
	for j := range v.jobs() {
		x.each(j, func(i int) bool { f(at[i], j); return true })
	}
}

// standing is what a request needs to know of a job that it names.
type standing struct {
	live    int  // records that live
	matches bool // one of them passes the filters
	open    bool // one that does has not ended
}

// named turns references into work; what is not there is answered at once.
func (a *Control) named(ctx context.Context, v *viewer, ids []string, sel *selection, out *client.Cancelled) ([]cancelTodo, error) {
	refs, wrong := make([]jobRef, len(ids)), make([]error, len(ids)) // a reference that is none has id 0, which no job has
	budget := refBudget{}
	for i, text := range ids {
		refs[i], wrong[i] = budget.parse(text)
		if core.CodeOf(wrong[i]) == core.TooLarge {
			return nil, wrong[i] // all or nothing: half of such a request would surprise
		}
	}
	only := *sel
	only.states, only.completing = nil, false // the engine checks those
	found := make([]standing, len(refs))
	eachLive(v, refs, func(i int, j *core.Job) {
		s := &found[i]
		if s.live++; !s.open && only.match(j) {
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
			todo = append(todo, cancelTodo{label: ids[i], job: ref.id, tasks: ref.tasks, part: ref.part, states: stateFilter(sel)})
			continue
		}
		out.Results = append(out.Results, client.CancelResult{ID: ids[i], Error: asCoreError(err)})
	}
	return todo, nil
}

// maxEndedTasks bounds the records of ended tasks that are read to tell whether one was there.
const maxEndedTasks = 10_000

// endedRefs tells which of the references without a live job name one that has ended, by one query for all of them, and
// one more where tasks of arrays are named.
func (a *Control) endedRefs(ctx context.Context, v *viewer, refs []jobRef, found []standing) (map[int]bool, error) {
	var ids []core.JobID
	tasks := false
	for i, f := range refs {
		if found[i].live == 0 {
			ids = append(ids, f.id)
			tasks = tasks || !f.tasks.Empty()
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
		return nil, storeError(err)
	}
	x := indexRefs(refs)
	for _, j := range list {
		if !v.seesJob(j) {
			continue
		}
		x.each(j, func(i int) bool { known[i] = true; return true })
	}
	return known, nil
}
