package api

import "net/http"

func (a *Cluster) showSeals(_ http.ResponseWriter, r *http.Request, who *caller) (any, error) {
	return a.Seals(r.Context(), who.Identity, false)
}

func (a *Cluster) rotateSeals(_ http.ResponseWriter, r *http.Request, who *caller) (any, error) {
	return a.Seals(r.Context(), who.Identity, true)
}
