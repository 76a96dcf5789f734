package call

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"time"
)

// Bounds of an answer and of a request's body: a peer that takes or sends nothing is given up.
const (
	answerTimeout = 30 * time.Second
	bodyTimeout   = 15 * time.Second
	leastRate     = 128 << 10 // bytes a second a peer must send or take of what is large
	smallWrite    = 16 << 10  // the deadline set with the header is enough for less
)

// Answer is the response of one call. It knows whether it has begun, which decides what can be said after a panic,
// and it renews the connection's write deadline, so that a peer that does not read holds nothing for long.
type Answer struct {
	http.ResponseWriter
	Begun    bool
	Long     bool            // it may be quiet for a long time between two writes
	IsStream bool            // it counts as an open stream of its caller
	Ctx      context.Context // of a stream: ends when its caller's rights do
	Held     Held
	Hijacked net.Conn // the connection was taken over
	Body     TimedBody
}

// Unwrap is for http.ResponseController.
func (w *Answer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *Answer) WriteHeader(code int) {
	w.Begun = true
	w.extend(0)
	w.ResponseWriter.WriteHeader(code)
}

func (w *Answer) Write(b []byte) (int, error) {
	if !w.Begun || w.Long || len(b) > smallWrite {
		w.Begun = true
		w.extend(len(b))
	}
	return w.ResponseWriter.Write(b)
}

// FlushError sends what is buffered.
func (w *Answer) FlushError() error {
	w.Begun = true
	w.extend(0)
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Hijack takes the connection over, without the deadlines of calls.
func (w *Answer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil {
		w.Hijacked, w.Begun = c, true
		if w.Ctx != nil { // the stream's end unhooks it
			context.AfterFunc(w.Ctx, func() { _ = c.Close() })
		}
	}
	return c, rw, err
}

// extend gives the peer time to take n more bytes.
func (w *Answer) extend(n int) {
	// A connection without deadlines is one of a test.
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(
		time.Now().Add(answerTimeout + transferTime(int64(n))))
}

// transferTime is how long n bytes take at the least rate.
func transferTime(n int64) time.Duration { return time.Duration(n) * time.Second / leastRate }

// AwaitBody gives the peer time to send the body it announced, of at most so many bytes. What a handler leaves unread
// is discarded by net/http under the same deadline.
func AwaitBody(w http.ResponseWriter, r *http.Request, most int64) {
	size := r.ContentLength
	if size == 0 {
		return
	}
	if size < 0 || size > most {
		size = most
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout + transferTime(size))) // as in extend
}

// TimedBody is a request's body under a deadline. At its end the deadline goes: net/http reads on, to see the peer
// leave.
type TimedBody struct {
	io.ReadCloser
	Writer *Answer
}

func (b *TimedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		_ = http.NewResponseController(b.Writer.ResponseWriter).SetReadDeadline(time.Time{}) // as in extend
	}
	return n, err
}
