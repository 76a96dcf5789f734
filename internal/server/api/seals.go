package api

import "net/http"

func (a *API) showSeals(_ http.ResponseWriter, r *http.Request, who *caller) (any, error) {
	return a.Seals(r.Context(), who.Identity, false)
}

func (a *API) rotateSeals(_ http.ResponseWriter, r *http.Request, who *caller) (any, error) {
	return a.Seals(r.Context(), who.Identity, true)
}
