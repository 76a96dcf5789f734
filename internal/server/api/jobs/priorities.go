package jobs

import (
	"net/http"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/engine/state/live"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/api/selection"
	"bireme.dev/bireme/internal/server/api/view"
)

// Priorities lists what the priorities of waiting jobs are made of, a row for each partition of a job. Held jobs have
// none. Jobs whose usage is hidden from the caller are left out: fair-share follows from usage.
func (a *Jobs) Priorities(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	sel, err := selection.ParseSelection(r)
	if err != nil {
		return nil, err
	}
	done, err := a.Heavy(r.Context(), who)
	if err != nil {
		return nil, err
	}
	defer done()
	v, err := a.Viewer(who)
	if err != nil {
		return nil, err
	}
	sel.History, sel.Brief, sel.States = false, false, []core.JobState{core.Pending}
	list, next, err := a.page(r.Context(), v, sel)
	if err != nil {
		return nil, err
	}
	out := &client.PriorityList{
		Now: a.Now(v.Snap), Weights: weights(v.Snap), Jobs: []client.JobPriority{}, More: next != 0, Next: next,
	}
	for _, j := range list {
		if j.Priority != 0 && v.SeesUsage(j.Spec.User, j.Spec.Project) {
			out.Jobs = append(out.Jobs, prioritiesOf(v, sel, j)...)
		}
	}
	return out, nil
}

// prioritiesOf returns the rows of one job.
func prioritiesOf(v *view.Viewer, sel *selection.Selection, j *core.Job) (rows []client.JobPriority) {
	for part := range j.Spec.Partition.All() {
		if !sel.Partitions.Passes(part) {
			continue
		}
		row := client.JobPriority{
			ID: j.ID, User: j.Spec.User, Project: j.Spec.Project, Partition: part, QOS: j.Spec.QOS,
			Priority: *describePriority(j, v.Snap.FactorsIn(j, part), true),
		}
		rows = append(rows, row)
	}
	return rows
}

// weights are those of the settings, in the order of a job's factors; nil: first come, first served.
func weights(snap *state.Snapshot) (list []client.Factor) {
	k := snap.Ranking()
	if k == nil {
		return nil
	}
	for _, f := range live.Weights(k.Config) {
		list = append(list, client.Factor{Name: f.Name, Weight: f.Weight})
	}
	return list
}
