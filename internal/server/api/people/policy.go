package people

import (
	"net/http"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/api/call"
)

func (a *People) Policy(_ http.ResponseWriter, _ *http.Request, who *call.Caller) (any, error) {
	v, err := a.Viewer(who)
	if err != nil {
		return nil, err
	}
	return v.Policy(), nil
}

func (a *People) ApplyPolicy(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	var in client.ApplyPolicy
	if err := call.Decode(r, &in); err != nil {
		return nil, err
	}
	return engine.Do(r.Context(), a.Engine, &state.ApplyPolicy{
		By: who.Identity, Policy: in.Policy, Prune: in.Prune, Force: in.Force, Dry: in.DryRun,
	})
}

func (a *People) ListQOS(_ http.ResponseWriter, _ *http.Request, who *call.Caller) (any, error) {
	v, err := a.Viewer(who)
	if err != nil {
		return nil, err
	}
	return &client.QOSList{QOS: v.Policy().QOS}, nil
}

func (a *People) PutQOS(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	var q core.QOS
	if err := call.Decode(r, &q); err != nil {
		return nil, err
	}
	q.Name = core.QOSName(r.PathValue("name"))
	if _, err := engine.Do(r.Context(), a.Engine, &state.PutQOS{By: who.Identity, QOS: &q}); err != nil {
		return nil, err
	}
	return call.OK{}, nil
}

func (a *People) DropQOS(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	if r.PathValue("name") == "normal" && a.Config.Accounting.NormalQOS {
		return nil, core.Errorf(core.Conflict, "QOS normal cannot be removed: it is the default").Because("qos_in_use")
	}
	if _, err := engine.Do(r.Context(), a.Engine,
		&state.DropQOS{By: who.Identity, Name: core.QOSName(r.PathValue("name"))}); err != nil {
		return nil, err
	}
	return call.OK{}, nil
}

func (a *People) DropProject(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	in := &state.DropProject{By: who.Identity, Name: core.ProjectName(r.PathValue("project"))}
	if _, err := engine.Do(r.Context(), a.Engine, in); err != nil {
		return nil, err
	}
	return call.OK{}, nil
}
