// Package e2e drives the built programs as their users would: as root and as others, by command, file and API, on real
// processes and cgroups.
package e2e
