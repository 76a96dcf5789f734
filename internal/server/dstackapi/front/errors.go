package front

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/config"
	"bireme.dev/bireme/internal/dstack/wire"
	"bireme.dev/bireme/internal/server/api/call"
)

// Reasons of errors that have an answer of their own.
const (
	reasonForbidden = "dstack_forbidden"
	reasonNoPath    = "dstack_not_found"
	reasonVersion   = "dstack_version"
	reasonRejected  = "dstack_validation"
)

// Codes that clients know.
const (
	codeError     = "error"
	codeExists    = "resource_exists"
	codeNotExists = "resource_not_exists"
)

// ErrForbidden is the refusal of a caller without the role that the call needs.
func ErrForbidden() error { return core.Errorf(core.Denied, "Access denied").Because(reasonForbidden) }

// errNoPath is the answer to a path whose project there is not.
func errNoPath() error { return core.Errorf(core.NotFound, "Not found").Because(reasonNoPath) }

// ErrNotExists is the answer to a request for something that there is not, but for runs.
func ErrNotExists() error { return core.Errorf(core.NotFound, "Resource not found") }

// ErrExists is the answer to a request for a name that is taken.
func ErrExists() error { return core.Errorf(core.Conflict, "Resource exists").Because("dstack_exists") }

// Errorf is the refusal of a request with a text for the user.
func Errorf(format string, args ...any) error { return core.Errorf(core.Invalid, format, args...) }

// Conflictf is the refusal of a request that does not fit how things are.
func Conflictf(format string, args ...any) error { return core.Errorf(core.Conflict, format, args...) }

// ErrInvalid is the answer to a body with faults.
func ErrInvalid(faults wire.Invalid) error {
	return &core.Error{Code: core.Invalid, Reason: reasonRejected, Message: faults.Error(), Err: faults}
}

// ErrConfig is the answer to a configuration that is not what it should be. loc leads to it from "body". An error that
// is not one of the configuration's is passed on.
func ErrConfig(err error, loc ...any) error {
	var faults config.Faults
	if !errors.As(err, &faults) {
		return err
	}
	var list wire.Invalid
	for _, d := range faults.Details(loc...) {
		in, err := json.Marshal(d.Input)
		if err != nil {
			in = []byte("null")
		}
		list = append(list, wire.Detail{Type: d.Type, Loc: d.Loc, Msg: d.Msg, Input: in, Ctx: d.Ctx})
	}
	return ErrInvalid(list)
}

// detail is the body of every error.
type detail struct {
	Detail any `json:"detail"`
}

// Fail answers with an error. The client prints the text of a 400 with one known code; of 403 and 404 it prints a
// sentence of its own.
func Fail(w http.ResponseWriter, r *http.Request, status int, e *core.Error) {
	var faults wire.Invalid
	switch {
	case errors.As(e, &faults):
		call.WriteJSON(w, http.StatusUnprocessableEntity, detail{faults})
	case e.Code == core.Unknown && r.Header.Get("Authorization") == "":
		call.WriteJSON(w, http.StatusUnauthorized, detail{"Not authenticated"})
	case e.Code == core.Unknown:
		w.Header().Del("WWW-Authenticate")
		text := e.Message
		if e.Reason == "bad_token" {
			text = "Invalid token"
		}
		refuse(w, http.StatusForbidden, text)
	case e.Reason == reasonNoPath:
		refuse(w, http.StatusNotFound, e.Message)
	case e.Reason == reasonForbidden, e.Reason == "token_scope", e.Reason == "user_disabled":
		refuse(w, http.StatusForbidden, e.Message)
	case e.Reason == reasonVersion:
		call.WriteJSON(w, http.StatusBadRequest, detail{[]wire.Message{{Msg: e.Message}}})
	case e.Code == core.Unavailable, e.Code == core.Internal, w.Header().Get("Retry-After") != "":
		refuse(w, status, e.Message)
	default:
		reject(w, e)
	}
}

// refuse answers with one message.
func refuse(w http.ResponseWriter, status int, text string) {
	call.WriteJSON(w, status, detail{wire.Message{Msg: text}})
}

// reject answers that a request cannot be done, and why.
func reject(w http.ResponseWriter, e *core.Error) {
	code, text := codeError, e.Message
	switch {
	case e.Code == core.NotFound, e.Code == core.Gone:
		code = codeNotExists
	case e.Code == core.Conflict && strings.HasSuffix(e.Reason, "_exists"):
		code, text = codeExists, "Resource exists"
	}
	call.WriteJSON(w, http.StatusBadRequest, detail{[]wire.Message{{Msg: text, Code: &code}}})
}

// NoRoute answers a call of a path that there is not, as a server does that serves pages elsewhere.
func NoRoute(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		call.WriteJSON(w, http.StatusNotFound, detail{"Not Found"})
		return
	}
	w.Header().Set("Allow", "GET, HEAD")
	call.WriteJSON(w, http.StatusMethodNotAllowed, detail{"Method Not Allowed"})
}
