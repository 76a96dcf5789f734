package jobs

import (
	"context"
	"encoding/json"
	"net/http"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/api/selection"
	"bireme.dev/bireme/internal/store"
)

// components makes the further components of a het job its caller's, each with its first one's environment.
func (a *Submissions) components(r *http.Request, s *submission, in *state.Submit, who *call.Caller) error {
	for i := range s.Components {
		c := &s.Components[i]
		text, err := json.Marshal(c)
		if err != nil {
			return err
		}
		s.specSize += len(text)
		if err := a.own(r, c, who); err != nil {
			return err
		}
		c.User, c.UID, c.GID, c.Kind, c.Script, c.Env = in.Spec.User, in.Spec.UID, in.Spec.GID, in.Spec.Kind, core.Hash{},
			in.Spec.Env
		if c.Extra != nil {
			c.Extra.Files = core.Hash{}
		}
		in.Components = append(in.Components, c)
	}
	return nil
}

// addComponents lets a query for the first component of a het job that has ended find the others too.
func (a *Jobs) addComponents(ctx context.Context, sel *selection.Selection, q *store.JobQuery) error {
	var whole []core.JobID
	for _, f := range sel.Refs {
		if f.Tasks.Empty() && !f.Part {
			whole = append(whole, f.Id)
		}
	}
	if len(whole) == 0 {
		return nil
	}
	found, err := a.Store.Jobs(ctx, store.JobQuery{IDs: whole})
	if err != nil {
		return call.StoreError(err)
	}
	for _, j := range found {
		if ref := j.Spec.More().Het; ref != nil && ref.Offset == 0 {
			for k := int32(1); k < min(ref.Count, MaxStepParts); k++ {
				q.IDs = append(q.IDs, ref.Lead+core.JobID(k))
			}
		}
	}
	return nil
}

// goesWithFirst reports whether a change to a whole het job is made to a component by changing its first one.
func goesWithFirst(in *client.Update, j *core.Job) bool {
	ref := j.Spec.More().Het
	return ref != nil && ref.Offset > 0 && (in.Hold != nil || in.Priority != nil || in.Dependency != nil || in.Requeue ||
		in.Suspend != nil)
}

// MaxStepParts bounds the components of a het job, and with them the parts of a step.
const MaxStepParts = 128
