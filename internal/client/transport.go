package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	mrand "math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/jsontext"
)

// transport sends calls to the servers of a cluster.
type transport struct {
	set     Settings
	ends    []*endpoint
	current atomic.Int32 // index of the endpoint that answered last
	sleep   func(ctx context.Context, d time.Duration) error
	notice  func(err error, left time.Duration)
	noticed atomic.Bool
	trip    http.RoundTripper // in place of the endpoints' own; nil: those

	following atomic.Bool // the copy of the CA is being replaced
}

// Settings returns what the client was made with.
func (c *transport) Settings() Settings { return c.set }

// again says which failures of a call may be followed by another try.
type again uint8

const (
	// never: the call has an effect that must not happen twice, so it is sent again only when it surely was not
	// received.
	never again = iota
	// always: the call reads, or its effect under the same key or on the same record happens once.
	always
)

// call is one request.
type call struct {
	method, path string
	query        url.Values
	body         any // marshaled to JSON; nil: none
	again        again
	header       http.Header
	once         bool // the answer is read to its end at once
	// resend is called before a request is sent a second time after its answer was lost.
	resend func()
}

// do performs a call and decodes the JSON answer into out (nil: thrown away; *[]byte: taken as it is).
func (c *transport) do(ctx context.Context, q call, out any) error {
	q.once = true
	resp, err := c.roundTrip(ctx, q)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	switch out := out.(type) {
	case nil:
		_, err = io.Copy(io.Discard, resp.Body)
		return err
	case *[]byte:
		*out, err = readAll(resp)
	default:
		var data []byte
		if data, err = readAll(resp); err == nil {
			if err = json.Unmarshal(data, out); err != nil {
				return &core.Error{Code: core.Internal, Message: "the server's answer to " + q.method + " " + q.path +
					" cannot be read", Err: err}
			}
		}
	}
	if err != nil {
		return c.away(c.end(), err)
	}
	return nil
}

// readAll reads an answer, with one allocation when its length is known.
func readAll(resp *http.Response) ([]byte, error) {
	if resp.ContentLength > 0 && resp.ContentLength < 1<<30 {
		data := make([]byte, resp.ContentLength)
		_, err := io.ReadFull(resp.Body, data)
		return data, err
	}
	return io.ReadAll(resp.Body)
}

func (c *transport) end() *endpoint { return c.ends[int(c.current.Load())%len(c.ends)] }

// roundTrip sends a call until it is answered, tries are used up or the call may not be sent again. Every endpoint is
// tried before the first wait.
func (c *transport) roundTrip(ctx context.Context, q call) (*http.Response, error) {
	deadline := time.Now().Add(c.set.Timeout)
	var waited time.Duration
	var body []byte
	var last error
	for try := 0; ; try++ {
		if q.body != nil && (body == nil || q.resend != nil) {
			var err error
			if body, err = jsontext.Marshal(q.body); err != nil {
				return nil, fmt.Errorf("encode %s: %w", q.path, err)
			}
		}
		var wait time.Duration
		for range c.ends {
			e := c.end()
			resp, sent, err := c.send(ctx, e, q, body)
			if err == nil && resp.StatusCode < 400 {
				c.followCA(ctx, e, resp.Header.Get(caHeader))
				return resp, nil
			}
			if err != nil {
				last = c.away(e, err)
				c.current.Add(1)
				if ctx.Err() != nil {
					return nil, last
				}
				if sent {
					if q.again == never {
						return nil, last
					}
					if q.resend != nil {
						q.resend()
					}
				}
				if hopeless(err) && len(c.ends) == 1 {
					return nil, last
				}
				continue
			}
			last = answerError(resp)
			wait = retryAfter(resp)
			resp.Body.Close()
			switch core.CodeOf(last) {
			case core.Exhausted:
				if wait == 0 && core.ReasonOf(last) != "" { // a limit that does not go by itself
					return nil, last
				}
			case core.Unavailable:
				if q.again == never {
					return nil, last
				}
				if q.resend != nil {
					q.resend()
				}
				c.current.Add(1)
				continue
			default:
				return nil, last
			}
			break
		}
		wait = max(wait, backoff(try))
		if time.Now().Add(wait).After(deadline) {
			return nil, last
		}
		if waited += wait; c.notice != nil && waited > noticeDelay && c.noticed.CompareAndSwap(false, true) {
			c.notice(last, time.Until(deadline).Round(time.Second))
		}
		if err := c.sleep(ctx, wait); err != nil {
			return nil, last
		}
	}
}

// send makes one try. sent reports whether the server may have received the request.
func (c *transport) send(ctx context.Context, e *endpoint, q call, body []byte) (
	resp *http.Response, sent bool, err error,
) {
	u := e.base + q.path
	if len(q.query) > 0 {
		u += "?" + q.query.Encode()
	}
	var r io.Reader
	if body != nil {
		r = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, q.method, u, r)
	if err != nil {
		return nil, false, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.set.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.set.Token)
	}
	for k, v := range q.header {
		req.Header[k] = v
	}
	if q.once { // no redirects are followed and there are no cookies
		resp, err = e.once.RoundTrip(req)
	} else {
		resp, err = e.http.Do(req)
	}
	if err != nil {
		var op *net.OpError
		return nil, !(errors.As(err, &op) && op.Op == "dial"), err
	}
	return resp, true, nil
}

// hopeless reports that waiting will not help: there is no such place, or who answers there is not to be trusted.
func hopeless(err error) bool {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" && op.Net == "unix" && errors.Is(err, syscall.ENOENT) {
		_, statErr := os.Stat(filepath.Dir(op.Addr.String()))
		return statErr != nil
	}
	if errors.Is(err, syscall.EACCES) {
		return true
	}
	return isCertError(err) || isUntrusted(err)
}

func isUntrusted(err error) bool {
	var u *untrustedError
	return errors.As(err, &u)
}

// away wraps a transport error so that its code is Unavailable and its message names the endpoint.
func (c *transport) away(e *endpoint, err error) error {
	var ue *url.Error
	if errors.As(err, &ue) {
		err = ue.Err
	}
	out := &core.Error{
		Code: core.Unavailable, Reason: ReasonUnreachable,
		Message: "the server at " + e.text + " cannot be reached", Err: err,
	}
	if isUntrusted(err) {
		out.Reason, out.Message = ReasonUntrusted, "the server at "+e.text+" is not to be trusted"
	}
	if isCertError(err) {
		out.Reason, out.Message = ReasonUntrusted,
			"the certificate of the server at "+e.text+" is not trusted (set BIREME_CA to the cluster's CA)"
	}
	return out
}

// Reasons of errors made by the client itself.
const (
	ReasonUnreachable = "unreachable" // nobody answers
	// the server's certificate is not signed by BIREME_CA, or somebody else listens on its socket
	ReasonUntrusted = "untrusted"
)

// Unreachable reports that err means that no server answered.
func Unreachable(err error) bool {
	r := core.ReasonOf(err)
	return r == ReasonUnreachable || r == ReasonUntrusted
}

// answerError reads the error of an answer that is not 2xx.
func answerError(resp *http.Response) error {
	data, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	var body ErrorBody
	if json.Unmarshal(data, &body) == nil && body.Error.Code != "" {
		return &body.Error
	}
	text := strings.TrimSpace(string(data))
	if text == "" || len(text) > 200 {
		text = "the server answered " + resp.Status
	}
	return &core.Error{Code: codeOfStatus(resp.StatusCode), Message: text}
}

func codeOfStatus(status int) core.Code {
	switch status {
	case http.StatusUnauthorized:
		return core.Unknown
	case http.StatusForbidden:
		return core.Denied
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return core.NotFound
	case http.StatusConflict:
		return core.Conflict
	case http.StatusGone:
		return core.Gone
	case http.StatusRequestEntityTooLarge:
		return core.TooLarge
	case http.StatusTooManyRequests:
		return core.Exhausted
	case http.StatusServiceUnavailable, http.StatusBadGateway, http.StatusGatewayTimeout:
		return core.Unavailable
	}
	if status >= 500 {
		return core.Internal
	}
	return core.Invalid
}

func retryAfter(resp *http.Response) time.Duration {
	s, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err != nil || s <= 0 {
		return 0
	}
	d := time.Duration(min(s, 60)) * time.Second
	return d + time.Duration(mrand.Int64N(int64(d/2))) // not before it, and not all at once
}

// backoff is the wait after the given try: 25 ms doubling to 2 s, each with jitter so that clients that were refused
// together do not come back together.
func backoff(try int) time.Duration {
	d := 25 * time.Millisecond * time.Duration(math.Pow(2, float64(min(try, 7))))
	return jitter(min(d, 2*time.Second))
}

func jitter(d time.Duration) time.Duration {
	return d/2 + time.Duration(mrand.Int64N(int64(d)))
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// once is c without second tries.
func (c *transport) once() *transport {
	n := &transport{set: c.set, ends: c.ends, sleep: c.sleep}
	n.set.Timeout = 0
	return n
}
