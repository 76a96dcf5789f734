package api

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/server/audit"
	"bireme.dev/bireme/internal/server/ca"
	"bireme.dev/bireme/internal/server/fleet"
	"bireme.dev/bireme/internal/server/hub"
	"bireme.dev/bireme/internal/server/limit"
	"bireme.dev/bireme/internal/server/logstore"
	"bireme.dev/bireme/internal/server/samples"
	"bireme.dev/bireme/internal/server/stream"
	"bireme.dev/bireme/internal/store"
)

// Deps are the parts the API stands on.
type Deps struct {
	Config    *config.Config
	Version   string
	Engine    *engine.Engine
	Store     store.Store
	Hub       *hub.Hub
	Streams   *stream.Exchange
	Logs      *logstore.Store
	Samples   *samples.Store
	Authority *ca.Authority
	Servers   []string // told to nodes that join
	Reload    ReloadFunc
	Partition PartitionFunc
	Fleets    *fleet.Fleets
	// CAChanged has everybody learn of a certificate authority that was changed.
	CAChanged func() error
	Seals     SealsFunc
	// HashKey makes the hashes of blobs, which lie unsealed in the store, tell nothing of what they are hashes of.
	HashKey []byte
	Audit   *audit.Log // nil: none is kept
	Log     *slog.Logger
	Conns   *limit.Conns // told of those who have shown an identity
}

// API answers HTTP. Make it with New.
type API struct {
	*Base
	Streams   *stream.Exchange
	Authority *ca.Authority
	Conns     *limit.Conns
	version   string
	mux       *http.ServeMux
	routes    []route
	watch     *watchers
	cancel    func() // ends the subscription
	handlers
}

// handlers answer the routes, each those of one subject.
type handlers struct {
	jobs         *Jobs
	submissions  *Submissions
	control      *Control
	steps        *Steps
	streams      *Streams
	events       *Events
	nodes        *Nodes
	reservations *Reservations
	fleets       *Fleets
	identity     *Identity
	tokens       *Tokens
	people       *People
	cluster      *Cluster
	metrics      *Metrics
}

// SetConfig makes other settings hold.
func (a *API) SetConfig(c *config.Config) {
	a.setConfig(c)
	if snap := a.Engine.Snapshot(); snap != nil {
		a.checkStreams(snap) // other people may be administrators now
	}
}

// New makes the API and subscribes it to the engine.
func New(d Deps) *API {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	b := &Base{Config: d.Config, Engine: d.Engine, Store: d.Store, Audit: d.Audit, Log: d.Log}
	b.setConfig(d.Config)
	a := &API{
		Base: b, Streams: d.Streams, Authority: d.Authority, Conns: d.Conns, version: d.Version, watch: newWatchers(),
		handlers: newHandlers(b, &d, host),
	}
	a.streams.watch, a.events.watch = a.watch, a.watch
	a.routes = a.table()
	a.mux = a.newMux()
	a.cancel = d.Engine.Subscribe(a.published)
	return a
}

func newHandlers(b *Base, d *Deps, host string) handlers {
	h := handlers{
		jobs:         &Jobs{Base: b, Hub: d.Hub, Samples: d.Samples},
		reservations: &Reservations{Base: b},
		tokens:       &Tokens{Base: b, Authority: d.Authority},
		people:       &People{Base: b},
		events:       &Events{Base: b},
		cluster: &Cluster{
			Base: b, Version: d.Version, host: host, started: core.At(time.Now()), Hub: d.Hub, Authority: d.Authority,
			Reload: d.Reload, CAChanged: d.CAChanged, Seals: d.Seals,
		},
	}
	h.identity = &Identity{Base: b, tokens: h.tokens, Authority: d.Authority, Servers: d.Servers}
	h.metrics = newMetrics(b, h.identity, d.Hub)
	h.submissions = &Submissions{Base: b, jobs: h.jobs, Hub: d.Hub, HashKey: d.HashKey, submitted: h.metrics.submitted}
	h.control = &Control{Base: b, jobs: h.jobs, submissions: h.submissions, Hub: d.Hub}
	h.steps = &Steps{Base: b, jobs: h.jobs, Hub: d.Hub, Streams: d.Streams}
	h.streams = &Streams{
		Base: b, jobs: h.jobs, steps: h.steps, identity: h.identity, Hub: d.Hub, Streams: d.Streams, Logs: d.Logs, Conns: d.Conns,
	}
	h.nodes = &Nodes{Base: b, reservations: h.reservations, Hub: d.Hub, Partition: d.Partition}
	h.fleets = &Fleets{Base: b, nodes: h.nodes, Authority: d.Authority, Fleets: d.Fleets}
	return h
}

// KeepTokens deletes tokens that are over and saves when tokens were last used, until the context ends.
func (a *API) KeepTokens(ctx context.Context, keep time.Duration) error {
	return a.tokens.KeepTokens(ctx, keep)
}

// Close ends watchers and the subscription.
func (a *API) Close() {
	a.cancel()
	a.watch.close()
}

// published follows a commit; it must be quick.
func (a *API) published(p *engine.Published) {
	defer func() {
		if v := recover(); v != nil {
			hub.LogPanic(a.Log, v, "part", "api")
		}
	}()
	a.watch.publish(p)
	for _, s := range p.Changes.Steps {
		if s.State.Final() {
			a.Streams.Ended(s)
		}
	}
	if len(p.Changes.Tokens)+len(p.Changes.Users)+len(p.Changes.Nodes) > 0 || p.Reloaded {
		a.checkStreams(p.Snapshot)
	}
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	awaitBody(w, r, unknownBody)
	if r.TLS != nil && len(r.TLS.VerifiedChains) == 0 { // agents are told in their session
		w.Header().Set(CAHeader, a.Authority.Sum())
	}
	a.mux.ServeHTTP(w, r)
}

// unknownBody bounds the time that a body may take before it is known whose it is.
const unknownBody = 1 << 20

// status is the one table from code to HTTP.
var status = map[core.Code]int{
	core.Invalid: http.StatusBadRequest, core.Unknown: http.StatusUnauthorized, core.Denied: http.StatusForbidden,
	core.NotFound: http.StatusNotFound, core.Conflict: http.StatusConflict, core.Gone: http.StatusGone,
	core.TooLarge: http.StatusRequestEntityTooLarge, core.Exhausted: http.StatusTooManyRequests,
	core.Unavailable: http.StatusServiceUnavailable, core.Internal: http.StatusInternalServerError,
}

// fail answers with an error. What is nobody's business but the operator's is logged, not sent.
func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) {
	var e *core.Error
	id := ""
	if !errors.As(err, &e) {
		if r.Context().Err() != nil {
			return // the caller left
		}
		id = newID()
		e = failureOf(id)
	} else if e.Code == core.Internal {
		id = newID()
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
	writeJSON(w, code, client.ErrorBody{Error: shortened(e), RequestID: id})
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

func writeJSON(w http.ResponseWriter, code int, v any) {
	data, err := json.Marshal(v)
	if err != nil { // our own types: a broken invariant
		panic(err)
	}
	writeRaw(w, code, append(data, '\n'))
}

func writeRaw(w http.ResponseWriter, code int, data []byte) {
	h := w.Header()
	h["Content-Type"] = jsonType
	h["Content-Length"] = []string{strconv.Itoa(len(data))}
	w.WriteHeader(code)
	_, _ = w.Write(data) // the caller may have left
}

var jsonType = []string{"application/json"}

// ok is the answer of calls that have nothing to say.
type okBody struct{}
