package api

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/audit"
	"bireme.dev/bireme/internal/store"
)

// auditing is what a route is in the audit log.
type auditing struct {
	action string
	object string // with {names} of the path
	when   auditWhen
	body   bool // what is sent is told: it holds no secrets
}

// auditWhen is which calls of a route are told.
type auditWhen int

const (
	others auditWhen = iota // refusals, and what was done to another's things: one's own work is in events and history
	always                  // all calls: acts of administrators, changes of policy, tokens
)

// audited names the calls of every route that changes something, and of those reads that are private. Reads that are not here
// are told when they are refused.
var audited = map[string]auditing{
	"POST /reconfigure":  {"settings.reload", "settings", always, true},
	"GET /audit":         {"audit.read", "audit log", always, false},
	"POST /ca/rotate":    {"ca.rotate", "ca", always, true},
	"GET /seals":         {"seals.read", "seals", always, false},
	"POST /seals/rotate": {"seals.rotate", "seals", always, false},

	"POST /jobs":                         {"job.submit", "", others, false},
	"POST /jobs/try":                     {"job.try", "", others, false},
	"POST /jobs/cancel":                  {"job.cancel", "", others, false},
	"PATCH /jobs/{id}":                   {"job.update", "job {id}", others, false},
	"GET /jobs/{id}/script":              {"job.script", "job {id}", others, false},
	"GET /jobs/{id}/env":                 {"job.env", "job {id}", others, false},
	"GET /jobs/{id}/logs":                {"job.logs", "job {id}", others, false},
	"GET /jobs/{id}/metrics":             {"job.metrics", "job {id}", others, false},
	"POST /jobs/{id}/steps":              {"step.create", "job {id}", others, false},
	"POST /jobs/{id}/release":            {"job.release", "job {id}", others, false},
	"GET /jobs/{id}/steps/{step}/attach": {"step.attach", "step {id}.{step}", others, false},
	"GET /jobs/{id}/steps/{step}/resume": {"step.resume", "step {id}.{step}", others, false},
	"GET /streams/{key}":                 {"step.stream", "", others, false},
	"POST /runs/{name}/stop":             {"run.stop", "run {name}", others, false},

	"DELETE /nodes/{name}":        {"node.remove", "node {name}", always, false},
	"PATCH /nodes/{name}":         {"node.update", "node {name}", always, true},
	"PATCH /partitions/{name}":    {"partition.update", "partition {name}", always, true},
	"DELETE /partitions/{name}":   {"partition.delete", "partition {name}", always, false},
	"GET /agent/v1/connect":       {"node.connect", "", others, false},
	"GET /agent/v1/streams/{key}": {"node.stream", "", others, false},
	"POST /renew":                 {"node.renew", "node", others, false},
	"POST /join":                  {"node.join", "node", always, false}, // it carries a secret

	"POST /tokens":             {"token.create", "token", always, true},
	"POST /tokens/{id}/rotate": {"token.rotate", "token {id}", always, true},
	"DELETE /tokens/{id}":      {"token.revoke", "token {id}", always, false},

	"POST /users":                            {"user.create", "user", always, true},
	"PATCH /users/{name}":                    {"user.update", "user {name}", always, true},
	"POST /projects":                         {"project.create", "project", always, true},
	"PATCH /projects/{project}":              {"project.update", "project {project}", always, true},
	"DELETE /projects/{project}":             {"project.delete", "project {project}", always, false},
	"PUT /projects/{project}/members/{user}": {"project.member", "project {project} member {user}", always, true},
	"PUT /policy":                            {"policy.apply", "policy", always, true},
	"PUT /qos/{name}":                        {"qos.update", "qos {name}", always, true},
	"DELETE /qos/{name}":                     {"qos.delete", "qos {name}", always, false},
	"POST /reservations":                     {"reservation.create", "reservation", always, true},
	"PATCH /reservations/{name}":             {"reservation.update", "reservation {name}", always, true},
	"DELETE /reservations/{name}":            {"reservation.delete", "reservation {name}", always, false},
	"PUT /fleets/{name}":                     {"fleet.update", "fleet {name}", always, false}, // it may carry keys
	"DELETE /fleets/{name}":                  {"fleet.delete", "fleet {name}", always, false},
	"POST /fleets/{name}/trust":              {"fleet.trust", "fleet {name}", always, false},

	"GET /debug/pprof/{what...}": {"server.profile", "profile {what}", always, false},
}

// trail is what a call did that the audit log tells. Handlers say what the path does not.
type trail struct {
	rt      *route
	remote  string
	object  string        // in place of the route's
	owner   core.UserName // of another's things that were changed
	touched int
	refused error  // of a part of the call, which as a whole went well
	hidden  *trail // what the call named that is hidden from its caller
	detail  *excerpt
}

// about names what a call is about where the path does not.
func (who *caller) about(noun, name string) { who.trail.object = noun + " " + name }

// changed notes that another's job was changed.
func (who *caller) changed(j *core.Job) {
	if j.Spec.User == who.User {
		return
	}
	t := &who.trail
	t.owner = j.Spec.User
	t.add("job " + strconv.FormatInt(int64(j.ID), 10))
}

func (t *trail) add(what string) {
	const most = 20
	switch t.touched++; {
	case t.touched == 1:
		t.object = what
	case t.touched <= most:
		t.object += ", " + what
	case t.touched == most+1:
		t.object += ", …"
	}
}

// saw notes, at once, that somebody looks at what is private to another's job: the look may last for hours.
func (a *Base) saw(who *caller, j *core.Job) {
	if a.Audit == nil || j.Spec.User == who.User || who.trail.rt == nil {
		return
	}
	e := a.auditEntry(who.trail.rt, nil, who, nil)
	e.Object, e.Owner = "job "+strconv.FormatInt(int64(j.ID), 10), j.Spec.User
	a.Audit.Note(e)
}

// excerpt keeps the first bytes of a body while a handler reads it.
type excerpt struct {
	io.ReadCloser
	text []byte
}

const maxExcerpt = 1024

func (x *excerpt) Read(p []byte) (int, error) {
	n, err := x.ReadCloser.Read(p)
	if room := maxExcerpt - len(x.text); room > 0 {
		x.text = append(x.text, p[:min(n, room)]...)
	}
	return n, err
}

// begin prepares a call for the audit log: who signs in is told, and what is sent is kept where the route says so. It gives the
// caller, where nobody is one who does something that is told.
func (a *Base) begin(rt *route, r *http.Request, who *caller) *caller {
	if who == nil && rt.open && rt.audit.action != "" {
		who = &caller{}
	}
	if a.Audit == nil || who == nil {
		return who
	}
	who.trail.rt, who.trail.remote = rt, r.RemoteAddr
	if rt.audit.body && r.Body != nil {
		who.trail.detail = &excerpt{ReadCloser: r.Body}
		r.Body = who.trail.detail
	}
	if who.user == nil {
		return who
	}
	if now := time.Now(); a.signIns.First(audit.SignIn{User: who.User, Token: who.Token, Node: who.Node, Addr: addrOf(r.RemoteAddr)}, now) {
		e := a.auditEntry(rt, r, who, nil)
		e.Action, e.Object = "sign-in", ""
		a.Audit.Note(e)
	}
	return who
}

// end tells the audit log how a call went. An act of an administrator is on disk before it is answered: what it gives in
// place of err says when that could not be.
func (a *Base) end(rt *route, r *http.Request, who *caller, err error) error {
	if a.Audit == nil {
		return err
	}
	a.noteHidden(rt, r, who, err)
	code := core.CodeOf(err)
	refused := code == core.Denied || code == core.Unknown
	var t *trail
	if who != nil {
		t = &who.trail
		if t.refused != nil {
			a.Audit.Note(a.auditEntry(rt, r, who, t.refused))
		}
	}
	switch {
	case refused, rt.audit.when == always && !errors.Is(err, errAnswered):
	case t != nil && t.touched > 0:
	default:
		return err
	}
	e := a.auditEntry(rt, r, who, err)
	if who == nil && !rt.open {
		e.Action, e.Detail = "sign-in", rt.method+" "+r.URL.Path
	}
	if err != nil || who == nil || !who.Admin || rt.method == http.MethodGet {
		a.Audit.Note(e)
		return err
	}
	if werr := a.Audit.Write(r.Context(), e); werr != nil {
		return &core.Error{
			Code: core.Unavailable, Reason: "audit_unavailable", Err: werr,
			Message: "it was done, but the audit log cannot be written now, so it is not confirmed",
		}
	}
	return nil
}

// auditEntry is a call as the audit log tells it. r may be nil.
func (a *Base) auditEntry(rt *route, r *http.Request, who *caller, err error) *core.AuditEntry {
	e := &core.AuditEntry{UID: -1, Action: rt.audit.action, Answer: core.AuditOK, Count: 1}
	if e.Action == "" {
		e.Action = "read"
	}
	remote := ""
	if r != nil {
		remote = r.RemoteAddr
		e.Object = fillPath(rt, r)
	}
	if who != nil {
		t := &who.trail
		if remote == "" {
			remote = t.remote
		}
		if who.user != nil {
			e.User, e.UID, e.Node = who.User, int64(who.UID), who.Node
		}
		if k := who.token; k != nil {
			e.Token, e.TokenName = k.ID, k.Name
		}
		if t.object != "" {
			e.Object = t.object
		}
		e.Owner = t.owner
		if t.detail != nil {
			e.Detail = string(t.detail.text)
		}
	}
	e.Addr = addrOf(remote)
	if err != nil {
		e.Answer, e.Reason = string(core.CodeOf(err)), core.ReasonOf(err)
		if e.Answer != string(core.Internal) {
			e.Message = err.Error()
		}
	}
	return e
}

// fillPath is the object of a call by the route's words for it, or the path where it has none.
func fillPath(rt *route, r *http.Request) string {
	text := rt.audit.object
	if text == "" && rt.audit.action == "" {
		return r.URL.Path
	}
	for from := strings.IndexByte(text, '{'); from >= 0; from = strings.IndexByte(text, '{') {
		to := from + strings.IndexByte(text[from:], '}')
		// What stands in a path is anybody's: its braces are not ours.
		text = text[:from] + strings.ReplaceAll(r.PathValue(text[from+1:to]), "{", "(") + text[to+1:]
	}
	return text
}

// addrOf is the host of an address; callers on the server's own socket have none.
func addrOf(remote string) string {
	if remote == "" || remote[0] == '@' || remote[0] == '/' {
		return "local"
	}
	if host, _, err := net.SplitHostPort(remote); err == nil {
		return host
	}
	return remote
}

// aboutToken names the token that a call is about, and whose it is.
func (who *caller) aboutToken(t *core.Token) {
	who.about("token", t.ID)
	if t.Name != "" {
		who.trail.object += " (" + t.Name + ")"
	}
	if t.User != who.User {
		who.trail.owner = t.User
	}
}

// confirm tells the audit log of an act on another's things before a handler answers by itself.
func (a *Base) confirm(r *http.Request, who *caller) error {
	err := a.end(who.trail.rt, r, who, nil)
	who.trail.touched = 0
	return err
}

// cancelled notes which jobs of others were ended.
func (a *Control) cancelled(who *caller, before *state.Snapshot, todo []cancelTodo, out *client.Cancelled) {
	failed := map[string]bool{}
	for i := range out.Results {
		if out.Results[i].Error != nil {
			failed[out.Results[i].ID] = true
		}
	}
	for _, t := range todo {
		if j, ok := before.Job(t.job); ok && !failed[t.label] {
			who.changed(j)
		}
	}
}

// denied notes that parts of a call were refused, which as a whole went well.
func (who *caller) denied(out *client.Cancelled) {
	for i := range out.Results {
		if e := out.Results[i].Error; e != nil && e.Code == core.Denied {
			who.trail.refused = e
			return
		}
	}
}

// auditLog answers administrators' questions to the audit log, the newest entries first.
func (a *Cluster) auditLog(_ http.ResponseWriter, r *http.Request, who *caller) (any, error) {
	if !who.Admin {
		return nil, core.Errorf(core.Denied, "only an administrator reads the audit log").Because("access_denied")
	}
	q := r.URL.Query()
	who.trail.object = "audit log " + r.URL.RawQuery
	ask := store.AuditQuery{
		User: core.UserName(q.Get("user")), Token: q.Get("token"), Action: q.Get("action"), Object: q.Get("object"), Answer: q.Get("answer"),
	}
	var limit int64
	for name, to := range map[string]*int64{"since": (*int64)(&ask.Since), "until": (*int64)(&ask.Until), "before": &ask.Before, "limit": &limit} {
		n, err := number(q.Get(name), 0)
		if err != nil {
			return nil, core.Errorf(core.Invalid, "%s: %v", name, err)
		}
		*to = n
	}
	if limit <= 0 || limit > maxPage {
		limit = maxPage
	}
	ask.Limit = int(limit) + 1
	if err := a.Audit.Flush(r.Context()); err != nil {
		return nil, core.Errorf(core.Unavailable, "the audit log cannot be written now; try again")
	}
	list, err := a.Store.Audit(r.Context(), ask)
	if err != nil {
		return nil, storeError(err)
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
