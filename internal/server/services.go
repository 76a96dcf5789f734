package server

import (
	"net/http"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/proxy"
	"bireme.dev/bireme/internal/server/api"
	"bireme.dev/bireme/internal/server/hub"
	"bireme.dev/bireme/internal/server/services"
)

// newServices makes what keeps services going and passes their requests on. admit is the API, once there is one.
func newServices(d services.Deps, h *hub.Hub, admit func() *api.API) *services.Services {
	var s *services.Services
	d.Proxy = proxy.New(proxy.Config{
		Admit: func(r *http.Request, x *proxy.Service) (string, error) { return admit().AdmitService(r, x) },
		See:   func(r *http.Request, p core.ProjectName) error { return admit().SeeModels(r, p) },
		Woken: func(string) { s.Wake() },
	})
	d.Lines = services.NewLines()
	d.Ask = func(j *core.Job, port int32, token string) error {
		return (&hub.ServiceOrder{Job: j, Port: port, Token: token}).Send(h)
	}
	s = services.New(d)
	return s
}
