package call

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/api/selection"
	"bireme.dev/bireme/internal/store"
)

// Jobs that private_data hides are answered for like jobs that never were. The audit log records the attempt all the
// same, as a denial.

// errHidden is the denial that the audit log has in place of the caller's "not found".
var errHidden = core.Errorf(core.Denied, "hidden by private_data: answered as not found").Because("hidden")

// maxHidden bounds the ids of one call that are looked up for the audit log.
const maxHidden = 20

// HidJobs notes which of some jobs that were not found are there, but hidden.
func (a *Base) HidJobs(ctx context.Context, who *Caller, ids []core.JobID) {
	if a.Audit == nil || len(ids) == 0 {
		return
	}
	v, err := a.Viewer(who)
	if err != nil || v.AllJobs() {
		return
	}
	var ended []core.JobID
	for _, id := range ids[:min(len(ids), maxHidden)] {
		j, ok := v.Snap.Job(id)
		if tasks := v.Snap.Tasks(id); !ok && len(tasks) > 0 {
			j, ok = tasks[0], true
		}
		switch {
		case !ok:
			ended = append(ended, id)
		case !v.SeesJob(j):
			who.Hid("job "+strconv.FormatInt(int64(id), 10), j.Spec.User)
		}
	}
	if len(ended) == 0 {
		return
	}
	list, err := a.Store.Jobs(ctx, store.JobQuery{IDs: ended, Exact: true, Limit: len(ended)})
	if err != nil {
		a.Log.Warn("the audit log cannot tell whether a job that was not found is hidden", "user", who.User, "jobs", ended,
			"err", err)
		return
	}
	for _, j := range list {
		if !v.SeesJob(j) {
			who.Hid("job "+strconv.FormatInt(int64(j.ID), 10), j.Spec.User)
		}
	}
}

// noteHidden records that a call reached for what is hidden: the job of its path, or what its handler has noted.
func (a *Base) noteHidden(rt *Route, r *http.Request, who *Caller, err error) {
	if who == nil || who.UserRecord == nil || who.Admin {
		return
	}
	if core.CodeOf(err) == core.NotFound && strings.HasPrefix(rt.Path, Prefix+"/jobs/{id}") {
		if ref, perr := selection.ParseRef(r.PathValue("id")); perr == nil {
			a.HidJobs(r.Context(), who, []core.JobID{ref.Id})
		}
	}
	if t := who.Trail.hidden; t != nil {
		e := a.AuditEntry(rt, r, who, errHidden)
		e.Object, e.Owner = t.Object, t.Owner
		a.Audit.Note(e)
	}
}

// NotFound lists the jobs that a request named and was told are not there.
func NotFound(out *client.Cancelled) (ids []core.JobID) {
	for i := range out.Results {
		if e := out.Results[i].Error; e != nil && e.Code == core.NotFound {
			if ref, err := selection.ParseRef(out.Results[i].ID); err == nil {
				ids = append(ids, ref.Id)
			}
		}
	}
	return ids
}
