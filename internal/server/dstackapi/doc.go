// Package dstackapi answers dstack's HTTP API beside /api/v1, for its unmodified clients. Each subject has a package
// below; front is what they share. Handlers hold no policy: they convert, ask the engine as every other call does, and
// convert back. What a caller may do, limits, and the audit log are those of internal/server/api/call.
package dstackapi
