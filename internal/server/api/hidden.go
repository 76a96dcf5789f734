package api

import (
	"context"
	"net/http"
	"strconv"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/store"
)

// Jobs that private_data hides are answered for like jobs that never were. The audit log records the attempt all the same,
// as a denial.

// errHidden is the denial that the audit log has in place of the caller's "not found".
var errHidden = core.Errorf(core.Denied, "hidden by private_data: answered as not found").Because("hidden")

// maxHidden bounds the ids of one call that are looked up for the audit log.
const maxHidden = 20

// hid notes that a call named something that its caller may not see.
func (who *caller) hid(what string, owner core.UserName) {
	t := &who.trail
	if t.hidden == nil {
		t.hidden = &trail{}
	}
	t.hidden.owner = owner
	t.hidden.add(what)
}

// hidJobs notes which of some jobs that were not found are there, but hidden.
func (a *Base) hidJobs(ctx context.Context, who *caller, ids []core.JobID) {
	if a.Audit == nil || len(ids) == 0 {
		return
	}
	v, err := a.viewer(who)
	if err != nil || v.allJobs() {
		return
	}
	var ended []core.JobID
	for _, id := range ids[:min(len(ids), maxHidden)] {
		j, ok := v.snap.Job(id)
		if tasks := v.snap.Tasks(id); !ok && len(tasks) > 0 {
			j, ok = tasks[0], true
		}
		switch {
		case !ok:
			ended = append(ended, id)
		case !v.seesJob(j):
			who.hid("job "+strconv.FormatInt(int64(id), 10), j.Spec.User)
		}
	}
	if len(ended) == 0 {
		return
	}
	list, err := a.Store.Jobs(ctx, store.JobQuery{IDs: ended, Exact: true, Limit: len(ended)})
	if err != nil {
		a.Log.Warn("the audit log cannot tell whether a job that was not found is hidden", "user", who.User, "jobs", ended, "err", err)
		return
	}
	for _, j := range list {
		if !v.seesJob(j) {
			who.hid("job "+strconv.FormatInt(int64(j.ID), 10), j.Spec.User)
		}
	}
}

// noteHidden writes down that a call reached for what is hidden: the job of its path, or what its handler has noted.
func (a *Base) noteHidden(rt *route, r *http.Request, who *caller, err error) {
	if who == nil || who.user == nil || who.Admin {
		return
	}
	if core.CodeOf(err) == core.NotFound && r.PathValue("id") != "" {
		if ref, perr := parseRef(r.PathValue("id")); perr == nil {
			a.hidJobs(r.Context(), who, []core.JobID{ref.id})
		}
	}
	if t := who.trail.hidden; t != nil {
		e := a.auditEntry(rt, r, who, errHidden)
		e.Object, e.Owner = t.object, t.owner
		a.Audit.Note(e)
	}
}

// notFound lists the jobs that a request named and was told are not there.
func notFound(out *client.Cancelled) (ids []core.JobID) {
	for i := range out.Results {
		if e := out.Results[i].Error; e != nil && e.Code == core.NotFound {
			if ref, err := parseRef(out.Results[i].ID); err == nil {
				ids = append(ids, ref.id)
			}
		}
	}
	return ids
}
