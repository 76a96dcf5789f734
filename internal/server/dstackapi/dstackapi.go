package dstackapi

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/attach"
	"bireme.dev/bireme/internal/dstack/wire"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/api/identity"
	"bireme.dev/bireme/internal/server/api/jobs"
	"bireme.dev/bireme/internal/server/api/nodes"
	native "bireme.dev/bireme/internal/server/api/secrets"
	"bireme.dev/bireme/internal/server/dstackapi/absent"
	"bireme.dev/bireme/internal/server/dstackapi/events"
	"bireme.dev/bireme/internal/server/dstackapi/fleets"
	"bireme.dev/bireme/internal/server/dstackapi/front"
	"bireme.dev/bireme/internal/server/dstackapi/people"
	"bireme.dev/bireme/internal/server/dstackapi/repos"
	"bireme.dev/bireme/internal/server/dstackapi/runs"
	"bireme.dev/bireme/internal/server/dstackapi/secrets"
	"bireme.dev/bireme/internal/server/dstackapi/volumes"
	"bireme.dev/bireme/internal/server/logstore"
	"bireme.dev/bireme/internal/server/samples"
	"bireme.dev/bireme/internal/server/uploads"
	"bireme.dev/bireme/internal/server/vault"
)

// Deps are the parts that the handlers stand on: those of the native API.
type Deps struct {
	Base        *call.Base
	Tokens      *identity.Tokens
	Secrets     *native.Secrets
	Fleets      *nodes.Fleets
	Vault       *vault.Vault
	Uploads     *uploads.Store
	Jobs        *jobs.Jobs
	Submissions *jobs.Submissions
	Logs        *logstore.Store
	Samples     *samples.Store
	// SSH is the listener that leads into jobs, for clients that reach the API by a host name; without a port there is
	// none.
	SSH func(host string) attach.Listener
	// Streaks are the successes in a row of the probes of a service's replica.
	Streaks func(j *core.Job) []int32
}

// Routes makes the table of routes.
func Routes(d Deps) []call.Route {
	frame := &front.Frame{Base: d.Base}
	rows := serverRows()
	users := people.New(d.Base, d.Tokens, d.Vault)
	rows = append(rows, users.Rows()...)
	rows = append(rows, (&runs.Runs{
		Base: d.Base, Jobs: d.Jobs, Submissions: d.Submissions, Logs: d.Logs, Samples: d.Samples, SSH: d.SSH,
		UserKey: users.PublicKey, Uploads: d.Uploads, Streaks: d.Streaks,
	}).Rows()...)
	rows = append(rows, secrets.New(d.Secrets).Rows()...)
	rows = append(rows, fleets.New(d.Base, d.Fleets).Rows()...)
	rows = append(rows, volumes.New(d.Base).Rows()...)
	rows = append(rows, events.New(d.Base).Rows()...)
	rows = append(rows, absent.Rows()...)
	rows = append(rows, repos.New(d.Base, d.Vault, d.Uploads).Rows()...)
	list := make([]call.Route, 0, len(rows))
	for _, row := range rows {
		list = append(list, frame.Route(row))
		if row.Level != front.Public {
			list = append(list, frame.NativeRoute(row))
		}
	}
	return list
}

func serverRows() []front.Row {
	return []front.Row{
		{Method: "GET", Path: "/healthcheck", Level: front.Public, Handle: front.NoBody(healthcheck)},
		{Path: "/api/server/get_info", Level: front.Public, Handle: front.NoBody(getInfo)},
		{Path: "/api/auth/list_providers", Level: front.Public, Handle: front.NoBody(noProviders)},
		{Path: "/api/backends/list_types", Level: front.Public, Handle: front.NoBody(noBackends)},
	}
}

func healthcheck(*front.Call) (any, error) { return wire.Health{Status: "running"}, nil }

func getInfo(*front.Call) (any, error) { return wire.ServerInfo{ServerVersion: wire.Speaks}, nil }

// noProviders says that nobody signs in through another server.
func noProviders(*front.Call) (any, error) { return []struct{}{}, nil }

// noBackends says that there are no clouds: nodes are fleets' and the cluster's own.
func noBackends(*front.Call) (any, error) { return []string{}, nil }
