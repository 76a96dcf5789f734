package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state"
)

// decodeStrict is decode for what is written by hand: a field nobody knows is a fault, and not passed over.
func decodeStrict(r *http.Request, v any) error {
	b, err := readBody(r, maxBody)
	if err != nil {
		return err
	}
	defer putBody(b)
	if err := unmarshal(b.Bytes(), v); err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(b.Bytes()))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		what := strings.TrimPrefix(err.Error(), "json: ")
		e := core.Errorf(core.Invalid, "the request is not the JSON that is wanted: %s: %s", position(b.Bytes(), dec.InputOffset()), what).Because("bad_json")
		e.Faults = []core.Fault{{Path: position(b.Bytes(), dec.InputOffset()), Message: what}}
		return e
	}
	return nil
}

func (a *API) policy(http.ResponseWriter, *http.Request, *caller) (any, error) {
	snap, err := a.snapshot()
	if err != nil {
		return nil, err
	}
	return snap.Policy(), nil
}

func (a *API) applyPolicy(_ http.ResponseWriter, r *http.Request, who *caller) (any, error) {
	var in client.ApplyPolicy
	if err := decodeStrict(r, &in); err != nil {
		return nil, err
	}
	return a.Engine.Do(r.Context(), &state.ApplyPolicy{
		By: who.Identity, Policy: in.Policy, Prune: in.Prune, Force: in.Force, Dry: in.DryRun,
	})
}

func (a *API) listQOS(http.ResponseWriter, *http.Request, *caller) (any, error) {
	snap, err := a.snapshot()
	if err != nil {
		return nil, err
	}
	return &client.QOSList{QOS: snap.Policy().QOS}, nil
}

func (a *API) putQOS(_ http.ResponseWriter, r *http.Request, who *caller) (any, error) {
	var q core.QOS
	if err := decodeStrict(r, &q); err != nil {
		return nil, err
	}
	q.Name = core.QOSName(r.PathValue("name"))
	if _, err := a.Engine.Do(r.Context(), &state.PutQOS{By: who.Identity, QOS: &q}); err != nil {
		return nil, err
	}
	return okBody{}, nil
}

func (a *API) dropQOS(_ http.ResponseWriter, r *http.Request, who *caller) (any, error) {
	if r.PathValue("name") == "normal" && a.Config.Accounting.NormalQOS {
		return nil, core.Errorf(core.Conflict, "QOS normal stays: jobs have it that name none").Because("qos_in_use")
	}
	if _, err := a.Engine.Do(r.Context(), &state.DropQOS{By: who.Identity, Name: core.QOSName(r.PathValue("name"))}); err != nil {
		return nil, err
	}
	return okBody{}, nil
}

func (a *API) dropProject(_ http.ResponseWriter, r *http.Request, who *caller) (any, error) {
	in := &state.DropProject{By: who.Identity, Name: core.ProjectName(r.PathValue("project"))}
	if _, err := a.Engine.Do(r.Context(), in); err != nil {
		return nil, err
	}
	return okBody{}, nil
}
