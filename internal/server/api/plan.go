package api

import (
	"net/http"

	"bireme.dev/bireme/internal/client"
)

// plan tells what the scheduler wishes for.
func (a *API) plan(http.ResponseWriter, *http.Request, *caller) (any, error) {
	out := &client.Plan{Provision: []client.Provision{}}
	if p := a.Engine.Plan(); p != nil {
		out.Now = p.Now
		for _, x := range p.Provision {
			out.Provision = append(out.Provision, client.Provision(x))
		}
	}
	return out, nil
}
