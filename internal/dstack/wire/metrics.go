package wire

// JobMetrics are what a job used, moment by moment, the newest first.
type JobMetrics struct {
	Metrics []Metric `json:"metrics"`
}

// Metric is one quantity.
type Metric struct {
	Name       string   `json:"name"`
	Timestamps []string `json:"timestamps"`
	Values     []any    `json:"values"`
}
