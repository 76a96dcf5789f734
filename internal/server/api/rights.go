package api

import (
	"net/http"
	"net/url"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/api/call"
)

// rights says for every route which scope a token needs; open routes have none. A route that is not here can be used
// by no token at all, and a test fails.
var rights = map[string]call.Right{
	"GET /cluster":           {Scope: core.ScopeRead, Within: call.Harmless},
	"GET /servers":           {Scope: core.ScopeRead, Within: call.Harmless},
	"POST /servers/stepdown": {Scope: core.ScopeAdmin},
	"POST /reconfigure":      {Scope: core.ScopeAdmin},
	"POST /history":          {Scope: core.ScopeAdmin},
	"GET /ca":                {Scope: core.ScopeRead, Within: call.Harmless},
	"POST /ca/rotate":        {Scope: core.ScopeAdmin},
	"GET /seals":             {Scope: core.ScopeAdmin},
	"POST /seals/rotate":     {Scope: core.ScopeAdmin},
	"GET /whoami":            {Scope: core.ScopeRead, Within: call.Harmless},
	"GET /diag":              {Scope: core.ScopeRead},
	"POST /diag/reset":       {Scope: core.ScopeAdmin},
	"GET /audit":             {Scope: core.ScopeAdmin},

	"POST /jobs":                        {Scope: core.ScopeSubmit, Within: call.ByEngine},
	"POST /jobs/try":                    {Scope: core.ScopeSubmit, Within: call.ByEngine},
	"GET /jobs":                         {Scope: core.ScopeRead, Within: call.ByQuery},
	"GET /priorities":                   {Scope: core.ScopeRead, Within: call.ByQuery},
	"POST /jobs/cancel":                 {Scope: core.ScopeSubmit, Within: call.ByEngine},
	"GET /jobs/{id}":                    {Scope: core.ScopeRead, Within: call.ByJob},
	"PATCH /jobs/{id}":                  {Scope: core.ScopeSubmit, Within: call.ByJob},
	"GET /jobs/{id}/script":             {Scope: core.ScopeRead, Within: call.ByJob},
	"GET /jobs/{id}/env":                {Scope: core.ScopeRead, Within: call.ByJob},
	"GET /jobs/{id}/why":                {Scope: core.ScopeRead, Within: call.ByJob},
	"GET /jobs/{id}/metrics":            {Scope: core.ScopeRead, Within: call.ByJob},
	"GET /jobs/{id}/logs":               {Scope: core.ScopeRead, Within: call.ByJob},
	"GET /jobs/{id}/steps":              {Scope: core.ScopeRead, Within: call.ByJob},
	"POST /jobs/{id}/steps":             {Scope: core.ScopeSubmit, Within: call.ByJob},
	"GET /jobs/{id}/steps/{step}/usage": {Scope: core.ScopeRead, Within: call.ByJob},
	"POST /jobs/{id}/release":           {Scope: core.ScopeSubmit, Within: call.ByJob},
	// a terminal may be typed into
	"PATCH /jobs/{id}/steps/{step}":      {Scope: core.ScopeSubmit, Within: call.ByJob},
	"GET /jobs/{id}/steps/{step}/attach": {Scope: core.ScopeSubmit, Within: call.ByJob},
	"GET /jobs/{id}/steps/{step}/resume": {Scope: core.ScopeSubmit, Within: call.ByJob},
	"GET /streams/{key}":                 {Scope: core.ScopeSubmit, Within: call.Harmless},
	"GET /runs":                          {Scope: core.ScopeRead, Within: call.ByQuery},
	"POST /runs/{name}/stop":             {Scope: core.ScopeSubmit, Within: call.ByQuery},
	"GET /watch":                         {Scope: core.ScopeRead},
	"GET /nodes":                         {Scope: core.ScopeRead},
	"GET /nodes/{name}":                  {Scope: core.ScopeRead},
	"GET /nodes/{name}/events":           {Scope: core.ScopeRead},
	"DELETE /nodes/{name}":               {Scope: core.ScopeAdmin},
	"PATCH /nodes/{name}":                {Scope: core.ScopeAdmin},
	"PATCH /partitions/{name}":           {Scope: core.ScopeAdmin},
	"DELETE /partitions/{name}":          {Scope: core.ScopeAdmin},
	"GET /plan":                          {Scope: core.ScopeRead},
	"GET /licenses":                      {Scope: core.ScopeRead},
	"GET /tokens":                        {Scope: core.ScopeRead},
	"POST /tokens":                       {Scope: core.ScopeSubmit},
	"POST /tokens/jwt":                   {Scope: core.ScopeRead, Within: call.Harmless}, // it keeps the token's limits
	// see rotateToken: with less than submit only itself
	"POST /tokens/jwt/revoke":                   {Scope: core.ScopeSubmit},
	"POST /tokens/{id}/rotate":                  {Scope: core.ScopeRead, Within: call.Harmless},
	"DELETE /tokens/{id}":                       {Scope: core.ScopeRead, Within: call.Harmless}, // likewise
	"GET /users":                                {Scope: core.ScopeRead},
	"POST /users":                               {Scope: core.ScopeAdmin},
	"GET /users/{name}":                         {Scope: core.ScopeRead},
	"PATCH /users/{name}":                       {Scope: core.ScopeAdmin},
	"GET /shares":                               {Scope: core.ScopeRead},
	"GET /usage":                                {Scope: core.ScopeRead},
	"GET /outages":                              {Scope: core.ScopeRead},
	"DELETE /users/{name}":                      {Scope: core.ScopeAdmin},
	"POST /users/{name}/take":                   {Scope: core.ScopeAdmin},
	"GET /projects":                             {Scope: core.ScopeRead},
	"POST /projects":                            {Scope: core.ScopeAdmin},
	"PATCH /projects/{project}":                 {Scope: core.ScopeAdmin},
	"DELETE /projects/{project}":                {Scope: core.ScopeAdmin},
	"PUT /projects/{project}/members/{user}":    {Scope: core.ScopeAdmin},
	"GET /projects/{project}/secrets":           {Scope: core.ScopeSubmit, Within: call.ByPath},
	"GET /projects/{project}/secrets/{name}":    {Scope: core.ScopeSubmit, Within: call.ByPath},
	"PUT /projects/{project}/secrets/{name}":    {Scope: core.ScopeSubmit, Within: call.ByPath},
	"DELETE /projects/{project}/secrets/{name}": {Scope: core.ScopeSubmit, Within: call.ByPath},
	"GET /policy":                               {Scope: core.ScopeRead},
	"PUT /policy":                               {Scope: core.ScopeAdmin},
	"GET /qos":                                  {Scope: core.ScopeRead},
	"PUT /qos/{name}":                           {Scope: core.ScopeAdmin},
	"DELETE /qos/{name}":                        {Scope: core.ScopeAdmin},
	"GET /reservations":                         {Scope: core.ScopeRead},
	"POST /reservations":                        {Scope: core.ScopeAdmin},
	"GET /reservations/{name}":                  {Scope: core.ScopeRead},
	"PATCH /reservations/{name}":                {Scope: core.ScopeAdmin},
	"DELETE /reservations/{name}":               {Scope: core.ScopeAdmin},
	"GET /triggers":                             {Scope: core.ScopeRead},
	"POST /triggers":                            {Scope: core.ScopeAdmin}, // a program on the server's host
	"POST /triggers/clear":                      {Scope: core.ScopeAdmin},
	"GET /fleets":                               {Scope: core.ScopeRead},
	"GET /fleets/{name}":                        {Scope: core.ScopeRead},
	"PUT /fleets/{name}":                        {Scope: core.ScopeAdmin},
	"DELETE /fleets/{name}":                     {Scope: core.ScopeAdmin},
	"POST /fleets/{name}/trust":                 {Scope: core.ScopeAdmin},

	"GET /openapi.json": {Scope: core.ScopeRead, Within: call.Harmless},
	"GET /metrics":      {Scope: core.ScopeRead},
	"GET /metrics/dcgm": {Scope: core.ScopeRead},

	"GET /debug/pprof/{what...}": {Scope: core.ScopeAdmin},
}

// withRights sets the right that each route asks for, and its place in the audit log.
func withRights(list []call.Route) []call.Route {
	for i := range list {
		rt := &list[i]
		rt.Right, rt.Audit = rights[rt.Key()], audited[rt.Key()]
	}
	return list
}

// allow checks that the token a call came with gives the right the route asks for.
func (a *API) allow(rt *call.Route, r *http.Request, who *call.Caller) error {
	if who == nil || who.TokenRecord == nil {
		return nil
	}
	t := who.TokenRecord
	if rt.Right.Scope == "" || !t.Has(rt.Right.Scope) {
		return core.Errorf(core.Denied,
			"this token (%s) has scope %s; %s %s needs %s: make one with `bireme token create --scope %s`",
			call.TokenName(t), t.ScopeText(), rt.Method, rt.Path, rt.Right.Scope, rt.Right.Scope).Because("token_scope")
	}
	if t.Project == "" {
		return nil
	}
	switch rt.Right.Within {
	case call.Harmless, call.ByEngine:
		return nil
	case call.ByQuery:
		return a.limitQuery(r, t)
	case call.ByJob:
		return a.limitJob(r, who)
	case call.ByPath:
		if r.PathValue("project") != string(t.Project) {
			return call.OutsideProject(t)
		}
		return nil
	default:
		return core.Errorf(core.Denied,
			"this token (%s) is limited to the jobs and runs of project %s: %s %s is more than that",
			call.TokenName(t), t.Project, rt.Method, rt.Path).Because("token_scope")
	}
}

// limitQuery makes a listing one of the token's project.
func (a *API) limitQuery(r *http.Request, t *core.Token) error {
	q := r.URL.Query()
	for _, p := range q["project"] {
		if p != "" && p != string(t.Project) {
			return call.OutsideProject(t)
		}
	}
	q.Set("project", string(t.Project))
	u := *r.URL
	u.RawQuery = url.Values(q).Encode()
	r.URL = &u
	return nil
}

// limitJob refuses a job of another project. What is not there is the handler's to tell.
func (a *API) limitJob(r *http.Request, who *call.Caller) error {
	v, err := a.Viewer(who)
	if err != nil {
		return err
	}
	t := who.TokenRecord
	list, _, err := a.jobs.Find(r.Context(), v, r.PathValue("id"), 0)
	if err != nil {
		return err
	}
	for _, j := range list {
		if j.Spec.Project != t.Project {
			return call.OutsideProject(t)
		}
	}
	return nil
}
