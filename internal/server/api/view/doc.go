// Package view decides what a caller may see. Visibility holds the rules (private_data, Slurm's PrivateData) and is
// pure; Viewer applies them to a snapshot: what is hidden is not there for any handler. What is always its owner's
// alone (scripts, environments, submit lines) is cut out in redact.go.
package view
