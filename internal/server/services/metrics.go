package services

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"bireme.dev/bireme/internal/proxy"
)

// Metrics of services, by project and name of the run.
var (
	serviceLabels = []string{"project", "service"}
	requestsDesc  = prometheus.NewDesc("bireme_service_requests_total",
		"Requests that were answered, by the first digit of their status.", append(serviceLabels, "code"), nil)
	secondsDesc = prometheus.NewDesc("bireme_service_request_seconds",
		"How long requests took, to the end of their answer.", serviceLabels, nil)
	retriedDesc = prometheus.NewDesc("bireme_service_retries_total",
		"Times that a request was sent to another replica.", serviceLabels, nil)
	inFlightDesc = prometheus.NewDesc("bireme_service_requests_in_flight",
		"Requests that replicas answer now.", serviceLabels, nil)
	waitingDesc = prometheus.NewDesc("bireme_service_requests_waiting",
		"Requests that are held until there is a replica.", serviceLabels, nil)
	replicasDesc = prometheus.NewDesc("bireme_service_replicas",
		"Replicas by state: ready, starting, draining; and wanted.", append(serviceLabels, "state"), nil)
)

// Describe implements prometheus.Collector.
func (s *Services) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{requestsDesc, secondsDesc, retriedDesc, inFlightDesc, waitingDesc, replicasDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (s *Services) Collect(ch chan<- prometheus.Metric) {
	snap := s.Engine.Snapshot()
	if snap == nil {
		return
	}
	put := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, kind, v, labels...)
	}
	for _, r := range snap.Runs() {
		if r.Service == nil {
			continue
		}
		at := []string{string(r.Project), r.Name}
		states := map[string]int{"ready": 0, "starting": 0, "draining": 0, "wanted": int(r.Service.Want())}
		for i := range r.Service.Replicas {
			x := &r.Service.Replicas[i]
			j, _ := snap.Job(x.Job)
			switch {
			case x.Draining != 0 || x.Stopped:
				states["draining"]++
			case x.IsReady(j):
				states["ready"]++
			default:
				states["starting"]++
			}
		}
		for state, n := range states {
			put(replicasDesc, prometheus.GaugeValue, float64(n), append(at, state)...)
		}
		stats := s.Proxy.Stats(r.ID)
		if stats == nil {
			continue
		}
		put(inFlightDesc, prometheus.GaugeValue, float64(stats.InFlight.Load()), at...)
		put(waitingDesc, prometheus.GaugeValue, float64(stats.Waiting.Load()), at...)
		total := stats.Totals()
		put(retriedDesc, prometheus.CounterValue, float64(total.Retried), at...)
		for class, n := range total.Codes {
			if class > 0 {
				put(requestsDesc, prometheus.CounterValue, float64(n), append(at, strconv.Itoa(class)+"xx")...)
			}
		}
		ch <- s.histogram(total.Classes, total.Sum, at)
	}
}

// histogram makes a metric of what the proxy counted by latency.
func (s *Services) histogram(classes []int64, sum float64, labels []string) prometheus.Metric {
	buckets, count := map[float64]uint64{}, uint64(0)
	for i, n := range classes {
		count += uint64(n)
		if bounds := proxy.Bounds(); i < len(bounds) {
			buckets[bounds[i]] = count
		}
	}
	return prometheus.MustNewConstHistogram(secondsDesc, count, sum, buckets, labels...)
}
