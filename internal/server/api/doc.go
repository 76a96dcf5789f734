// Package api is the native HTTP API under /api/v1 and the agents' streams under /agent/v1.
//
// Three tables by route say all there is to know about a call: routes.go (handler and types; the mux and the OpenAPI
// document are made from it), rights.go (the scope a token needs) and actions.go (what the audit log calls it).
// API.serve is the way of every call: identity, limits, rights, handler, audit log, answer.
//
//	             api        routes, rights, actions, serve
//	              |
//	jobs  steps  nodes  people  cluster  events  metrics        handlers by subject
//	              |
//	          identity                                          who calls
//	              |
//	            call        caller, body, answer, limits, trail, Base
//	              |
//	          selection     which jobs a request means
//	              |
//	            view        what a caller may see
//
// Handlers read views of snapshots, send inputs to the engine and hold no policy; errors are core.Error and become a
// status by one table (fail.go).
package api
