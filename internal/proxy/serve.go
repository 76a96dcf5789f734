package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"bireme.dev/bireme/internal/core"
)

// Paths of the proxy in the server.
const (
	PathServices = "/proxy/services/"
	PathModels   = "/proxy/models/"
)

// IsPath reports whether a path is the proxy's, which takes paths as they are.
func IsPath(path string) bool {
	return strings.HasPrefix(path, PathServices) || strings.HasPrefix(path, PathModels)
}

// request is what is known of a request while it is passed on.
type request struct {
	p      *Proxy
	route  *route
	prefix string // of the path, that the replica does not see
	path   string // escaped, from the slash after the prefix
	repeat bool   // it may be sent twice
	took   *backend
	cancel context.CancelFunc
}

type requestKey struct{}

// ServePath answers what is below PathServices and PathModels. The path is taken as it was sent: a server that cleans
// paths must not come before it, and no dots in it lead to another service.
func (p *Proxy) ServePath(w http.ResponseWriter, r *http.Request) {
	raw := r.URL.EscapedPath()
	if rest, ok := strings.CutPrefix(raw, PathModels); ok {
		p.serveModels(w, r, rest)
		return
	}
	rest, _ := strings.CutPrefix(raw, PathServices)
	project, rest, _ := strings.Cut(rest, "/")
	name, rest, _ := strings.Cut(rest, "/")
	s := p.find(core.ProjectName(project), name)
	if s == nil {
		refuse(w, http.StatusNotFound, fmt.Sprintf("Service %.64s/%.64s not found", project, name))
		return
	}
	p.serve(w, r, s, PathServices+project+"/"+name, "/"+rest)
}

// Serve answers a request to a service, which the replica sees under a path in its escaped form.
func (p *Proxy) Serve(w http.ResponseWriter, r *http.Request, s *Service, path string) {
	route := p.find(s.Project, s.Name)
	if route == nil {
		refuse(w, http.StatusNotFound, fmt.Sprintf("Service %s/%s not found", s.Project, s.Name))
		return
	}
	p.serve(w, r, route, "", path)
}

func (p *Proxy) serve(w http.ResponseWriter, r *http.Request, s *route, prefix, path string) {
	// The server's own deadline does not know requests that are held: an answer sets one with what it writes.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
	who := "address " + addressOf(r)
	if !s.Open {
		user, err := p.cfg.Admit(r, &s.Service)
		if err != nil {
			refuseError(w, err)
			return
		}
		who = "user " + user
	}
	if !p.users.add(who, p.cfg.Limits.PerUser) {
		refuse(w, http.StatusTooManyRequests, "too many requests at once")
		return
	}
	defer p.users.remove(who)
	if !p.within(r, s, path) {
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusTooManyRequests, "too many requests: the service's rate limit is reached")
		return
	}
	stats := &s.state.stats
	if stats.InFlight.Load() >= int64(p.cfg.Limits.PerService) {
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusServiceUnavailable, "the service has too many requests at once")
		return
	}
	if len(s.pool) == 0 {
		var err error
		if s, err = p.hold(r.Context(), s); err != nil {
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(p.cfg.Limits.Idle))
			refuseError(w, err)
			return
		}
	}
	if s.KeepPrefix {
		path = prefix + path
	}
	p.pass(w, r, s, prefix, path)
}

// within reports whether the rate limits let a request pass. Of limits whose prefixes match, the longest holds.
func (p *Proxy) within(r *http.Request, s *route, path string) bool {
	var limit *core.RateLimit
	plain, err := url.PathUnescape(path)
	if err != nil {
		plain = path
	}
	for i := range s.RateLimits {
		l := &s.RateLimits[i]
		if strings.HasPrefix(plain, l.Prefix) && (limit == nil || len(l.Prefix) > len(limit.Prefix)) {
			limit = l
		}
	}
	if limit == nil {
		return true
	}
	client := addressOf(r)
	if limit.Header != "" {
		if client = r.Header.Get(limit.Header); client == "" {
			return true // as nginx: an empty key is not counted
		}
	}
	return s.state.buckets.take(limit.Prefix, client, limit.RPS, limit.Burst, time.Now())
}

// hold keeps a request until the service has a replica.
func (p *Proxy) hold(ctx context.Context, s *route) (*route, error) {
	if !s.Wakes {
		return nil, core.Errorf(core.Unavailable, "Service %s/%s has no replica that is ready", s.Project, s.Name)
	}
	stats := &s.state.stats
	if stats.Waiting.Add(1) > int64(p.cfg.Limits.Held) {
		stats.Waiting.Add(-1)
		return nil, core.Errorf(core.Unavailable, "too many requests wait for a replica of service %s/%s", s.Project, s.Name)
	}
	defer stats.Waiting.Add(-1)
	if p.cfg.Woken != nil {
		p.cfg.Woken(s.ID)
	}
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Limits.HoldFor)
	defer cancel()
	for {
		now, changed := p.now(s.ID)
		switch {
		case now == nil:
			return nil, core.Errorf(core.Unavailable, "Service %s/%s was stopped", s.Project, s.Name)
		case len(now.pool) > 0:
			return now, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, core.Errorf(core.Unavailable, "Service %s/%s had no replica ready within %v", s.Project, s.Name,
				p.cfg.Limits.HoldFor)
		}
	}
}

// pass has a replica answer.
func (p *Proxy) pass(w http.ResponseWriter, r *http.Request, s *route, prefix, path string) {
	began := time.Now()
	stats := &s.state.stats
	stats.InFlight.Add(1)
	defer stats.InFlight.Add(-1)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	q := &request{p: p, route: s, prefix: prefix, path: path, cancel: cancel, repeat: repeatable(r)}
	out := &answer{ResponseWriter: w, idle: p.cfg.Limits.Idle, control: http.NewResponseController(w)}
	defer func() {
		if q.took != nil {
			q.took.done()
		}
		out.end()
		stats.answered(out.status, time.Since(began), time.Now())
	}()
	r = r.WithContext(context.WithValue(ctx, requestKey{}, q))
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = &upload{ReadCloser: http.MaxBytesReader(w, r.Body, p.cfg.Limits.Body), out: out}
	}
	reverse.ServeHTTP(out, r)
}

// reverse is the standard library's reverse proxy; what is peculiar to a request is in its context.
var reverse = &httputil.ReverseProxy{
	Rewrite: rewrite, Transport: tripper{}, ErrorHandler: failed, BufferPool: &buffers{}, ModifyResponse: tame,
	FlushInterval: 0, ErrorLog: quiet,
}

func rewrite(x *httputil.ProxyRequest) {
	q := x.In.Context().Value(requestKey{}).(*request)
	x.SetXForwarded() // what the client says of itself is dropped
	x.Out.Host = x.In.Host
	x.Out.URL.Scheme, x.Out.URL.Host = "http", "replica"
	x.Out.URL.Path, x.Out.URL.RawPath = q.path, q.path
	if plain, err := url.PathUnescape(q.path); err == nil {
		x.Out.URL.Path = plain
	}
	x.Out.URL.RawQuery = x.In.URL.RawQuery
	if q.prefix != "" {
		x.Out.Header.Set("X-Forwarded-Prefix", q.prefix)
	}
	for name := range x.Out.Header {
		if strings.HasPrefix(name, "Bireme-") || strings.HasPrefix(name, "X-Slurm-User-") { // who calls, and tokens
			delete(x.Out.Header, name)
		}
	}
	if !q.route.Open {
		x.Out.Header.Del("Authorization") // it is the caller's key to all of the caller's projects
	}
	if _, known := x.Out.Header["User-Agent"]; !known {
		x.Out.Header.Set("User-Agent", "")
	}
}

// tame drops what a replica may not say for all that is found under the same host.
func tame(resp *http.Response) error {
	for _, h := range []string{"Strict-Transport-Security", "Clear-Site-Data", "Alt-Svc", "Service-Worker-Allowed"} {
		resp.Header.Del(h)
	}
	for name := range resp.Header { // what servers tell each other and clients
		if strings.HasPrefix(name, "Bireme-") {
			delete(resp.Header, name)
		}
	}
	return nil
}

// failed answers for replicas that did not.
func failed(w http.ResponseWriter, r *http.Request, err error) {
	var big *http.MaxBytesError
	var told *core.Error
	switch {
	case errors.As(err, &big):
		refuse(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("the request has more than %d bytes", big.Limit))
	case r.Context().Err() != nil && !errors.Is(err, errSilent):
		w.WriteHeader(499) // as nginx counts a client that has left
	case errors.Is(err, errSilent):
		refuse(w, http.StatusGatewayTimeout, "the replica did not answer in time")
	case errors.As(err, &told) && told.Code == core.Unavailable:
		refuse(w, http.StatusServiceUnavailable, told.Message)
	default:
		refuse(w, http.StatusBadGateway, "the replica did not answer: "+reason(err))
	}
}

// reason words an error without what only the server should know.
func reason(err error) string {
	var d *dialError
	switch {
	case errors.As(err, &d):
		return d.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return "its connection ended before its answer"
	}
	return "its connection failed, or it did not speak HTTP"
}

// refuse answers as dstack's proxy does.
func refuse(w http.ResponseWriter, status int, detail string) {
	body, err := json.Marshal(map[string]string{"detail": detail})
	if err != nil {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that left does not read it
}

// statuses are those of errors' codes.
var statuses = map[core.Code]int{
	core.Invalid: http.StatusBadRequest, core.Unknown: http.StatusForbidden, core.Denied: http.StatusForbidden,
	core.NotFound: http.StatusNotFound, core.Exhausted: http.StatusTooManyRequests,
	core.Unavailable: http.StatusServiceUnavailable, core.TooLarge: http.StatusRequestEntityTooLarge,
}

func refuseError(w http.ResponseWriter, err error) {
	status, ok := statuses[core.CodeOf(err)]
	if !ok {
		status = http.StatusInternalServerError
	}
	if status >= 500 {
		w.Header().Set("Retry-After", "1")
	}
	refuse(w, status, err.Error())
}

// addressOf is who calls, without the port.
func addressOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// buffers are those by which bodies are passed on.
type buffers struct{ pool sync.Pool }

func (b *buffers) Get() []byte {
	if x, ok := b.pool.Get().(*[]byte); ok {
		return *x
	}
	return make([]byte, 32<<10)
}

func (b *buffers) Put(x []byte) { b.pool.Put(&x) }
