package api

import (
	"net/http"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/engine/state"
)

func (a *People) policy(_ http.ResponseWriter, _ *http.Request, who *caller) (any, error) {
	v, err := a.viewer(who)
	if err != nil {
		return nil, err
	}
	return v.policy(), nil
}

func (a *People) applyPolicy(_ http.ResponseWriter, r *http.Request, who *caller) (any, error) {
	var in client.ApplyPolicy
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	return engine.Do(r.Context(), a.Engine, &state.ApplyPolicy{
		By: who.Identity, Policy: in.Policy, Prune: in.Prune, Force: in.Force, Dry: in.DryRun,
	})
}

func (a *People) listQOS(_ http.ResponseWriter, _ *http.Request, who *caller) (any, error) {
	v, err := a.viewer(who)
	if err != nil {
		return nil, err
	}
	return &client.QOSList{QOS: v.policy().QOS}, nil
}

func (a *People) putQOS(_ http.ResponseWriter, r *http.Request, who *caller) (any, error) {
	var q core.QOS
	if err := decode(r, &q); err != nil {
		return nil, err
	}
	q.Name = core.QOSName(r.PathValue("name"))
	if _, err := engine.Do(r.Context(), a.Engine, &state.PutQOS{By: who.Identity, QOS: &q}); err != nil {
		return nil, err
	}
	return okBody{}, nil
}

func (a *People) dropQOS(_ http.ResponseWriter, r *http.Request, who *caller) (any, error) {
	if r.PathValue("name") == "normal" && a.Config.Accounting.NormalQOS {
		return nil, core.Errorf(core.Conflict, "QOS normal stays: jobs have it that name none").Because("qos_in_use")
	}
	if _, err := engine.Do(r.Context(), a.Engine,
		&state.DropQOS{By: who.Identity, Name: core.QOSName(r.PathValue("name"))}); err != nil {
		return nil, err
	}
	return okBody{}, nil
}

func (a *People) dropProject(_ http.ResponseWriter, r *http.Request, who *caller) (any, error) {
	in := &state.DropProject{By: who.Identity, Name: core.ProjectName(r.PathValue("project"))}
	if _, err := engine.Do(r.Context(), a.Engine, in); err != nil {
		return nil, err
	}
	return okBody{}, nil
}
