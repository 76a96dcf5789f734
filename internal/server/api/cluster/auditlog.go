package cluster

import (
	"net/http"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/store"
)

// AuditLog answers administrators' questions to the audit log, the newest entries first.
func (a *Cluster) AuditLog(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	if !who.Admin {
		return nil, core.Errorf(core.Denied, "only an administrator may read the audit log").Because("access_denied")
	}
	q := r.URL.Query()
	who.Trail.Object = "audit log " + r.URL.RawQuery
	ask := store.AuditQuery{
		User: core.UserName(q.Get("user")), Token: q.Get("token"), Action: q.Get("action"), Object: q.Get("object"),
		Answer: q.Get("answer"),
	}
	var limit int64
	for name, to := range map[string]*int64{
		"since": (*int64)(&ask.Since), "until": (*int64)(&ask.Until),
		"before": &ask.Before, "limit": &limit,
	} {
		n, err := call.Number(q.Get(name), 0)
		if err != nil {
			return nil, core.Errorf(core.Invalid, "%s: %v", name, err)
		}
		*to = n
	}
	if limit <= 0 || limit > call.MaxPage {
		limit = call.MaxPage
	}
	ask.Limit = int(limit) + 1
	if err := a.Audit.Flush(r.Context()); err != nil {
		return nil, core.Errorf(core.Unavailable, "the audit log cannot be written now; try again")
	}
	list, err := a.Store.Audit(r.Context(), ask)
	if err != nil {
		return nil, call.StoreError(err)
	}
	out := &client.AuditList{Entries: []core.AuditEntry{}}
	for i, e := range list {
		if int64(i) == limit {
			out.More = true
			break
		}
		out.Entries = append(out.Entries, *e)
	}
	return out, nil
}
