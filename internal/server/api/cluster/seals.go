package cluster

import (
	"net/http"

	"bireme.dev/bireme/internal/server/api/call"
)

func (a *Cluster) ShowSeals(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	return a.Seals(r.Context(), who.Identity, false)
}

func (a *Cluster) RotateSeals(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	return a.Seals(r.Context(), who.Identity, true)
}
