package core

import (
	"errors"
	"fmt"
)

// Code is the kind of an error; every tongue has one table from Code to its own language.
type Code string

// The codes. Sub-reasons that users see are carried in Error.Reason.
const (
	Invalid     Code = "invalid"      // the request itself is wrong; sending it again will not help
	NotFound    Code = "not_found"    // what it names is not there
	Conflict    Code = "conflict"     // it does not fit the present state
	Denied      Code = "denied"       // the caller may not
	Unknown     Code = "unknown_user" // the caller is nobody we know
	Exhausted   Code = "exhausted"    // too much is waiting; try again after RetryAfter
	Unavailable Code = "unavailable"  // not now: store away, no leader, node silent; try again
	Gone        Code = "gone"         // it was there and has been purged
	TooLarge    Code = "too_large"    // over a size limit
	Internal    Code = "internal"     // our fault
)

// Error is an error with a code. Message is for the user, Err for the operator.
type Error struct {
	Code    Code   `json:"code"`
	Reason  string `json:"reason,omitempty"` // a finer word clients may match on, e.g. "invalid_partition"
	Message string `json:"message"`
	// Faults lists every fault of a request at once, each with its path.
	Faults []Fault `json:"faults,omitempty"`
	Err    error   `json:"-"`
}

// Fault is one thing wrong with a request.
type Fault struct {
	Path    string `json:"path,omitempty"` // "resources.gpu.count", "--mem", "line 3, column 5"
	Message string `json:"message"`
}

// Error gives the message, and the operator's part behind it.
func (e *Error) Error() string {
	if e.Err != nil {
		return e.Message + ": " + e.Err.Error()
	}
	return e.Message
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an Error; a %w operand becomes its cause and stays out of the user's message only if the caller words it
// so.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Because adds a finer reason and returns e.
func (e *Error) Because(reason string) *Error { e.Reason = reason; return e }

// CodeOf finds the code of err: Internal when it has none, "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return Internal
}

// ReasonOf finds the finer reason of err, or "".
func ReasonOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return ""
}

// FaultsOf lists what is wrong with a request, or nothing.
func FaultsOf(err error) []Fault {
	var e *Error
	if errors.As(err, &e) {
		return e.Faults
	}
	return nil
}

// Assert panics when an invariant is broken. It is for our own mistakes, never for input.
func Assert(ok bool, format string, args ...any) {
	if !ok {
		panic("bireme: broken invariant: " + fmt.Sprintf(format, args...))
	}
}
