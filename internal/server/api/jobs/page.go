package jobs

import (
	"context"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/api/selection"
	"bireme.dev/bireme/internal/server/api/view"
	"bireme.dev/bireme/internal/store"
)

// Bounds of one listing: neither history nor the number of live jobs has one, a server's memory and time have.
const (
	maxBriefs = 20_000 // live jobs in an answer of brief ones, which is written as it is made
	maxLooked = 50_000 // ended jobs that one request reads to find its page
)

// page returns the jobs of an answer in its order, and after which job to ask for more; 0: there are no more.
func (a *Jobs) page(ctx context.Context, v *view.Viewer, sel *selection.Selection) (
	list []*core.Job, next core.JobID, err error,
) {
	limit := call.MaxPage
	if sel.Brief && !sel.History {
		limit = maxBriefs
	}
	if sel.Limit > 0 {
		limit = min(limit, sel.Limit)
	}
	if !sel.History && !sel.Newest && len(sel.Refs) == 0 {
		list = liveFrom(v, sel, limit+1)
	} else {
		list = slices.DeleteFunc(a.selectLive(v, sel), func(j *core.Job) bool { return !sel.Beyond(j) })
		if sel.Newest {
			slices.Reverse(list)
		}
	}
	if sel.History {
		if list, next, err = a.withHistory(ctx, v, sel, list, limit); err != nil {
			return nil, 0, err
		}
	}
	if len(list) > limit {
		list = list[:limit:limit]
		next = list[limit-1].ID
	}
	return list, next, nil
}

// liveFrom returns the first live jobs of a page, at most so many, without looking at those before it.
func liveFrom(v *view.Viewer, sel *selection.Selection, most int) (list []*core.Job) {
	for j := range v.JobsFrom(sel.After + 1) {
		if sel.Match(j) {
			if list = append(list, j); len(list) == most {
				break
			}
		}
	}
	return list
}

// withHistory merges the store's jobs into the live ones until there are limit of them, none are left, or too many were
// looked at: next is then the last of those. What it returns may be longer, and is complete up to the limit.
func (a *Jobs) withHistory(ctx context.Context, v *view.Viewer, sel *selection.Selection, live []*core.Job, limit int) (
	list []*core.Job, next core.JobID, err error,
) {
	q := store.JobQuery{
		Users: names2users(v.Snap, sel.Users.List), Projects: sel.Projects.List, Partitions: sel.Partitions.List,
		Names: sel.Names.List,
		Since: sel.Since, Until: sel.Until, Newest: sel.Newest, After: sel.After, Limit: limit + 1,
	}
	if !sel.Completing {
		q.States = sel.States
	}
	if !v.AllJobs() { // the store leaves out what the loop below would: history may be long
		q.Seen = &store.Seen{User: v.User, Projects: v.Managed()}
	}
	for _, f := range sel.Refs {
		q.IDs = append(q.IDs, f.Id)
	}
	if err := a.addComponents(ctx, sel, &q); err != nil {
		return nil, 0, err
	}
	ended := []*core.Job{}
	for looked, more := 0, true; more && len(ended) <= limit; {
		found, err := a.Store.Jobs(ctx, q)
		if err != nil {
			return nil, 0, call.StoreError(err)
		}
		for _, j := range found {
			if _, isLive := v.Snap.Job(j.ID); !isLive && v.SeesJob(j) && sel.Match(j) { // memory knows better about what is live
				ended = append(ended, j)
			}
		}
		if sel.LeaveDeleted {
			if ended, err = a.leaveDeleted(ctx, ended); err != nil {
				return nil, 0, err
			}
		}
		if more = len(found) == q.Limit; more {
			q.After = found[len(found)-1].ID
		}
		if looked += len(found); more && looked >= maxLooked && len(ended) <= limit {
			next = q.After
			break
		}
	}
	list = append(ended, live...)
	if next != 0 { // what lies beyond belongs to the next page
		after := &selection.Selection{After: next, Newest: sel.Newest}
		list = slices.DeleteFunc(list, after.Beyond)
	}
	slices.SortFunc(list, sel.Order)
	return list, next, nil
}

// leaveDeleted removes the jobs of runs that somebody deleted.
func (a *Jobs) leaveDeleted(ctx context.Context, list []*core.Job) ([]*core.Job, error) {
	var names []string
	var projects []core.ProjectName
	for _, j := range list {
		if j.Spec.Run != "" {
			names = append(names, j.Spec.Run)
			projects = append(projects, j.Spec.Project)
		}
	}
	slices.Sort(names)
	slices.Sort(projects)
	projects = slices.Compact(projects)
	deleted := map[core.JobID]bool{}
	for chunk := range slices.Chunk(slices.Compact(names), 500) {
		q := store.RunQuery{Projects: projects, Names: chunk, Limit: call.MaxPage}
		for more := true; more; {
			runs, err := a.Store.Runs(ctx, q)
			if err != nil {
				return nil, call.StoreError(err)
			}
			for _, r := range runs {
				for _, id := range r.Jobs {
					deleted[id] = r.Deleted != 0
				}
			}
			if more = len(runs) == q.Limit; more {
				q.Before, q.BeforeID = runs[len(runs)-1].Created, runs[len(runs)-1].ID
			}
		}
	}
	return slices.DeleteFunc(list, func(j *core.Job) bool {
		lead := j.ID
		if j.Array != nil {
			lead = j.Array.Base
		} else if h := j.Spec.More().Het; h != nil {
			lead = h.Lead
		}
		return deleted[lead]
	}), nil
}
