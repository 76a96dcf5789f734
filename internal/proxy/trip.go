package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"time"

	"bireme.dev/bireme/internal/core"
)

// tripper sends a request to a replica, and to another one where the first fails and that is safe.
type tripper struct{}

// dialError is a connection to a replica that could not be made: nothing of the request was sent.
type dialError struct{ err error }

func (e *dialError) Error() string { return e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

// errSilent is that of a replica that says nothing for too long.
var errSilent = errors.New("silent for too long")

// maxShort is the size of answers that are held until they are complete.
const maxShort = 64 << 10

// repeatable reports whether a request may reach two replicas, one of which died over it.
func repeatable(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPut, http.MethodDelete:
		return r.ContentLength == 0 && r.Header.Get("Upgrade") == ""
	}
	return false
}

func (tripper) RoundTrip(req *http.Request) (*http.Response, error) {
	q := req.Context().Value(requestKey{}).(*request)
	p, s := q.p, q.route
	var tried []*backend
	var last error
	sent := 0
	for {
		b := p.pick(s, tried)
		if b == nil {
			if last == nil {
				last = core.Errorf(core.Unavailable, "Service %s/%s has no replica that is ready", s.Project, s.Name)
			}
			return nil, last
		}
		resp, err := b.send(req, q)
		if err == nil {
			q.took = b
			return resp, nil
		}
		b.done()
		if req.Context().Err() != nil {
			return nil, err
		}
		b.failed.Store(time.Now().Add(avoidFor).UnixNano())
		last = err
		var unsent *dialError
		if !errors.As(err, &unsent) {
			// One that ends every replica it reaches must not reach them all.
			if sent++; !q.repeat || sent >= maxSent {
				return nil, err
			}
		}
		tried = append(tried, b)
		s.state.stats.Retried.Add(1)
		if fresh, _ := p.now(s.ID); fresh != nil { // what was tried may have left the table, and others come
			s = fresh
		}
	}
}

// maxSent is how many replicas one request may be sent to. Those that could not be reached do not count.
const maxSent = 3

// send sends a request to this replica.
func (b *backend) send(req *http.Request, q *request) (*http.Response, error) {
	out := req
	if req.Body != nil && req.Body != http.NoBody {
		copied := *req
		copied.Body = io.NopCloser(req.Body) // a connection that cannot be made would close it
		out = &copied
	}
	watch := &silence{idle: q.p.cfg.Limits.Idle, cancel: q.cancel}
	watch.begin()
	resp, err := b.transport.RoundTrip(out)
	if err != nil {
		watch.end()
		if watch.fired() {
			err = errSilent
		}
		return nil, err
	}
	if resp.StatusCode == http.StatusSwitchingProtocols { // its body is the connection itself
		watch.end()
		return resp, nil
	}
	if q.repeat && req.Method != http.MethodHead && resp.ContentLength > 0 && resp.ContentLength <= maxShort {
		data := make([]byte, resp.ContentLength)
		_, err := io.ReadFull(resp.Body, data)
		_ = resp.Body.Close()
		watch.end()
		if err != nil {
			return nil, err
		}
		resp.Body = io.NopCloser(bytes.NewReader(data))
		return resp, nil
	}
	resp.Body = &download{ReadCloser: resp.Body, watch: watch}
	return resp, nil
}

// silence ends a request of which a replica says nothing for too long.
type silence struct {
	idle   time.Duration
	cancel context.CancelFunc
	timer  *time.Timer
	over   chan struct{}
}

func (s *silence) begin() {
	s.over = make(chan struct{})
	s.timer = time.AfterFunc(s.idle, func() { close(s.over); s.cancel() })
}

func (s *silence) end() { s.timer.Stop() }

func (s *silence) fired() bool {
	select {
	case <-s.over:
		return true
	default:
		return false
	}
}

// download is the body of an answer, each part of which must come in time.
type download struct {
	io.ReadCloser
	watch *silence
}

func (d *download) Read(b []byte) (int, error) {
	n, err := d.ReadCloser.Read(b)
	if err == nil && !d.watch.fired() {
		d.watch.timer.Reset(d.watch.idle)
	}
	return n, err
}

func (d *download) Close() error {
	d.watch.end()
	return d.ReadCloser.Close()
}

// upload is the body of a request, each part of which must come in time.
type upload struct {
	io.ReadCloser
	out *answer
}

func (u *upload) Read(b []byte) (int, error) {
	_ = u.out.control.SetReadDeadline(time.Now().Add(u.out.idle)) // a connection that is gone fails in the read
	n, err := u.ReadCloser.Read(b)
	if err == io.EOF { // net/http reads on, to see the client leave
		_ = u.out.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// answer is where the answer goes, each part of which must be taken in time.
type answer struct {
	http.ResponseWriter
	control *http.ResponseController
	idle    time.Duration
	status  int
	late    time.Time // the deadline that is set
}

// Unwrap lets the reverse proxy flush and take over the connection.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	if status >= 200 || status == http.StatusSwitchingProtocols {
		a.status = status
	}
	if status != http.StatusSwitchingProtocols {
		a.extend()
	}
	a.ResponseWriter.WriteHeader(status)
}

// extend moves the deadline of what is written: a connection that is gone fails in the write.
func (a *answer) extend() {
	if now := time.Now(); a.late.Sub(now) < a.idle/2 {
		a.late = now.Add(a.idle)
		_ = a.control.SetWriteDeadline(a.late)
	}
}

func (a *answer) Write(b []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	a.extend()
	return a.ResponseWriter.Write(b)
}

// end leaves the connection as it was found, for the next request on it.
func (a *answer) end() {
	if a.status == http.StatusSwitchingProtocols {
		return
	}
	if !a.late.IsZero() {
		_ = a.control.SetWriteDeadline(time.Time{}) // see Write
	}
	_ = a.control.SetReadDeadline(time.Time{})
}

// quiet takes what the reverse proxy says of clients that leave.
var quiet = log.New(io.Discard, "", 0)
