package nodes

import (
	"net/http"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/server/api/call"
)

// Plan returns what the scheduler wishes for.
func (a *Nodes) Plan(_ http.ResponseWriter, _ *http.Request, who *call.Caller) (any, error) {
	v, err := a.Viewer(who)
	if err != nil {
		return nil, err
	}
	out := &client.Plan{Provision: []client.Provision{}}
	if p := a.Engine.Plan(); p != nil {
		out.Now = p.Now
		for _, x := range p.Provision {
			if !v.SeesNodes() && x.Node != "" {
				continue
			}
			if _, ok := v.Job(x.For); !ok && !v.AllJobs() {
				continue // whose it is tells what for
			}
			out.Provision = append(out.Provision, client.Provision(x))
		}
	}
	return out, nil
}
