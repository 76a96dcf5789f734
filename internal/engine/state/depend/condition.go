package depend

import (
	"fmt"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
)

type conditionState uint8

const (
	conditionOpen conditionState = iota
	conditionMet
	conditionFailed
)

// evaluate evaluates a condition from live jobs and from what was noted in it.
func (d *Dependencies) evaluate(j *core.Job, n *core.Need) conditionState {
	switch {
	case n.Failed:
		return conditionFailed
	case n.Kind == core.NeedSingleton:
		for id := range d.index.SameName(j) {
			if o, ok := d.rec.Job(id); ok && submitOrder(o) < submitOrder(j) {
				return conditionOpen
			}
		}
		return conditionMet
	case n.Kind == core.NeedAfter:
		if d.targetIsPending(n) {
			return conditionOpen
		}
		return conditionMet
	case n.Kind != core.NeedAfterNotOK && n.Kind != core.NeedAfterAny && n.Bad:
		return conditionFailed // one that ended badly is enough
	case d.targetIsLive(n):
		return conditionOpen
	case n.Kind == core.NeedAfterNotOK && !n.Bad:
		return conditionFailed
	}
	return conditionMet
}

// targetStart is when what a need names started: now, unless it has been running.
func (d *Dependencies) targetStart(n *core.Need) core.Time {
	if t, ok := d.rec.Job(n.Job); ok && n.Task == 0 && t.Start != 0 {
		return t.Start
	}
	return d.rec.Now()
}

// targetIsLive reports whether something of what a condition names is live.
func (d *Dependencies) targetIsLive(n *core.Need) bool {
	if n.Task > 0 {
		_, ok := d.cluster.Tasks(n.Job)[n.Task-1]
		return ok || d.targetIsPending(n)
	}
	_, live := d.rec.Job(n.Job)
	return live || len(d.cluster.Tasks(n.Job)) > 0
}

// targetIsPending reports whether something of what a condition names has not started.
func (d *Dependencies) targetIsPending(n *core.Need) bool {
	j, live := d.rec.Job(n.Job)
	if n.Task == 0 {
		return live && j.State == core.Pending
	}
	if id, ok := d.cluster.Tasks(n.Job)[n.Task-1]; ok {
		t, ok := d.rec.Job(id)
		return ok && t.State == core.Pending
	}
	return live && j.IsArray() && j.Array.Tasks.Contains(int(n.Task-1))
}

// checkTargets refuses to wait for a job that never was, and tells which there are.
func (d *Dependencies) checkTargets(in *Lookup, needs *core.Needs) error {
	for i := range needs.Left {
		n := &needs.Left[i]
		known := !slices.Contains(in.Hidden, n.Job)
		if n.Job == 0 || known &&
			(d.targetIsLive(n) || d.index.HasEnding(n) ||
				slices.ContainsFunc(in.Ended, func(e *core.Job) bool { x := EndingOf(e); return x.Matches(n) })) {
			continue
		}
		name := fmt.Sprint(n.Job)
		if n.Task > 0 {
			name = fmt.Sprintf("%d_%d", n.Job, n.Task-1)
		}
		return core.Errorf(core.NotFound, "there is no job %s to wait for; %s", name,
			d.describeLiveJobs(in.User)).Because("invalid_dependency")
	}
	return nil
}

// describeLiveJobs words which jobs of a user are there.
func (d *Dependencies) describeLiveJobs(user core.UserName) string {
	const most = 8
	var ids []string
	more := 0
	for j := range d.rec.Jobs() {
		switch {
		case j.Spec.User != user:
		case len(ids) == most:
			more++
		default:
			ids = append(ids, fmt.Sprint(j.ID))
		}
	}
	switch {
	case len(ids) == 0:
		return "no job of " + string(user) + " waits or runs"
	case more > 0:
		return fmt.Sprintf("%d jobs of %s wait or run, the first are %s", len(ids)+more, user, strings.Join(ids, ", "))
	}
	return fmt.Sprintf("of %s there are %s", user, strings.Join(ids, ", "))
}
