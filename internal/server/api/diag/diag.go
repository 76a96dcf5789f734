package diag

import (
	"cmp"
	"net/http"
	"slices"
	"sync"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/server/api/call"
)

// Diag counts and answers.
type Diag struct {
	*call.Base

	mu     sync.Mutex
	since  core.Time
	jobs   client.JobCounts
	base   engine.Stats // the engine's figures at the last reset
	routes map[string]*tally
	users  map[core.UserName]*tally
}

// tally is a number of calls and the time they took.
type tally struct {
	uid   uint32
	count int64
	took  time.Duration
}

// maxUsers bounds the users that are counted one by one: names come from callers who were let in.
const maxUsers = 10_000

// New counts from now on.
func New(b *call.Base) *Diag {
	d := &Diag{Base: b}
	d.reset()
	return d
}

func (d *Diag) reset() {
	d.since, d.jobs, d.base = core.At(time.Now()), client.JobCounts{}, d.Engine.Stats()
	d.routes, d.users = map[string]*tally{}, map[core.UserName]*tally{}
}

// Called counts a call.
func (d *Diag) Called(rt *call.Route, who *call.Caller, took time.Duration) {
	if rt.Lasts != 0 { // a stream lasts as long as its reader likes
		took = 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	add(d.routes, rt.Key(), took)
	if who == nil || who.User == "" || d.users[who.User] == nil && len(d.users) >= maxUsers {
		return
	}
	t := add(d.users, who.User, took)
	if who.UserRecord != nil && who.UserRecord.UID != nil {
		t.uid = *who.UserRecord.UID
	}
}

func add[K comparable](to map[K]*tally, key K, took time.Duration) *tally {
	t := to[key]
	if t == nil {
		t = &tally{}
		to[key] = t
	}
	t.count++
	t.took += took
	return t
}

// Committed counts what a commit did to jobs.
func (d *Diag) Committed(p *engine.Published) {
	var submitted, ended map[core.JobID]bool
	mark := func(set *map[core.JobID]bool, id core.JobID) {
		if *set == nil {
			*set = map[core.JobID]bool{}
		}
		(*set)[id] = true
	}
	started := int64(0)
	for i := range p.Changes.Events {
		switch e := &p.Changes.Events[i]; e.Kind {
		case core.JobSubmitted:
			mark(&submitted, e.Job)
		case core.JobEnded:
			mark(&ended, e.Job)
		case core.JobStarted:
			started++
		default:
		}
	}
	if submitted == nil && ended == nil && started == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.jobs.Started += started
	for _, j := range p.Changes.Jobs {
		if submitted[j.ID] {
			d.jobs.Submitted += int64(j.Count())
		}
		if ended[j.ID] && j.State.Final() {
			d.count(j)
		}
	}
}

// count counts a job that has ended.
func (d *Diag) count(j *core.Job) {
	n := int64(j.Count())
	switch j.State {
	case core.Completed:
		d.jobs.Completed += n
	case core.Cancelled:
		d.jobs.Canceled += n
	default:
		d.jobs.Failed += n
	}
}

// Show answers GET /diag.
func (d *Diag) Show(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	done, err := d.Heavy(r.Context(), who)
	if err != nil {
		return nil, err
	}
	defer done()
	v, err := d.Viewer(who)
	if err != nil {
		return nil, err
	}
	stats := d.Engine.Stats()
	out := &client.Diag{Now: d.Now(v.Snap), Waiting: stats.Inbox, Streams: int(d.Open.Count())}
	for j := range v.Snap.Jobs() {
		switch j.State {
		case core.Pending:
			out.Pending += int64(j.Count())
		case core.Running:
			out.Running += int64(j.Count())
		default:
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	out.Since, out.Jobs = d.since, d.jobs
	out.Passes = client.PassCounts{
		Count: stats.Passes - d.base.Passes, Last: stats.LastPass.Microseconds(), Longest: stats.LongestPass.Microseconds(),
		Total: (stats.Planning - d.base.Planning).Microseconds(), LastAt: stats.LastPassAt,
		Backfilled: stats.Backfilled, BackfilledSince: stats.Backfilled - d.base.Backfilled,
	}
	out.Calls = []client.CallCount{}
	for key, t := range d.routes {
		out.Calls = append(out.Calls, client.CallCount{Name: key, Count: t.count, Total: t.took.Microseconds()})
	}
	if who.Admin { // who calls how often is not everybody's business
		for user, t := range d.users {
			out.Users = append(out.Users, client.CallCount{
				Name: string(user), UID: t.uid, Count: t.count, Total: t.took.Microseconds(),
			})
		}
	}
	most := func(a, b client.CallCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name))
	}
	slices.SortFunc(out.Calls, most)
	slices.SortFunc(out.Users, most)
	return out, nil
}

// Reset answers POST /diag/reset.
func (d *Diag) Reset(_ http.ResponseWriter, _ *http.Request, who *call.Caller) (any, error) {
	if !who.Admin {
		return nil, core.Errorf(core.Denied, "only an administrator may reset figures").Because("access_denied")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reset()
	return call.OK{}, nil
}
