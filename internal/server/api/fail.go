package api

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/hub"
	"bireme.dev/bireme/internal/server/limit"
)

// recovered ends a call whose handler panicked: the caller gets an answer with the request's id where none has begun,
// and a cut connection otherwise; the log gets the stack under the same id. The server continues.
func (a *API) recovered(w *call.Answer, r *http.Request, who *call.Caller, p any) {
	if p == http.ErrAbortHandler { //nolint:errorlint // a value of panic, no error: the handler's way to cut a connection
		panic(p)
	}
	id := call.NewID()
	a.metrics.Panics.Inc()
	hub.LogPanic(a.Log, p, "id", id, "method", r.Method, "path", r.URL.Path, "user", nameOfCaller(who), "remote",
		r.RemoteAddr)
	if w.Hijacked != nil {
		_ = w.Hijacked.Close() // the stream is broken either way
		return
	}
	if w.Begun {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set(RequestIDHeader, id)
	call.WriteJSON(w, http.StatusInternalServerError, client.ErrorBody{Error: *failureOf(id), RequestID: id})
}

// RequestIDHeader bears the id under which the log has what went wrong.
const RequestIDHeader = "Bireme-Request-Id"

// failureOf is the error of a call that failed through a fault of the server.
func failureOf(id string) *core.Error {
	return core.Errorf(core.Internal, "something went wrong here; the server's log has the details under request %s", id).
		Because("internal_error")
}

func nameOfCaller(who *call.Caller) core.UserName {
	if who == nil {
		return ""
	}
	return who.User
}

// status is the one table from code to HTTP.
var status = map[core.Code]int{
	core.Invalid: http.StatusBadRequest, core.Unknown: http.StatusUnauthorized, core.Denied: http.StatusForbidden,
	core.NotFound: http.StatusNotFound, core.Conflict: http.StatusConflict, core.Gone: http.StatusGone,
	core.TooLarge: http.StatusRequestEntityTooLarge, core.Exhausted: http.StatusTooManyRequests,
	core.Unavailable: http.StatusServiceUnavailable, core.Internal: http.StatusInternalServerError,
}

// fail answers with an error, in the words of the route's protocol; nil: of no route. What is nobody's business but the
// operator's is logged, not sent.
func (a *API) fail(w http.ResponseWriter, r *http.Request, rt *call.Route, err error) {
	var e *core.Error
	id := ""
	if !errors.As(err, &e) {
		if r.Context().Err() != nil {
			return // the caller left
		}
		id = call.NewID()
		e = failureOf(id)
	} else if e.Code == core.Internal {
		id = call.NewID()
	}
	if id != "" {
		a.Log.Error("request", "id", id, "method", r.Method, "path", r.URL.Path, "err", err)
		w.Header().Set(RequestIDHeader, id)
	}
	code, ok := status[e.Code]
	if !ok {
		code = http.StatusInternalServerError
	}
	if wait := retryAfter(e); wait > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(wait))
	}
	if e.Code == core.TooLarge { // net/http would wait for the rest of a body that nobody reads before it answers
		w.Header().Set("Connection", "close")
	}
	if e.Code == core.Unknown {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	short := shortened(e)
	if rt != nil && rt.Fail != nil {
		rt.Fail(w, r, code, &short)
		return
	}
	call.WriteJSON(w, code, client.ErrorBody{Error: short, RequestID: id})
}

// retryAfter is the seconds after which a call may be sent again; 0: waiting does not help. Errors of a limit say it
// themselves; other limits with a reason of their own are no matter of time.
func retryAfter(e *core.Error) int {
	var x *limit.Excess
	switch {
	case e.Code == core.Exhausted && errors.As(e, &x) && x.After > 0:
		return int((x.After + time.Second - 1) / time.Second)
	case e.Code == core.Unavailable, e.Code == core.Exhausted && e.Reason == "":
		return 1
	}
	return 0
}

// Bounds of what an error says: messages quote what they refuse, which may be megabytes.
const (
	maxMessage = 4 << 10
	maxFaults  = 100
)

// shortened is an error of a length that can be read.
func shortened(e *core.Error) core.Error {
	out := *e
	out.Message = clipped(out.Message)
	if len(out.Faults) > maxFaults {
		out.Faults = out.Faults[:maxFaults]
	}
	for i := range out.Faults {
		if f := &out.Faults[i]; len(f.Message) > maxMessage || len(f.Path) > maxMessage {
			out.Faults = slices.Clone(out.Faults)
			out.Faults[i] = core.Fault{Path: clipped(f.Path), Message: clipped(f.Message)}
		}
	}
	return out
}

func clipped(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	return strings.ToValidUTF8(text[:maxMessage], "") + "..."
}
