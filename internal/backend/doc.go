// Package backend is where nodes come from: one folder each. internal/server/fleet drives them.
package backend
