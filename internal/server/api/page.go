package api

import (
	"context"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/store"
)

// Bounds of one listing: neither history nor the number of live jobs has one, a server's memory and time have.
const (
	maxPage   = 5_000  // jobs in an answer
	maxBriefs = 20_000 // live jobs in an answer of brief ones, which is written as it is made
	maxLooked = 50_000 // ended jobs that one request reads to find its page
)

// page gives the jobs of an answer in its order, and after which job to ask for more; 0: there are no more.
func (a *Jobs) page(ctx context.Context, v *viewer, sel *selection) (list []*core.Job, next core.JobID, err error) {
	limit := maxPage
	if sel.brief && !sel.history {
		limit = maxBriefs
	}
	if sel.limit > 0 {
		limit = min(limit, sel.limit)
	}
	if !sel.history && !sel.newest && len(sel.refs) == 0 {
		list = liveFrom(v, sel, limit+1)
	} else {
		list = slices.DeleteFunc(a.selectLive(v, sel), func(j *core.Job) bool { return !sel.beyond(j) })
		if sel.newest {
			slices.Reverse(list)
		}
	}
	if sel.history {
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

// liveFrom gives the first live jobs of a page, at most so many, without looking at those before it.
func liveFrom(v *viewer, sel *selection, most int) (list []*core.Job) {
	for j := range v.jobsFrom(sel.after + 1) {
		if sel.match(j) {
			if list = append(list, j); len(list) == most {
				break
			}
		}
	}
	return list
}

// withHistory merges the store's jobs into the live ones until there are limit of them, none are left, or too many were
// looked at: next is then the last of those. What it returns may be longer, and is complete up to the limit.
func (a *Jobs) withHistory(ctx context.Context, v *viewer, sel *selection, live []*core.Job, limit int) (list []*core.Job, next core.JobID, err error) {
	q := store.JobQuery{
		Users: names2users(v.snap, sel.users.list), Projects: sel.projects.list, Partitions: sel.partitions.list, Names: sel.names.list,
		Since: sel.since, Until: sel.until, Newest: sel.newest, After: sel.after, Limit: limit + 1,
	}
	if !sel.completing {
		q.States = sel.states
	}
	if !v.allJobs() { // the store leaves out what the loop below would: history may be long
		q.Seen = &store.Seen{User: v.user, Projects: v.managed()}
	}
	for _, f := range sel.refs {
		q.IDs = append(q.IDs, f.id)
	}
	if err := a.addComponents(ctx, sel, &q); err != nil {
		return nil, 0, err
	}
	ended := []*core.Job{}
	for looked, more := 0, true; more && len(ended) <= limit; {
		found, err := a.Store.Jobs(ctx, q)
		if err != nil {
			return nil, 0, storeError(err)
		}
		for _, j := range found {
			if _, isLive := v.snap.Job(j.ID); !isLive && v.seesJob(j) && sel.match(j) { // memory knows better about what is live
				ended = append(ended, j)
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
		after := &selection{after: next, newest: sel.newest}
		list = slices.DeleteFunc(list, after.beyond)
	}
	slices.SortFunc(list, sel.order)
	return list, next, nil
}
