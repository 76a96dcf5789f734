package api

import (
	"net"
	"net/http"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/proxy"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/api/steps"
)

// AdmitService decides whether a call may reach a service: it comes from a member of its project or an administrator.
// A token's project must be the service's.
func (a *API) AdmitService(r *http.Request, s *proxy.Service) (user string, err error) {
	who, err := a.proxied(r, s.Project)
	if err != nil {
		return "", err
	}
	return string(who.User), nil
}

// SeeModels decides whether a call may learn of a project's models.
func (a *API) SeeModels(r *http.Request, project core.ProjectName) error {
	_, err := a.proxied(r, project)
	return err
}

func (a *API) proxied(r *http.Request, project core.ProjectName) (*call.Caller, error) {
	who, err := a.identity.Identify(r)
	if err != nil {
		if much := a.AdmitUnknown(r); much != nil {
			return nil, much
		}
		return nil, err
	}
	a.Conns.Known(r.Context())
	if t := who.TokenRecord; t != nil && t.Project != "" && t.Project != project {
		return nil, core.Errorf(core.Denied, "Access denied")
	}
	scope := core.ScopeSubmit
	if r.Method == http.MethodHead || r.Method == http.MethodGet && r.Header.Get("Upgrade") == "" {
		scope = core.ScopeRead
	}
	if t := who.TokenRecord; t != nil && !t.Has(scope) {
		return nil, core.Errorf(core.Denied, "Access denied: the token lacks the scope %s", scope).Because("token_scope")
	}
	if !who.Admin && a.Engine.Snapshot().Role(who.User, project) == core.RoleNone {
		return nil, core.Errorf(core.Denied, "Access denied")
	}
	return who, nil
}

// serviceStream is a node's connection to a replica, or its word that there is none.
func (a *API) serviceStream(w http.ResponseWriter, r *http.Request, _ *call.Caller) (any, error) {
	n, err := a.streams.AgentOf(r)
	if err != nil {
		return nil, err
	}
	err = a.services.Lines.Joined(r.PathValue("token"), n.Name, r.URL.Query().Get("error"), func() (net.Conn, error) {
		return steps.Upgrade(w, r, "bireme-service")
	})
	return nil, err
}
