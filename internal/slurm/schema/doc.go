// Package schema describes the records that Slurm shows in JSON, in YAML and by REST, and writes them. The tables (one
// line a field) say the form that each version gives it. --json, --yaml, the REST API and its OpenAPI document are all
// made from them.
package schema
