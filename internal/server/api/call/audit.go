package call

import (
	"cmp"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/audit"
)

// Saw notes, at once, that somebody looks at what is private to another's job: the look may last for hours.
func (a *Base) Saw(who *Caller, j *core.Job) {
	if a.Audit == nil || j.Spec.User == who.User || who.Trail.rt == nil {
		return
	}
	e := a.AuditEntry(who.Trail.rt, nil, who, nil)
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

// Begin prepares a call for the audit log: who signs in is told, and what is sent is kept where the route says so. It
// gives the caller, where nobody is one who does something that is told.
func (a *Base) Begin(rt *Route, r *http.Request, who *Caller) *Caller {
	if who == nil && rt.Open && rt.Audit.Action != "" {
		who = &Caller{}
	}
	if a.Audit == nil || who == nil {
		return who
	}
	who.Trail.rt, who.Trail.remote = rt, r.RemoteAddr
	if rt.Audit.Body && r.Body != nil {
		who.Trail.detail = &excerpt{ReadCloser: r.Body}
		r.Body = who.Trail.detail
	}
	if who.UserRecord == nil {
		return who
	}
	if now := time.Now(); a.signIns.First(audit.SignIn{
		User: who.User, Token: who.Token, Node: who.Node,
		Addr: AddrOf(r.RemoteAddr),
	}, now) {
		e := a.AuditEntry(rt, r, who, nil)
		e.Action, e.Object = "sign-in", ""
		a.Audit.Note(e)
	}
	return who
}

// End tells the audit log how a call went. An act of an administrator is on disk before it is answered: what it gives
// in place of err says when that could not be.
func (a *Base) End(rt *Route, r *http.Request, who *Caller, err error) error {
	if a.Audit == nil {
		return err
	}
	a.noteHidden(rt, r, who, err)
	code := core.CodeOf(err)
	refused := code == core.Denied || code == core.Unknown
	var t *trail
	if who != nil {
		t = &who.Trail
		if t.refused != nil {
			a.Audit.Note(a.AuditEntry(rt, r, who, t.refused))
		}
	}
	switch {
	case refused, rt.Audit.When == Always && !errors.Is(err, ErrAnswered):
	case t != nil && t.touched > 0:
	case who != nil && who.Actor != nil && rt.Audit.Action != "" && rt.Method != http.MethodGet && err == nil:
	default:
		return err
	}
	e := a.AuditEntry(rt, r, who, err)
	if who == nil && !rt.Open {
		e.Action, e.Detail = "sign-in", rt.Method+" "+r.URL.Path
	}
	if err != nil || who == nil || !who.Admin && who.Actor == nil || rt.Method == http.MethodGet {
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

// AuditEntry is a call as the audit log tells it. r may be nil.
func (a *Base) AuditEntry(rt *Route, r *http.Request, who *Caller, err error) *core.AuditEntry {
	e := &core.AuditEntry{UID: -1, Action: rt.Audit.Action, Answer: core.AuditOK, Count: 1}
	if e.Action == "" {
		e.Action = "read"
	}
	remote := ""
	if r != nil {
		remote = r.RemoteAddr
		e.Object = fillPath(rt, r)
	}
	if who != nil {
		t := &who.Trail
		if remote == "" {
			remote = t.remote
		}
		if who.UserRecord != nil {
			e.User, e.UID, e.Node = who.User, int64(who.UID), who.Node
		}
		if k := who.TokenRecord; k != nil {
			e.Token, e.TokenName = k.ID, k.Name
		}
		if t.Object != "" {
			e.Object = t.Object
		}
		e.Owner = t.Owner
		if by := who.Actor; by != nil { // the administrator did it, as the user whose things it changed
			e.User, e.UID, e.Owner = by.User, int64(by.UID), cmp.Or(t.Owner, who.User)
		}
		if t.detail != nil {
			e.Detail = string(t.detail.text)
		}
	}
	e.Addr = AddrOf(remote)
	if err != nil {
		e.Answer, e.Reason = string(core.CodeOf(err)), core.ReasonOf(err)
		if e.Answer != string(core.Internal) {
			e.Message = err.Error()
		}
	}
	return e
}

// fillPath is the object of a call by the route's words for it, or the path where it has none.
func fillPath(rt *Route, r *http.Request) string {
	text := rt.Audit.Object
	if text == "" && rt.Audit.Action == "" {
		return r.URL.Path
	}
	for from := strings.IndexByte(text, '{'); from >= 0; from = strings.IndexByte(text, '{') {
		to := from + strings.IndexByte(text[from:], '}')
		// What stands in a path is anybody's: its braces are not ours.
		text = text[:from] + strings.ReplaceAll(r.PathValue(text[from+1:to]), "{", "(") + text[to+1:]
	}
	return text
}

// AddrOf is the host of an address; callers on the server's own socket have none.
func AddrOf(remote string) string {
	if remote == "" || remote[0] == '@' || remote[0] == '/' {
		return "local"
	}
	if host, _, err := net.SplitHostPort(remote); err == nil {
		return host
	}
	return remote
}

// Confirm tells the audit log of an act on another's things before a handler answers by itself.
func (a *Base) Confirm(r *http.Request, who *Caller) error {
	err := a.End(who.Trail.rt, r, who, nil)
	who.Trail.touched = 0
	return err
}
