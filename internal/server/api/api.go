package api

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/attach"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/proxy"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/api/cluster"
	"bireme.dev/bireme/internal/server/api/diag"
	"bireme.dev/bireme/internal/server/api/events"
	"bireme.dev/bireme/internal/server/api/history"
	"bireme.dev/bireme/internal/server/api/identity"
	"bireme.dev/bireme/internal/server/api/jobs"
	"bireme.dev/bireme/internal/server/api/metrics"
	"bireme.dev/bireme/internal/server/api/nodes"
	"bireme.dev/bireme/internal/server/api/people"
	"bireme.dev/bireme/internal/server/api/secrets"
	"bireme.dev/bireme/internal/server/api/steps"
	"bireme.dev/bireme/internal/server/api/triggers"
	"bireme.dev/bireme/internal/server/api/usage"
	"bireme.dev/bireme/internal/server/audit"
	"bireme.dev/bireme/internal/server/ca"
	"bireme.dev/bireme/internal/server/dstackapi"
	"bireme.dev/bireme/internal/server/fleet"
	"bireme.dev/bireme/internal/server/hub"
	"bireme.dev/bireme/internal/server/jobsubmit"
	"bireme.dev/bireme/internal/server/limit"
	"bireme.dev/bireme/internal/server/logstore"
	"bireme.dev/bireme/internal/server/pass"
	"bireme.dev/bireme/internal/server/samples"
	"bireme.dev/bireme/internal/server/services"
	"bireme.dev/bireme/internal/server/slurmapi"
	"bireme.dev/bireme/internal/server/stream"
	"bireme.dev/bireme/internal/server/trigger"
	"bireme.dev/bireme/internal/server/uploads"
	"bireme.dev/bireme/internal/server/vault"
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
	Reload    cluster.ReloadFunc
	Partition nodes.PartitionFunc
	Fleets    *fleet.Fleets
	Triggers  *trigger.Watcher
	// CAChanged has everybody learn of a certificate authority that was changed.
	CAChanged func() error
	Seals     cluster.SealsFunc
	Vault     *vault.Vault // seals and opens credentials
	Uploads   *uploads.Store
	Dstack    string // URL for dstack's clients; empty: none
	// SSH is where clients reach the SSH listener that reach the API by a host name.
	SSH func(host string) attach.Listener
	// HashKey makes the hashes of blobs, which lie unsealed in the store, tell nothing of what they are hashes of.
	HashKey []byte
	Plugins *jobsubmit.Plugins // decide on submissions before the engine does; nil: none
	Audit   *audit.Log         // nil: none is kept
	Log     *slog.Logger
	Conns   *limit.Conns // told of those who have shown an identity
	// Pass hands on what a server that follows does not answer itself; nil: this one leads.
	Pass http.Handler
	// Members tells which servers there are.
	Members cluster.MembersFunc
	// StepDown has the server, which leads, give the lead up.
	StepDown func() error
	// Services are kept going by these, and their requests passed on by Proxy.
	Services *services.Services
	Proxy    *proxy.Proxy
}

// API answers HTTP. Make it with New.
type API struct {
	*call.Base
	Streams   *stream.Exchange
	Authority *ca.Authority
	Conns     *limit.Conns
	version   string
	mux       *http.ServeMux
	routes    []call.Route
	watch     *events.Watchers
	cancel    func() // ends the subscription
	slurm     *slurmapi.API
	pass      http.Handler
	wrote     lastWrites
	services  *services.Services
	proxy     *proxy.Proxy
	handlers
}

// handlers answer the routes, each those of one subject.
type handlers struct {
	jobs         *jobs.Jobs
	submissions  *jobs.Submissions
	control      *jobs.Control
	steps        *steps.Steps
	streams      *steps.Streams
	events       *events.Events
	nodes        *nodes.Nodes
	reservations *nodes.Reservations
	fleets       *nodes.Fleets
	identity     *identity.Identity
	tokens       *identity.Tokens
	jwt          *identity.JWT
	takeover     *identity.Takeover
	history      *history.History
	people       *people.People
	secrets      *secrets.Secrets
	cluster      *cluster.Cluster
	metrics      *metrics.Metrics
	diag         *diag.Diag
	usage        *usage.Usage
	triggers     *triggers.Triggers
}

// SetConfig makes other settings hold.
func (a *API) SetConfig(c *config.Config) {
	a.StoreConfig(c)
	if snap := a.Engine.Snapshot(); snap != nil {
		a.CheckStreams(snap) // other people may be administrators now
	}
}

// New makes the API and subscribes it to the engine.
func New(d Deps) *API {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	b := &call.Base{Config: d.Config, Engine: d.Engine, Store: d.Store, Audit: d.Audit, Log: d.Log}
	b.StoreConfig(d.Config)
	a := &API{
		Base: b, Streams: d.Streams, Authority: d.Authority, Conns: d.Conns, version: d.Version, watch: events.NewWatchers(),
		pass:     d.Pass,
		services: d.Services, proxy: d.Proxy,
		handlers: newHandlers(b, &d, host),
	}
	a.streams.Watch, a.events.Watch = a.watch, a.watch
	a.routes = append(a.table(), dstackapi.Routes(dstackapi.Deps{
		Base: b, Tokens: a.tokens, Secrets: a.secrets, Fleets: a.fleets, Vault: d.Vault, Uploads: d.Uploads, SSH: d.SSH,
		Jobs: a.jobs, Submissions: a.submissions, Logs: d.Logs, Samples: d.Samples,
		Streaks: d.Services.Streaks,
	})...)
	a.slurm = slurmapi.New(b, a)
	a.routes = append(a.routes, a.slurm.Routes()...)
	a.mux = a.newMux()
	a.cancel = d.Engine.Subscribe(a.published)
	return a
}

func newHandlers(b *call.Base, d *Deps, host string) handlers {
	h := handlers{
		jobs:         &jobs.Jobs{Base: b, Hub: d.Hub, Samples: d.Samples},
		reservations: &nodes.Reservations{Base: b},
		tokens:       &identity.Tokens{Base: b, Authority: d.Authority},
		people:       &people.People{Base: b},
		usage:        &usage.Usage{Base: b},
		triggers:     &triggers.Triggers{Base: b, Watcher: d.Triggers},
		history:      &history.History{Base: b},
		secrets:      &secrets.Secrets{Base: b, Vault: d.Vault},
		events:       &events.Events{Base: b},
		cluster: &cluster.Cluster{
			Base: b, Version: d.Version, Host: host, Started: core.At(time.Now()), Hub: d.Hub, Authority: d.Authority,
			Reload: d.Reload, CAChanged: d.CAChanged, Seals: d.Seals, Dstack: d.Dstack, Members: d.Members, StepDown: d.StepDown,
		},
	}
	h.jwt = &identity.JWT{Base: b, Secret: d.Authority.Secret("jwt")}
	h.identity = &identity.Identity{Base: b, Tokens: h.tokens, JWT: h.jwt, Authority: d.Authority, Servers: d.Servers}
	h.diag = diag.New(b)
	h.takeover = &identity.Takeover{Base: b, Tokens: h.tokens, Vault: d.Vault}
	var more []prometheus.Collector
	if d.Services != nil {
		more = append(more, d.Services)
	}
	h.metrics = metrics.New(b, h.identity, d.Hub, more...)
	h.submissions = &jobs.Submissions{
		Base: b, Jobs: h.jobs, Hub: d.Hub, HashKey: d.HashKey,
		Submitted: h.metrics.Submitted, Plugins: d.Plugins,
	}
	h.control = &jobs.Control{Base: b, Jobs: h.jobs, Submissions: h.submissions, Hub: d.Hub}
	h.steps = &steps.Steps{Base: b, Jobs: h.jobs, Hub: d.Hub, Streams: d.Streams}
	h.streams = &steps.Streams{
		Base: b, Jobs: h.jobs, Steps: h.steps, Identity: h.identity, Hub: d.Hub, Streams: d.Streams, Logs: d.Logs,
		Conns: d.Conns,
	}
	h.nodes = &nodes.Nodes{Base: b, Reservations: h.reservations, Hub: d.Hub, Partition: d.Partition}
	h.fleets = &nodes.Fleets{Base: b, Nodes: h.nodes, Authority: d.Authority, Fleets: d.Fleets}
	return h
}

// KeepTokens deletes tokens that are over and saves when tokens were last used, until the context ends.
func (a *API) KeepTokens(ctx context.Context, keep time.Duration) error {
	return a.tokens.KeepTokens(ctx, keep)
}

// Close ends watchers and the subscription.
func (a *API) Close() {
	a.cancel()
	a.watch.Close()
}

// published follows a commit; it must be quick.
func (a *API) published(p *engine.Published) {
	defer func() {
		if v := recover(); v != nil {
			hub.LogPanic(a.Log, v, "part", "api")
		}
	}()
	a.watch.Publish(p)
	a.diag.Committed(p)
	a.slurm.Committed(p)
	for _, s := range p.Changes.Steps {
		if s.State.Final() {
			a.Streams.Ended(s)
		}
	}
	if len(p.Changes.Tokens)+len(p.Changes.Users)+len(p.Changes.Nodes) > 0 || p.Reloaded {
		a.CheckStreams(p.Snapshot)
	}
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if proxy.IsPath(r.URL.Path) {
		if a.pass != nil { // the leader has the connections to replicas
			if _, between := pass.Of(r); between { // it takes us for the leader
				a.fail(w, r, nil, notLeading())
				return
			}
			a.pass.ServeHTTP(w, r)
			return
		}
		a.proxy.ServePath(w, r)
		return
	}
	call.AwaitBody(w, r, unknownBody)
	if r.TLS != nil && len(r.TLS.VerifiedChains) == 0 { // agents are told in their session
		w.Header().Set(cluster.CAHeader, a.Authority.Sum())
	}
	a.mux.ServeHTTP(w, r)
}

// unknownBody bounds the time that a body may take before it is known whose it is.
const unknownBody = 1 << 20
