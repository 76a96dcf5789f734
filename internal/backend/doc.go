// Package backend is where nodes come from: one directory each. internal/server/fleet drives them.
package backend
