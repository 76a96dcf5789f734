package pass

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/proxy"
)

// Header bears, from one server to another, who is at the other end of the caller's connection.
const Header = "Bireme-Passed"

// SeqHeader bears the number of the last event that an answer to a write covers.
const SeqHeader = "Bireme-Seq"

// NotLeading is the reason of a refusal by a server that does not lead: nothing was done.
const NotLeading = "not_leading"

// Config of a Passer.
type Config struct {
	// Leader is HOST:PORT of the server that leads; "": nobody is known to. It is asked often.
	Leader func() string
	Cert   func() (*tls.Config, error) // for connections to it
	Hold   time.Duration               // how long a call waits for a leader; 0: 10 s
	Log    *slog.Logger
	Wrote  func(r *http.Request, seq int64) // a write was answered, and is in the state from this event on
}

// Passer hands calls on.
type Passer struct {
	cfg   Config
	proxy *httputil.ReverseProxy
}

// maxHeld is the longest body that is kept to be sent again.
const maxHeld = 4 << 20

// pollLeader is how often a held call looks for a leader.
const pollLeader = 100 * time.Millisecond

// New makes a Passer.
func New(cfg Config) *Passer {
	if cfg.Hold == 0 {
		cfg.Hold = 10 * time.Second
	}
	p := &Passer{cfg: cfg}
	transport := &http.Transport{
		DialTLSContext: p.dial, MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute, DisableCompression: true,
	}
	p.proxy = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.Header.Del(Header)
			if told := told(r.In); told != nil {
				text, err := json.Marshal(told)
				core.Assert(err == nil, "what is passed on cannot be written: %v", err)
				r.Out.Header.Set(Header, string(text))
			}
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "https", "leader", r.In.Host
		},
		Transport:     &held{p: p, to: transport},
		FlushInterval: -1,
		ErrorLog:      slog.NewLogLogger(cfg.Log.Handler(), slog.LevelDebug),
		ErrorHandler:  refuse,
		ModifyResponse: func(resp *http.Response) error {
			// An answer of a service is a replica's own.
			if resp.StatusCode >= http.StatusBadRequest || proxy.IsPath(resp.Request.URL.Path) {
				return nil
			}
			if seq, err := strconv.ParseInt(resp.Header.Get(SeqHeader), 10, 64); err == nil && cfg.Wrote != nil {
				cfg.Wrote(resp.Request, seq)
			}
			return nil
		},
	}
	return p
}

// dial connects to whatever the URL names: it is the leader's address of the moment.
func (p *Passer) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conf, err := p.cfg.Cert()
	if err != nil {
		return nil, err
	}
	return (&tls.Dialer{NetDialer: &net.Dialer{Timeout: 2 * time.Second, KeepAlive: 5 * time.Second}, Config: conf}).
		DialContext(ctx, network, addr)
}

// ServeHTTP hands a call on.
func (p *Passer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // the leader has one
	p.proxy.ServeHTTP(w, r)
}

func refuse(w http.ResponseWriter, _ *http.Request, err error) {
	var known *core.Error
	if !errors.As(err, &known) {
		known = core.Errorf(core.Unavailable, "the server that leads does not answer; try again")
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Retry-After", "1")
	w.WriteHeader(http.StatusServiceUnavailable)
	_ = json.NewEncoder(w).Encode(client.ErrorBody{Error: *known}) // the caller may have gone
}

// held is a transport that waits for a leader.
type held struct {
	p  *Passer
	to http.RoundTripper
}

// RoundTrip sends a call to whoever leads, again and again while nobody has carried it out.
func (h *held) RoundTrip(r *http.Request) (*http.Response, error) {
	body, whole, err := keep(r)
	if err != nil {
		return nil, err
	}
	repeats := whole && mayRepeat(r, body)
	deadline := time.Now().Add(h.p.cfg.Hold)
	last := error(core.Errorf(core.Unavailable, "no server leads at the moment; try again").Because(NotLeading))
	for {
		if addr := h.p.cfg.Leader(); addr != "" {
			resp, sent, err := h.send(r, addr, body, whole)
			switch {
			case err == nil && !refused(resp, repeats):
				return resp, nil
			case err == nil: // its body was read
				last = core.Errorf(core.Unavailable, "the server at %s leads no more; try again", addr).Because(NotLeading)
			case r.Context().Err() != nil || sent && !repeats:
				return nil, err
			default:
				last = core.Errorf(core.Unavailable, "the server that leads does not answer; try again")
			}
			if !whole {
				return nil, last
			}
		}
		if time.Now().After(deadline) {
			return nil, last
		}
		t := time.NewTimer(pollLeader)
		select {
		case <-t.C:
		case <-r.Context().Done():
			t.Stop()
			return nil, r.Context().Err()
		}
	}
}

// send makes one try. sent reports whether the leader may have taken the call.
func (h *held) send(r *http.Request, addr string, body []byte, whole bool) (_ *http.Response, sent bool, err error) {
	ctx, cancel := context.WithCancel(r.Context())
	out := r.Clone(ctx)
	out.URL.Host = addr
	if whole {
		out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		out.Body, _ = out.GetBody()
	}
	answered := make(chan struct{})
	go func() { // a leader that hangs does not answer, and is replaced
		t := time.NewTicker(pollLeader)
		defer t.Stop()
		for {
			select {
			case <-answered:
				return
			case <-t.C:
				if now := h.p.cfg.Leader(); now != "" && now != addr {
					cancel()
					return
				}
			}
		}
	}()
	resp, err := h.to.RoundTrip(out)
	close(answered)
	if err != nil {
		cancel()
		var op *net.OpError
		return nil, !(errors.As(err, &op) && op.Op == "dial"), err
	}
	if resp.StatusCode != http.StatusSwitchingProtocols { // the other's body is the connection itself
		resp.Body = &closing{resp.Body, cancel}
	} else {
		context.AfterFunc(r.Context(), cancel)
	}
	return resp, true, nil
}

// closing ends a try's context with its answer.
type closing struct {
	io.ReadCloser
	end func()
}

func (c *closing) Close() error {
	defer c.end()
	return c.ReadCloser.Close()
}

// refused reports whether an answer says that the server does not lead and did nothing, or, for a call that may be
// repeated, that it could not write now. Any other is left as it was.
func refused(resp *http.Response, repeats bool) bool {
	if resp.StatusCode != http.StatusServiceUnavailable {
		return false
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	var body client.ErrorBody
	if err == nil && json.Unmarshal(data, &body) == nil &&
		(body.Error.Reason == NotLeading || repeats && body.Error.Code == core.Unavailable && body.Error.Reason == "") {
		_ = resp.Body.Close()
		return true
	}
	resp.Body = &closing{io.NopCloser(bytes.NewReader(data)), func(c io.Closer) func() {
		return func() { _ = c.Close() }
	}(resp.Body)}
	return false
}

// keep reads a body, as far as it is kept. whole: all of it is.
func keep(r *http.Request) (body []byte, whole bool, err error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, true, nil
	}
	if r.Header.Get("Upgrade") != "" || r.ContentLength > maxHeld {
		return nil, false, nil
	}
	if body, err = io.ReadAll(io.LimitReader(r.Body, maxHeld+1)); err != nil {
		return nil, false, err
	}
	if len(body) > maxHeld {
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(body), r.Body), r.Body}
		return nil, false, nil
	}
	return body, true, nil
}

// mayRepeat reports whether a call may be carried out twice.
func mayRepeat(r *http.Request, body []byte) bool {
	switch r.Method {
	case http.MethodDelete:
		return !strings.HasPrefix(r.URL.Path, "/slurm/") // there it sends signals
	case http.MethodGet, http.MethodHead, http.MethodPut:
		return true
	}
	if r.URL.Path != client.PathSubmit {
		return false
	}
	var in struct {
		Key string `json:"key"`
	}
	return json.Unmarshal(body, &in) == nil && in.Key != ""
}

// AddressOf is the part of a URL or HOST:PORT that is dialed.
func AddressOf(text string) string {
	if u, err := url.Parse(text); err == nil && u.Host != "" {
		return u.Host
	}
	return strings.TrimSuffix(text, "/")
}
