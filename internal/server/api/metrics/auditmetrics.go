package metrics

import "github.com/prometheus/client_golang/prometheus"

// auditCollector tells how the audit log fares: what was lost is to be seen.
type auditCollector struct{ a *Metrics }

var (
	descAuditRows = prometheus.NewDesc("bireme_audit_entries_total", "Entries of the audit log in the store.", nil, nil)
	descAuditLost = prometheus.NewDesc("bireme_audit_lost_total",
		"Entries of the audit log that were lost because too many waited.", nil, nil)
	descAuditFailed = prometheus.NewDesc("bireme_audit_write_errors_total",
		"Attempts to write the audit log that failed and were made again.", nil, nil)
	descAuditUnsent = prometheus.NewDesc("bireme_audit_unsent_total",
		"Entries of the audit log that could not be exported.", nil, nil)
)

// Describe implements prometheus.Collector.
func (c *auditCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descAuditRows, descAuditLost, descAuditFailed, descAuditUnsent} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *auditCollector) Collect(ch chan<- prometheus.Metric) {
	if c.a.Audit == nil {
		return
	}
	s := c.a.Audit.Stats()
	count := func(d *prometheus.Desc, v int64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v))
	}
	count(descAuditRows, s.Written.Load())
	count(descAuditLost, s.Dropped.Load())
	count(descAuditFailed, s.Failed.Load())
	count(descAuditUnsent, s.Unsent.Load())
}
