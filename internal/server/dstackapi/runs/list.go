package runs

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/wire"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/dstackapi/front"
	"bireme.dev/bireme/internal/store"
)

type listBody struct {
	ProjectName         *string `json:"project_name"`
	RepoID              *string `json:"repo_id"`
	Username            *string `json:"username"`
	OnlyActive          bool    `json:"only_active"`
	IncludeJobs         bool    `json:"include_jobs"`
	JobSubmissionsLimit *int    `json:"job_submissions_limit" in:"ge=0,le=10"`
	PrevSubmittedAt     *string `json:"prev_submitted_at" in:"time"`
	PrevRunID           *string `json:"prev_run_id" in:"uuid"`
	Limit               int     `json:"limit" in:"ge=1,le=100"`
	Ascending           bool    `json:"ascending"`
}

// Defaults sets what a client leaves out.
func (b *listBody) Defaults() { b.IncludeJobs, b.Limit = true, 100 }

// listing is a page of runs that is asked for.
type listing struct {
	*look
	in       *listBody
	projects []core.ProjectName
	after    core.Time
	afterID  string
}

// maxListed is about how many bytes the jobs of one list may have.
const maxListed = 64 << 20

func (a *Runs) list(c *front.Call, in *listBody) (any, error) {
	l := &listing{look: a.look(c), in: in}
	left := int64(maxListed)
	l.WithJobs, l.Left = in.IncludeJobs, &left
	if in.JobSubmissionsLimit != nil {
		l.Submissions = *in.JobSubmissionsLimit
	}
	var err error
	if l.projects, err = visible(c, in.ProjectName); err != nil {
		return nil, err
	}
	if in.PrevSubmittedAt != nil {
		l.after, _ = wire.ParseTime(*in.PrevSubmittedAt) // its form was checked
		if in.PrevRunID != nil {
			l.afterID = wire.RunKey(*in.PrevRunID)
		}
	}
	list, err := l.runs(c.Context())
	if err != nil {
		return nil, err
	}
	return l.showAll(c.Context(), list)
}

// visible names the projects whose runs the caller asks for and may see.
func visible(c *front.Call, name *string) ([]core.ProjectName, error) {
	only := core.ProjectName("")
	if c.TokenRecord != nil {
		only = c.TokenRecord.Project
	}
	list := []core.ProjectName{}
	if name != nil {
		p, ok := c.Snap.Project(core.ProjectName(*name))
		if !ok {
			return nil, front.ErrNotExists()
		}
		if c.RoleIn(p) == core.RoleNone || only != "" && only != p.Name {
			return nil, front.ErrForbidden()
		}
		return append(list, p.Name), nil
	}
	for _, p := range c.Snap.Projects() {
		if c.RoleIn(p) != core.RoleNone && (only == "" || only == p.Name) {
			list = append(list, p.Name)
		}
	}
	return list, nil
}

// takes reports whether a run is on the page or beyond.
func (l *listing) takes(r *core.Run) bool {
	if l.in.Username != nil && *l.in.Username != string(r.User) || !slices.Contains(l.projects, r.Project) ||
		!l.v.SeesRun(r) {
		return false
	}
	if l.after == 0 {
		return true
	}
	n := cmp.Or(cmp.Compare(r.Created, l.after), strings.Compare(r.ID, l.afterID))
	return n < 0 && !l.in.Ascending || n > 0 && l.in.Ascending
}

// runs gives the page: open runs and jobs of other front ends from memory, ended runs from the store.
func (l *listing) runs(ctx context.Context) ([]*core.Run, error) {
	var list []*core.Run
	if l.in.OnlyActive {
		for _, r := range l.c.Snap.Runs() {
			if l.takes(r) {
				list = append(list, r)
			}
		}
	} else {
		var err error
		if list, err = l.fromStore(ctx); err != nil {
			return nil, err
		}
	}
	list = append(list, l.slurmRuns()...)
	slices.SortFunc(list, func(a, b *core.Run) int {
		n := cmp.Or(cmp.Compare(a.Created, b.Created), strings.Compare(a.ID, b.ID))
		if l.in.Ascending {
			return n
		}
		return -n
	})
	return list[:min(len(list), l.in.Limit)], nil
}

// maxPages bounds how much of the history is read for one page of one user's runs.
const maxPages = 50

func (l *listing) fromStore(ctx context.Context) (list []*core.Run, err error) {
	q := store.RunQuery{
		Projects: l.projects, Before: l.after, BeforeID: l.afterID, Oldest: l.in.Ascending, Limit: l.in.Limit,
	}
	for range maxPages {
		page, err := l.a.Store.Runs(ctx, q)
		if err != nil {
			return nil, call.StoreError(err)
		}
		for _, r := range page {
			if open, ok := l.c.Snap.Run(r.Project, r.Name); ok && open.ID == r.ID {
				r = open
			}
			if l.takes(r) {
				list = append(list, r)
			}
		}
		if len(page) < q.Limit || len(list) >= l.in.Limit {
			break
		}
		last := page[len(page)-1]
		q.Before, q.BeforeID = last.Created, last.ID
	}
	return list, nil
}

func (l *listing) showAll(ctx context.Context, list []*core.Run) ([]*wire.Run, error) {
	jobs, err := l.jobsOf(ctx, list)
	if err != nil {
		return nil, err
	}
	out := make([]*wire.Run, 0, len(list))
	type name struct {
		project core.ProjectName
		name    string
	}
	newer := map[name]bool{}
	for _, r := range list {
		x, err := l.showWith(ctx, r, jobs[r.ID])
		if err != nil {
			return nil, err
		}
		key := name{r.Project, r.Name}
		if open, ok := l.c.Snap.Run(r.Project, r.Name); ok && open.ID != r.ID || newer[key] && !l.in.Ascending {
			x.Deleted = true // another run has its name now
		}
		newer[key] = true
		out = append(out, x)
	}
	return out, nil
}

// jobsOf finds the jobs by which runs are judged, by the runs' ids; those that have ended by one query.
func (l *look) jobsOf(ctx context.Context, list []*core.Run) (map[string]*core.Job, error) {
	out := map[string]*core.Job{}
	var ended []core.JobID
	of := map[core.JobID]string{}
	for _, r := range list {
		if j := l.v.LiveRunJob(r); j != nil {
			out[r.ID] = j
		} else if id := r.DecidingJob(); id != 0 {
			ended = append(ended, id)
			of[id] = r.ID
		}
	}
	if len(ended) == 0 {
		return out, nil
	}
	found, err := l.a.Store.Jobs(ctx, store.JobQuery{IDs: ended, Exact: true, Limit: len(ended)})
	if err != nil {
		return nil, call.StoreError(err)
	}
	for _, j := range found {
		out[of[j.ID]] = j
	}
	return out, nil
}

// slurmPrefix begins the name under which a job of another front end is shown: job-42.
const slurmPrefix = "job-"

// ofSlurm shows a job without a run, or an array of such jobs, as one of the given number.
func ofSlurm(number core.JobID, j *core.Job) *core.Run {
	text := strconv.FormatInt(int64(number), 10)
	return &core.Run{
		Project: j.Spec.Project, Name: slurmPrefix + text, ID: wire.RunKey(wire.UUID(wire.KindRun, "job "+text)),
		User: j.Spec.User, Jobs: []core.JobID{number}, Created: j.Submit, Ended: j.End,
	}
}

// slurmRuns are the live jobs of other front ends on the page. Jobs come in the order of their submission, so that only
// a page of them is turned into runs, however many wait.
func (l *listing) slurmRuns() (list []*core.Run) {
	var kept []*core.Job
	arrays := map[core.JobID]bool{}
	for j := range l.v.Jobs() {
		if j.Array != nil && j.Spec.Run == "" {
			if arrays[j.Array.Base] {
				continue
			}
			arrays[j.Array.Base] = true
		}
		if j.Spec.Run != "" || !slices.Contains(l.projects, j.Spec.Project) || l.in.Username != nil &&
			*l.in.Username != string(j.Spec.User) {
			continue
		}
		if l.in.Ascending && (j.Submit < l.after || len(kept) > 2*l.in.Limit) ||
			!l.in.Ascending && l.after != 0 && j.Submit > l.after {
			continue
		}
		if kept = append(kept, j); !l.in.Ascending && len(kept) > 4*l.in.Limit {
			kept = append(kept[:0], kept[len(kept)-2*l.in.Limit:]...)
		}
	}
	for _, j := range kept {
		number := j.ID
		if j.Array != nil {
			number = j.Array.Base
		}
		if r := ofSlurm(number, j); l.takes(r) {
			list = append(list, r)
		}
	}
	return list
}

// slurmRun finds a job of another front end by the name under which it is shown.
func (l *look) slurmRun(ctx context.Context, project core.ProjectName, name string) (*core.Run, bool) {
	number, ok := strings.CutPrefix(name, slurmPrefix)
	id, err := strconv.ParseInt(number, 10, 64)
	if !ok || err != nil || id <= 0 {
		return nil, false
	}
	j, err := l.slurmRecord(ctx, core.JobID(id))
	if err != nil || j == nil || j.Spec.Run != "" || j.Spec.Project != project || !l.v.SeesJob(j) {
		return nil, false
	}
	r := ofSlurm(core.JobID(id), j)
	if j.Live() {
		r.Ended = 0
	}
	return r, true
}

// slurmRecord is the job of an id; of an array the task by which it is judged: a live one, else the first that failed,
// else the first that was stopped.
func (l *look) slurmRecord(ctx context.Context, id core.JobID) (*core.Job, error) {
	if j := l.v.LiveArrayJob(id); j != nil {
		return j, nil
	}
	list, err := l.a.Store.Jobs(ctx, store.JobQuery{IDs: []core.JobID{id}})
	if err != nil {
		return nil, call.StoreError(err)
	}
	list = slices.DeleteFunc(list, func(j *core.Job) bool { return j.Array == nil && j.ID != id })
	if len(list) == 0 {
		return nil, nil
	}
	return slices.MinFunc(list, func(a, b *core.Job) int {
		return cmp.Or(endRank(a)-endRank(b), cmp.Compare(a.End, b.End), cmp.Compare(a.ID, b.ID))
	}), nil
}

// endRank orders the ends of an array's tasks: the lowest decides how the array ended.
func endRank(j *core.Job) int {
	switch j.RunTermination() {
	case core.EndNone, core.RunEndJobsDone:
		return 2
	case core.RunEndStopped, core.RunEndAborted:
		return 1
	default:
		return 0
	}
}
