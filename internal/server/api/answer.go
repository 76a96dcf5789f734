package api

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/hub"
)

// Bounds of an answer and of a request's body: a peer that takes or sends nothing is given up.
const (
	answerPatience = 30 * time.Second
	bodyPatience   = 15 * time.Second
	leastRate      = 128 << 10 // bytes a second a peer must send or take of what is large
	smallWrite     = 16 << 10  // the deadline set with the header is enough for less
)

// answer is the response of one call. It knows whether it has begun, which decides what can be said after a panic, and it
// renews the connection's write deadline, so that a peer that does not read holds nothing for long.
type answer struct {
	http.ResponseWriter
	begun    bool
	long     bool            // it may be quiet for a long time between two writes
	isStream bool            // it counts as an open stream of its caller
	ctx      context.Context // of a stream: ends when its caller's rights do
	held     held
	hijacked net.Conn // the connection was taken over
	body     timedBody
}

// Unwrap is for http.ResponseController.
func (w *answer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *answer) WriteHeader(code int) {
	w.begun = true
	w.extend(0)
	w.ResponseWriter.WriteHeader(code)
}

func (w *answer) Write(b []byte) (int, error) {
	if !w.begun || w.long || len(b) > smallWrite {
		w.begun = true
		w.extend(len(b))
	}
	return w.ResponseWriter.Write(b)
}

// FlushError sends what is buffered.
func (w *answer) FlushError() error {
	w.begun = true
	w.extend(0)
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Hijack takes the connection over, without the deadlines of calls.
func (w *answer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil {
		w.hijacked, w.begun = c, true
		if w.ctx != nil { // the stream's end unhooks it
			context.AfterFunc(w.ctx, func() { _ = c.Close() })
		}
	}
	return c, rw, err
}

// extend gives the peer time to take n more bytes.
func (w *answer) extend(n int) {
	// A connection without deadlines is one of a test.
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(answerPatience + transferTime(int64(n))))
}

// transferTime is how long n bytes take at the least rate.
func transferTime(n int64) time.Duration { return time.Duration(n) * time.Second / leastRate }

// awaitBody gives the peer time to send the body it announced, of at most so many bytes. What a handler leaves unread is
// discarded by net/http under the same deadline.
func awaitBody(w http.ResponseWriter, r *http.Request, most int64) {
	size := r.ContentLength
	if size == 0 {
		return
	}
	if size < 0 || size > most {
		size = most
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyPatience + transferTime(size))) // as in extend
}

// timedBody is a request's body under a deadline. At its end the deadline goes: net/http reads on, to see the peer leave.
type timedBody struct {
	io.ReadCloser
	w *answer
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		_ = http.NewResponseController(b.w.ResponseWriter).SetReadDeadline(time.Time{}) // as in extend
	}
	return n, err
}

// recovered ends a call whose handler panicked: the caller gets an answer with the request's id where none has begun, and
// a cut connection otherwise; the log gets the stack under the same id. The server goes on.
func (a *API) recovered(w *answer, r *http.Request, who *caller, p any) {
	if p == http.ErrAbortHandler { //nolint:errorlint // a value of panic, no error: the handler's way to cut a connection
		panic(p)
	}
	id := newID()
	a.metrics.panics.Inc()
	hub.LogPanic(a.Log, p, "id", id, "method", r.Method, "path", r.URL.Path, "user", nameOfCaller(who), "remote", r.RemoteAddr)
	if w.hijacked != nil {
		_ = w.hijacked.Close() // the stream is broken either way
		return
	}
	if w.begun {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set(RequestIDHeader, id)
	writeJSON(w, http.StatusInternalServerError, client.ErrorBody{Error: *failureOf(id), RequestID: id})
}

// RequestIDHeader bears the id under which the log has what went wrong.
const RequestIDHeader = "Bireme-Request-Id"

// failureOf is the error of a call that failed through a fault of the server.
func failureOf(id string) *core.Error {
	return core.Errorf(core.Internal, "something went wrong here; the server's log has the details under request %s", id).Because("internal_error")
}

func nameOfCaller(who *caller) core.UserName {
	if who == nil {
		return ""
	}
	return who.User
}
