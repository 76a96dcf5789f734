package jobs

import (
	"errors"
	"net/http"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/limit"
)

// Try returns when and where a job would start; the components of a het job are looked at one by one.
func (a *Submissions) Try(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	s, err := a.readSubmit(r, who)
	if err != nil {
		return nil, err
	}
	in := &state.Submit{
		By: who.Identity, Spec: &s.Spec, Strict: s.Strict || a.Settings().Jobs.StrictSubmit,
		Groups: a.groupsOf(s.Spec.UID, true),
	}
	if a.Plugins.Active() {
		if err := a.ask(r, who, s, in); err != nil {
			return nil, err
		}
	}
	if err := a.endings(r.Context(), who, in); err != nil {
		return nil, err
	}
	if err := a.components(r, s, in, who); err != nil {
		return nil, err
	}
	v, err := a.Viewer(who)
	if err != nil {
		return nil, err
	}
	out := &client.Trials{}
	for _, spec := range append([]*core.Spec{in.Spec}, in.Components...) {
		one := *in
		one.Spec, one.Components = spec, nil
		j, look, err := a.Engine.Try(r.Context(), &one)
		// others are done soon
		if e := (*core.Error)(nil); errors.As(err, &e) && (e.Reason == "trials_per_user" || e.Reason == "trials") {
			return nil, &core.Error{
				Code: e.Code, Reason: e.Reason, Message: e.Message,
				Err: &limit.Excess{Limit: e.Reason, After: time.Second},
			}
		}
		if err != nil {
			return nil, err
		}
		t := client.Trial{
			ID: j.ID, Start: look.Start, Estimate: look.Estimate, Partition: look.Partition, CPUs: look.CPUs,
			Nodes:   foldNodes(look.Nodes),
			Waiting: look.Reason.Code, Why: v.Sentence(look.Reason.Text, j.ID), Preempts: v.JobIDs(look.Preempts),
		}
		out.Trials = append(out.Trials, t)
	}
	return out, nil
}
