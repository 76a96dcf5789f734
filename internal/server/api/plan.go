package api

import (
	"net/http"

	"bireme.dev/bireme/internal/client"
)

// plan tells what the scheduler wishes for.
func (a *Nodes) plan(_ http.ResponseWriter, _ *http.Request, who *caller) (any, error) {
	v, err := a.viewer(who)
	if err != nil {
		return nil, err
	}
	out := &client.Plan{Provision: []client.Provision{}}
	if p := a.Engine.Plan(); p != nil {
		out.Now = p.Now
		for _, x := range p.Provision {
			if !v.seesNodes() && x.Node != "" {
				continue
			}
			if _, ok := v.job(x.For); !ok && !v.allJobs() {
				continue // whose it is tells what for
			}
			out.Provision = append(out.Provision, client.Provision(x))
		}
	}
	return out, nil
}
