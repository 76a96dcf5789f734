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

func (a *Runs) list(c *front.Call, in *listBody) (any, error) {
	l := &listing{look: a.look(c), in: in}
	l.WithJobs = in.IncludeJobs
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
		x, err := l.showWith(ctx, r, jobs[r.Jobs[0]])
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

// jobsOf finds the jobs of runs, those that have ended by one query.
func (l *look) jobsOf(ctx context.Context, list []*core.Run) (map[core.JobID]*core.Job, error) {
	out := map[core.JobID]*core.Job{}
	var ended []core.JobID
	for _, r := range list {
		if j, ok := l.c.Snap.Job(r.Jobs[0]); ok {
			out[j.ID] = j
		} else {
			ended = append(ended, r.Jobs[0])
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
		out[j.ID] = j
	}
	return out, nil
}

// slurmPrefix begins the name under which a job of another front end is shown: job-42.
const slurmPrefix = "job-"

// ofSlurm shows a job without a run as one.
func ofSlurm(j *core.Job) *core.Run {
	return &core.Run{
		Project: j.Spec.Project, Name: slurmPrefix + strconv.FormatInt(int64(j.ID), 10),
		ID: wire.RunKey(wire.UUID(wire.KindRun, "job "+strconv.FormatInt(int64(j.ID), 10))), User: j.Spec.User,
		Jobs: []core.JobID{j.ID}, Created: j.Submit, Ended: j.End,
	}
}

// slurmRuns are the live jobs of other front ends on the page. Jobs come in the order of their submission, so that only
// a page of them is turned into runs, however many wait.
func (l *listing) slurmRuns() (list []*core.Run) {
	var kept []*core.Job
	for j := range l.v.Jobs() {
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
		if r := ofSlurm(j); l.takes(r) {
			list = append(list, r)
		}
	}
	return list
}

// slurmJob finds a job of another front end by the name under which it is shown.
func (l *look) slurmJob(ctx context.Context, project core.ProjectName, name string) (*core.Job, bool) {
	number, ok := strings.CutPrefix(name, slurmPrefix)
	id, err := strconv.ParseInt(number, 10, 64)
	if !ok || err != nil || id <= 0 {
		return nil, false
	}
	j, err := l.job(ctx, &core.Run{Jobs: []core.JobID{core.JobID(id)}})
	if err != nil || j == nil || j.Spec.Run != "" || j.Spec.Project != project || !l.v.SeesJob(j) {
		return nil, false
	}
	return j, true
}
