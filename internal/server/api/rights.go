package api

import (
	"net/http"
	"net/url"

	"bireme.dev/bireme/internal/core"
)

// right is what a route asks of a caller's token. Callers without one (a local socket, a node's word) have every scope.
type right struct {
	scope core.Scope
	// within says how a token that is limited to one project is kept to it. The zero value refuses such tokens.
	within within
}

// within is how a route keeps a token to its project.
type within int

const (
	refused  within = iota // it is about more than jobs and runs
	harmless               // it shows nothing of any project, or the key in its path is proof enough
	byJob                  // the job in the path must be of the project
	byQuery                // the query's project is the token's
	byEngine               // the engine compares each job with the token's project
)

// rights says for every route which scope a token needs; open routes have none. A route that is not here can be used by no
// token at all, and a test fails.
var rights = map[string]right{
	"GET /cluster":       {core.ScopeRead, harmless},
	"POST /reconfigure":  {core.ScopeAdmin, refused},
	"GET /ca":            {core.ScopeRead, harmless},
	"POST /ca/rotate":    {core.ScopeAdmin, refused},
	"GET /seals":         {core.ScopeAdmin, refused},
	"POST /seals/rotate": {core.ScopeAdmin, refused},
	"GET /whoami":        {core.ScopeRead, harmless},
	"GET /audit":         {core.ScopeAdmin, refused},

	"POST /jobs":                             {core.ScopeSubmit, byEngine},
	"POST /jobs/try":                         {core.ScopeSubmit, byEngine},
	"GET /jobs":                              {core.ScopeRead, byQuery},
	"POST /jobs/cancel":                      {core.ScopeSubmit, byEngine},
	"GET /jobs/{id}":                         {core.ScopeRead, byJob},
	"PATCH /jobs/{id}":                       {core.ScopeSubmit, byJob},
	"GET /jobs/{id}/script":                  {core.ScopeRead, byJob},
	"GET /jobs/{id}/env":                     {core.ScopeRead, byJob},
	"GET /jobs/{id}/why":                     {core.ScopeRead, byJob},
	"GET /jobs/{id}/metrics":                 {core.ScopeRead, byJob},
	"GET /jobs/{id}/logs":                    {core.ScopeRead, byJob},
	"GET /jobs/{id}/steps":                   {core.ScopeRead, byJob},
	"POST /jobs/{id}/steps":                  {core.ScopeSubmit, byJob},
	"POST /jobs/{id}/release":                {core.ScopeSubmit, byJob},
	"GET /jobs/{id}/steps/{step}/attach":     {core.ScopeSubmit, byJob}, // a terminal may be typed into
	"GET /jobs/{id}/steps/{step}/resume":     {core.ScopeSubmit, byJob},
	"GET /streams/{key}":                     {core.ScopeSubmit, harmless},
	"GET /runs":                              {core.ScopeRead, byQuery},
	"POST /runs/{name}/stop":                 {core.ScopeSubmit, byQuery},
	"GET /watch":                             {core.ScopeRead, refused},
	"GET /nodes":                             {core.ScopeRead, refused},
	"GET /nodes/{name}":                      {core.ScopeRead, refused},
	"GET /nodes/{name}/events":               {core.ScopeRead, refused},
	"DELETE /nodes/{name}":                   {core.ScopeAdmin, refused},
	"PATCH /nodes/{name}":                    {core.ScopeAdmin, refused},
	"PATCH /partitions/{name}":               {core.ScopeAdmin, refused},
	"DELETE /partitions/{name}":              {core.ScopeAdmin, refused},
	"GET /plan":                              {core.ScopeRead, refused},
	"GET /licenses":                          {core.ScopeRead, refused},
	"GET /tokens":                            {core.ScopeRead, refused},
	"POST /tokens":                           {core.ScopeSubmit, refused},
	"POST /tokens/{id}/rotate":               {core.ScopeRead, harmless}, // see rotateToken: with less than submit only itself
	"DELETE /tokens/{id}":                    {core.ScopeRead, harmless}, // likewise
	"GET /users":                             {core.ScopeRead, refused},
	"POST /users":                            {core.ScopeAdmin, refused},
	"GET /users/{name}":                      {core.ScopeRead, refused},
	"PATCH /users/{name}":                    {core.ScopeAdmin, refused},
	"GET /projects":                          {core.ScopeRead, refused},
	"POST /projects":                         {core.ScopeAdmin, refused},
	"PATCH /projects/{project}":              {core.ScopeAdmin, refused},
	"DELETE /projects/{project}":             {core.ScopeAdmin, refused},
	"PUT /projects/{project}/members/{user}": {core.ScopeAdmin, refused},
	"GET /policy":                            {core.ScopeRead, refused},
	"PUT /policy":                            {core.ScopeAdmin, refused},
	"GET /qos":                               {core.ScopeRead, refused},
	"PUT /qos/{name}":                        {core.ScopeAdmin, refused},
	"DELETE /qos/{name}":                     {core.ScopeAdmin, refused},
	"GET /reservations":                      {core.ScopeRead, refused},
	"POST /reservations":                     {core.ScopeAdmin, refused},
	"GET /reservations/{name}":               {core.ScopeRead, refused},
	"PATCH /reservations/{name}":             {core.ScopeAdmin, refused},
	"DELETE /reservations/{name}":            {core.ScopeAdmin, refused},
	"GET /fleets":                            {core.ScopeRead, refused},
	"GET /fleets/{name}":                     {core.ScopeRead, refused},
	"PUT /fleets/{name}":                     {core.ScopeAdmin, refused},
	"DELETE /fleets/{name}":                  {core.ScopeAdmin, refused},
	"POST /fleets/{name}/trust":              {core.ScopeAdmin, refused},

	"GET /openapi.json": {core.ScopeRead, harmless},
	"GET /metrics":      {core.ScopeRead, refused},
	"GET /metrics/dcgm": {core.ScopeRead, refused},

	"GET /debug/pprof/{what...}": {core.ScopeAdmin, refused},
}

// withRights gives each route the right it asks for, and its place in the audit log.
func withRights(list []route) []route {
	for i := range list {
		rt := &list[i]
		rt.right, rt.audit = rights[rt.key()], audited[rt.key()]
	}
	return list
}

// key is a route's name in the tables of rights and of the audit log.
func (rt *route) key() string {
	path := rt.path
	if rt.native {
		path = path[len(base):]
	}
	return rt.method + " " + path
}

// allow checks that the token a call came with gives the right the route asks for.
func (a *API) allow(rt *route, r *http.Request, who *caller) error {
	if who == nil || who.token == nil {
		return nil
	}
	t := who.token
	if rt.right.scope == "" || !t.Has(rt.right.scope) {
		return core.Errorf(core.Denied, "this token (%s) has scope %s; %s %s needs %s: make one with `bireme token create --scope %s`",
			tokenName(t), t.ScopeText(), rt.method, rt.path, rt.right.scope, rt.right.scope).Because("token_scope")
	}
	if t.Project == "" {
		return nil
	}
	switch rt.right.within {
	case harmless, byEngine:
		return nil
	case byQuery:
		return a.limitQuery(r, t)
	case byJob:
		return a.limitJob(r, who)
	default:
		return core.Errorf(core.Denied, "this token (%s) is limited to the jobs and runs of project %s: %s %s is more than that",
			tokenName(t), t.Project, rt.method, rt.path).Because("token_scope")
	}
}

// limitQuery makes a listing one of the token's project.
func (a *API) limitQuery(r *http.Request, t *core.Token) error {
	q := r.URL.Query()
	for _, p := range q["project"] {
		if p != "" && p != string(t.Project) {
			return outsideProject(t)
		}
	}
	q.Set("project", string(t.Project))
	u := *r.URL
	u.RawQuery = url.Values(q).Encode()
	r.URL = &u
	return nil
}

// limitJob refuses a job of another project. What is not there is the handler's to tell.
func (a *API) limitJob(r *http.Request, who *caller) error {
	v, err := a.viewer(who)
	if err != nil {
		return err
	}
	t := who.token
	list, _, err := a.jobs.find(r.Context(), v, r.PathValue("id"), 0)
	if err != nil {
		return err
	}
	for _, j := range list {
		if j.Spec.Project != t.Project {
			return outsideProject(t)
		}
	}
	return nil
}

func outsideProject(t *core.Token) error {
	return core.Errorf(core.Denied, "this token (%s) is limited to project %s", tokenName(t), t.Project).Because("token_scope")
}
