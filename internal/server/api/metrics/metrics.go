package metrics

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/api/identity"
	"bireme.dev/bireme/internal/server/api/view"
	"bireme.dev/bireme/internal/server/hub"
)

// Metrics serves the server's numbers. Labels are routes, codes and states; never users, and jobs only where each has
// a GPU.
type Metrics struct {
	*call.Base
	identity  *identity.Identity
	Hub       *hub.Hub
	requests  *prometheus.CounterVec
	Submitted prometheus.Counter
	Panics    prometheus.Counter
	handler   http.Handler
	jobless   http.Handler // the same without jobs as labels, for scrapers that do not see all jobs
}

func New(b *call.Base, identity *identity.Identity, h *hub.Hub, more ...prometheus.Collector) *Metrics {
	m := &Metrics{
		Base: b, identity: identity, Hub: h,
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "bireme_http_requests_total", Help: "Calls answered, by route and outcome.",
		}, []string{"method", "route", "code"}),
		Submitted: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "bireme_jobs_submitted_total",
			Help: "Submissions acknowledged.",
		}),
		Panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "bireme_http_panics_total",
			Help: "Calls whose handler panicked.",
		}),
	}
	common := []prometheus.Collector{
		m.requests, m.Submitted, m.Panics, &collector{m}, &auditCollector{m}, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	}
	common = append(common, more...)
	all, jobless := prometheus.NewRegistry(), prometheus.NewRegistry()
	all.MustRegister(append(common, &queueCollector{m}, &gpuCollector{a: m, jobs: true})...)
	jobless.MustRegister(append(common, &gpuCollector{a: m})...)
	m.handler = promhttp.HandlerFor(all, promhttp.HandlerOpts{})
	m.jobless = promhttp.HandlerFor(jobless, promhttp.HandlerOpts{})
	return m
}

// RouteCount counts one route's calls; those that succeed cost one addition.
type RouteCount struct {
	m  *Metrics
	rt *call.Route
	ok prometheus.Counter
}

func (m *Metrics) Route(rt *call.Route) *RouteCount {
	return &RouteCount{m: m, rt: rt, ok: m.requests.WithLabelValues(rt.Method, rt.Path, "ok")}
}

func (c *RouteCount) Add(err error) {
	if err == nil {
		c.ok.Inc()
		return
	}
	c.m.requests.WithLabelValues(c.rt.Method, c.rt.Path, string(core.CodeOf(err))).Inc()
}

func (a *Metrics) ServeMetrics(w http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	if a.scraper(r, who).AllJobs() {
		a.handler.ServeHTTP(w, r)
	} else {
		a.jobless.ServeHTTP(w, r)
	}
	return nil, nil
}

// scraper is the view of who reads metrics. Where nothing is private nobody is asked who they are.
func (a *Metrics) scraper(r *http.Request, who *call.Caller) *view.Viewer {
	snap := a.Engine.Snapshot()
	if who == nil && snap != nil && a.Settings().Private() != 0 {
		if known, err := a.identity.Identify(r); err == nil {
			who = known
		}
	}
	if snap == nil {
		who = nil // nothing is known of anybody's role
	}
	return a.ViewOf(who, snap)
}

// collector reads what others count when it is asked.
type collector struct{ a *Metrics }

var (
	descJobs = prometheus.NewDesc("bireme_jobs", "Live jobs by state; array tasks counted one by one.",
		[]string{"state"}, nil)
	descNodes   = prometheus.NewDesc("bireme_nodes", "Known nodes.", nil, nil)
	descAgents  = prometheus.NewDesc("bireme_agents_connected", "Connected agents.", nil, nil)
	descSeq     = prometheus.NewDesc("bireme_event_seq", "Number of the last event.", nil, nil)
	descBatches = prometheus.NewDesc("bireme_commits_total", "Transactions committed.", nil, nil)
	descInputs  = prometheus.NewDesc("bireme_inputs_total", "Commands applied.", nil, nil)
	descRefused = prometheus.NewDesc("bireme_inputs_refused_total", "Commands refused for want of room.", nil, nil)
	descPanics  = prometheus.NewDesc("bireme_panics_total",
		"Panics of the scheduler and of the state that were caught; each is in the log.", nil, nil)
	descReloads = prometheus.NewDesc("bireme_reloads_total", "Times the state was loaded anew after a failed commit.",
		nil, nil)
	descStreams = prometheus.NewDesc("bireme_streams_open",
		"Open streams of users: watches, followed logs, streams of steps.", nil, nil)
	descLeading = prometheus.NewDesc("bireme_leading", "1 while this server leads and can write.", nil, nil)
)

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descJobs, descNodes, descAgents, descSeq, descBatches, descInputs, descRefused,
		descReloads, descPanics, descStreams, descLeading,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	count := func(d *prometheus.Desc, v int64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v))
	}
	snap := c.a.Engine.Snapshot()
	leading := 0.0
	if snap != nil && c.a.Engine.ReadOnly() == "" {
		leading = 1
	}
	gauge(descLeading, leading)
	gauge(descStreams, float64(c.a.Open.Count()))
	gauge(descAgents, float64(c.a.Hub.Connected()))
	s := c.a.Engine.Stats()
	count(descBatches, s.Batches)
	count(descInputs, s.Inputs)
	count(descRefused, s.Refused)
	count(descReloads, s.Reloads)
	count(descPanics, s.Panics)
	if snap == nil {
		return
	}
	gauge(descSeq, float64(snap.Seq()))
	nodes := 0
	for range snap.Nodes() {
		nodes++
	}
	gauge(descNodes, float64(nodes))
	states := map[core.JobState]int{}
	for j := range snap.Jobs() {
		states[j.State] += j.Count()
	}
	for st, n := range states {
		gauge(descJobs, float64(n), st.String())
	}
}
