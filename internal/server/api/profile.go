package api

import (
	"net/http"
	"net/http/pprof"
	"strings"

	"bireme.dev/bireme/internal/core"
)

// profile gives administrators the runtime's profiles, for `go tool pprof`: what an operator needs when a server is slow.
func (a *Cluster) profile(w http.ResponseWriter, r *http.Request, who *caller) (any, error) {
	if !who.Admin {
		return nil, core.Errorf(core.Denied, "only an administrator reads profiles").Because("access_denied")
	}
	switch strings.TrimPrefix(r.URL.Path, "/debug/pprof/") {
	case "profile":
		pprof.Profile(w, r)
	case "trace":
		pprof.Trace(w, r)
	default:
		pprof.Index(w, r)
	}
	return nil, nil
}
