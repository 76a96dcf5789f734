package sacct

import (
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
)

// setWindow gives the time that is looked at: with -j all of it, with -s this moment, else today.
func (q *query) setWindow(w *cmd.World, f cmd.Flags) error {
	now := w.Now()
	moment := func(option string) (time.Time, error) {
		t, err := grammar.ParseMoment(f.Get(option), now, grammar.Recent)
		if err != nil {
			return t, &slurm.Complaint{
				Lines: []string{cmd.BadMoment(f.Get(option), err)}, Exit: slurm.ExitError,
			}
		}
		return t, nil
	}
	var err error
	switch {
	case f.Has("starttime"):
		if q.q.Since, err = moment("starttime"); err != nil {
			return err
		}
	case len(q.q.IDs) > 0:
	case q.states != nil:
		q.q.Since = now
	default:
		q.q.Since = time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	}
	q.start, q.end = q.q.Since, now
	switch {
	case f.Has("endtime"):
		if q.q.Until, err = moment("endtime"); err != nil {
			return err
		}
		q.end = q.q.Until
	case q.states != nil && f.Has("starttime"):
		q.q.Until = q.q.Since // as Slurm: what was in that state at that moment
		q.end = q.q.Until
	}
	if layout := "2006-01-02T15:04:05"; q.start.After(q.end) {
		return fail(w, "Start time (%s) requested is after end time (%s).", q.start.Format(layout), q.end.Format(layout))
	}
	return nil
}

// sayWindow tells, with -v, what is looked at.
func (q *query) sayWindow(w *cmd.World) {
	const ctime = "Mon Jan _2 15:04:05 2006"
	what, from := "Eligible", "Epoch 0"
	if q.states != nil {
		what = q.stateNames
	}
	if !q.start.IsZero() {
		from = q.start.Format(ctime)
	}
	w.Infof("Jobs %s in the time window from %s to %s", what, from, q.end.Format(ctime))
}

// inWindow reports whether a job was eligible or, with -s, in one of the states at some time of the window. The server
// has left out what ended before it or was submitted after it.
func (q *query) inWindow(j *client.Job) bool {
	start, end := core.Time(0), core.At(q.end)
	if !q.start.IsZero() {
		start = core.At(q.start)
	}
	eligible := j.Eligible
	if j.Start == 0 && j.Flags.Held() {
		eligible = 0
	}
	if j.Start != 0 && (eligible == 0 || eligible > j.Start) {
		eligible = j.Start
	}
	if q.states == nil {
		return len(q.q.IDs) > 0 || eligible != 0 && eligible <= end
	}
	began := j.Start != 0 && j.Start <= end
	switch {
	case q.states.Match(core.Pending, 0) && eligible != 0 && eligible <= end &&
		(j.Start >= start && j.Start != 0 || j.Start == 0 && (j.End == 0 || j.End >= start)):
		return true
	case q.states.Match(core.Running, 0) && began && (j.End == 0 || j.End >= start):
		return true
	case !j.State.Final():
		return q.states.Match(j.State, 0) && j.State != core.Pending && j.State != core.Running
	}
	return q.states.Match(j.State, 0) && j.End >= start && j.End <= end
}
