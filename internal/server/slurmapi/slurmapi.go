// Package slurmapi offers Slurm's REST API beside /api/v1, for unmodified clients of slurmrestd. Its calls are made to
// the native routes within this process, as the same caller: rights, limits, what is private and the audit log are
// those of /api/v1. What is read and written is internal/slurm/rest's.
package slurmapi

import (
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"go.yaml.in/yaml/v3"

	"bireme.dev/bireme/internal/account"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/slurm/rest"
	"bireme.dev/bireme/internal/slurm/schema"
)

// API holds the routes. Make it with New.
type API struct {
	*call.Base
	rest      *rest.API
	endpoints []rest.Endpoint
	// When jobs and nodes last changed, in nanoseconds.
	jobs, nodes atomic.Int64
}

// New makes the API over the handler of the native routes.
func New(b *call.Base, native http.Handler) *API {
	c, err := client.New(client.Settings{Servers: []string{"http+insecure://bireme"}},
		client.WithTransport(&inside{native}))
	core.Assert(err == nil, "client within the server: %v", err)
	a := &API{Base: b, endpoints: rest.Endpoints()}
	a.rest = &rest.API{Client: c, Now: time.Now, Group: groupName, Changed: a.changed}
	now := time.Now().UnixNano()
	a.jobs.Store(now)
	a.nodes.Store(now)
	return a
}

func groupName(gid uint32) string {
	g, err := account.GroupByGID(gid)
	if err != nil {
		return ""
	}
	return g.Name
}

// Committed notes what a commit changed.
func (a *API) Committed(p *engine.Published) {
	now := time.Now().UnixNano()
	if len(p.Changes.Jobs) > 0 || p.Reloaded {
		a.jobs.Store(now)
	}
	if len(p.Changes.Jobs)+len(p.Changes.Nodes) > 0 || p.Reloaded {
		a.nodes.Store(now)
	}
}

// quiet is how long a listing of nodes counts as unchanged while nothing but loads and free memory move.
const quiet = 30 * time.Second

// changed is when a listing last changed. A pass of the planner changes why jobs wait and when they are expected.
func (a *API) changed(what string) time.Time {
	if what == "nodes" {
		last := time.Unix(0, a.nodes.Load())
		if now := time.Now(); now.Sub(last) > quiet {
			a.nodes.Store(now.UnixNano())
			return now
		}
		return last
	}
	last := time.Unix(0, a.jobs.Load())
	if pass := a.Engine.Stats().LastPassAt.Go(); pass.After(last) {
		return pass
	}
	return last
}

// Serves reports whether a path is one of Slurm's API.
func Serves(path string) bool {
	return strings.HasPrefix(path, "/slurm/") || strings.HasPrefix(path, "/slurmdb/") ||
		path == "/openapi" || strings.HasPrefix(path, "/openapi/")
}

// Routes makes the table of routes. Paths with and without a slash at their end are the same.
func (a *API) Routes() []call.Route {
	var list []call.Route
	for _, path := range []string{"/openapi", "/openapi.json", "/openapi/v3"} {
		list = append(list, call.Route{Method: http.MethodGet, Path: path, Open: true, Fail: a.fail, Handle: a.openapi})
	}
	for i := range a.endpoints {
		e := &a.endpoints[i]
		for _, path := range []string{e.Path, e.Path + "/{$}"} {
			list = append(list, call.Route{
				Method: e.Method, Path: path, Fail: a.fail, Reads: true, // the native route says what it changes
				Right: call.Right{Scope: core.ScopeRead, Within: call.Harmless}, // likewise
				Handle: func(w http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
					return nil, a.serve(e, w, r, who)
				},
			})
		}
	}
	return list
}

func (a *API) serve(e *rest.Endpoint, w http.ResponseWriter, r *http.Request, who *call.Caller) error {
	v, ok := versionOf(r)
	if !ok || !e.In(v) {
		a.NoRoute(w, r)
		return nil
	}
	body, err := a.read(e, r)
	if err != nil {
		return err
	}
	ctx := withOuter(call.WithCaller(r.Context(), who), r)
	if isHeavy(e) {
		done, err := a.Heavy(ctx, who)
		if err != nil {
			return err
		}
		defer done()
		ctx = call.WithHeavy(ctx)
	}
	reply := a.rest.Do(&rest.Call{
		Context: ctx, Version: v, Path: r.PathValue, Query: r.URL.Query(), Body: body, User: string(who.User), Endpoint: e,
	})
	a.write(w, r, reply)
	return nil
}

// isHeavy reports whether a call is about much of the state or the history.
func isHeavy(e *rest.Endpoint) bool {
	return e.Database() || e.Method == http.MethodGet && !strings.Contains(e.Path, "/job/") &&
		!strings.HasSuffix(e.Path, "/ping")
}

// openapi serves the description of the API.
func (a *API) openapi(w http.ResponseWriter, r *http.Request, _ *call.Caller) (any, error) {
	doc := rest.OpenAPI(a.Settings().SlurmVersion)
	if !wantsYAML(r) {
		return doc, nil
	}
	data, err := yaml.Marshal(doc)
	if err != nil {
		return nil, err
	}
	send(w, http.StatusOK, "application/yaml", data)
	return nil, nil
}

func versionOf(r *http.Request) (schema.Version, bool) {
	v, flags, ok := schema.Parse(r.PathValue("version"))
	return v, ok && v != schema.Recorded && len(flags) == 0
}
