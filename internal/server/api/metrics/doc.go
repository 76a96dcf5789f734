// Package metrics serves the server's numbers to Prometheus, and what dcgm-exporters of nodes say of GPUs that jobs
// have.
package metrics
