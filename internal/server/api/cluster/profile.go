package cluster

import (
	"net/http"
	"net/http/pprof"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/api/call"
)

// Profile serves the runtime's profiles to administrators, for `go tool pprof`: what an operator needs when a server is
// slow.
func (a *Cluster) Profile(w http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	if !who.Admin {
		return nil, core.Errorf(core.Denied, "only an administrator may read profiles").Because("access_denied")
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
