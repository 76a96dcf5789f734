// Package api is the native HTTP API under /api/v1 and the agents' streams under /agent/v1.
//
// One table (routes.go) holds every route with its types; the mux and the OpenAPI document are both made from it. Each call
// has an identity (auth.go): a token, the kernel's word for the caller's uid on a local socket, or a node's certificate and
// that node's word. Handlers read snapshots, send inputs to the engine and hold no policy; errors are core.Error and become
// a status by one table.
//
// POST /jobs and the brief listing are the hot paths: they read and write JSON by hand (decode.go, client.AppendBrief) and
// touch nothing they do not need.
package api
