package jobs

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/engine/state/live"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/api/selection"
	"bireme.dev/bireme/internal/server/api/view"
	"bireme.dev/bireme/internal/server/hub"
	"bireme.dev/bireme/internal/server/samples"
)

// Jobs answers questions about jobs and runs.
type Jobs struct {
	*call.Base
	Hub     *hub.Hub
	Samples *samples.Store
}

// List lists jobs: live ones from the snapshot, and with history those of the store.
func (a *Jobs) List(w http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	sel, err := selection.ParseSelection(r)
	if err != nil {
		return nil, err
	}
	v, err := a.Viewer(who)
	if err != nil {
		return nil, err
	}
	if age := a.Settings().Jobs.MinAge.D(); sel.Recent && age > 0 {
		sel.Since = core.At(time.Now().Add(-age))
	} else if sel.Recent {
		sel.Since = 0
	}
	if sel.History {
		done, err := a.Heavy(r.Context(), who)
		if err != nil {
			return nil, err
		}
		defer done()
	}
	list, next, err := a.page(r.Context(), v, sel)
	if err != nil {
		return nil, err
	}
	if sel.Brief {
		a.writeBriefs(w, v, list, next)
		return nil, nil
	}
	out := &client.JobList{
		Jobs: make([]client.Job, len(list)), Seq: v.Snap.Seq(), Now: a.Now(v.Snap), More: next != 0,
		Next: next,
	}
	for i, j := range list {
		a.describe(v, &out.Jobs[i], j)
	}
	if sel.History {
		out.Steps, err = a.StepsOf(r.Context(), v.Snap, list)
	}
	return out, err
}

// Live returns the live jobs that a reference names.
func (a *Jobs) Live(v *view.Viewer, ref selection.JobRef) []*core.Job {
	return a.selectLive(v, &selection.Selection{Refs: []selection.JobRef{ref}})
}

// selectLive returns the live jobs that match and that the viewer sees, by ascending id. A few plain ids are looked up,
// not searched for.
func (a *Jobs) selectLive(v *view.Viewer, sel *selection.Selection) []*core.Job {
	var out []*core.Job
	if n := len(sel.Refs); n > 0 && n <= 64 && !slices.ContainsFunc(
		sel.Refs, func(f selection.JobRef) bool { return selection.MayBeArray(v.Snap, f) }) {
		for _, f := range sel.Refs {
			if j, ok := v.Job(f.Id); ok && sel.Match(j) && !slices.Contains(out, j) {
				out = append(out, j)
			}
		}
		slices.SortFunc(out, func(x, y *core.Job) int { return int(x.ID - y.ID) })
		return out
	}
	for j := range v.Jobs() {
		if sel.Match(j) {
			out = append(out, j)
		}
	}
	return out
}

// names2users turns numbers among the users into names, which is what the store has.
func names2users(snap *state.Snapshot, list []core.UserName) []core.UserName {
	out := slices.Clone(list)
	for _, u := range list {
		if n, err := strconv.ParseUint(string(u), 10, 32); err == nil {
			if rec, ok := snap.UserByUID(uint32(n)); ok {
				out = append(out, rec.Name)
			}
		}
	}
	return out
}

// StepsOf finds the steps of jobs: live ones from memory, the others from the store.
func (a *Jobs) StepsOf(ctx context.Context, snap *state.Snapshot, list []*core.Job) ([]core.Step, error) {
	out := []core.Step{}
	var ended []core.JobID
	for _, j := range list {
		if _, live := snap.Job(j.ID); !live {
			if j.Steps > 0 {
				ended = append(ended, j.ID)
			}
			continue
		}
		for _, s := range snap.Steps(j.ID) {
			out = append(out, *s)
		}
	}
	for chunk := range slices.Chunk(ended, 500) {
		steps, err := a.Store.Steps(ctx, chunk)
		if err != nil {
			return nil, call.StoreError(err)
		}
		for _, s := range steps {
			out = append(out, *s)
		}
	}
	return out, nil
}

// describe fills in what only a live server knows.
func (a *Jobs) describe(v *view.Viewer, out *client.Job, j *core.Job) {
	a.explain(v, out, j)
	out.Job = v.Show(j)
	out.Weights = a.weights(j)
}

// weights are what the resources of a job's partition cost now.
func (a *Jobs) weights(j *core.Job) string {
	name := j.Spec.Partition.First()
	if j.Alloc != nil && j.Alloc.Partition != "" {
		name = j.Alloc.Partition
	}
	parts := a.Settings().Partitions
	for i := range parts {
		if p := &parts[i]; p.BillingWeights != "" && p.Name == string(name) {
			return p.BillingWeights
		}
	}
	return ""
}

// explain fills in why a job waits and where its ports are; the record itself is as it is stored.
func (a *Jobs) explain(v *view.Viewer, out *client.Job, j *core.Job) {
	out.Job = *j
	if j.State == core.Running && j.Spec.More().Container != nil {
		out.Ports = a.Hub.Ports(j.ID)
	}
	if j.State != core.Pending {
		return
	}
	out.LeastNodes = v.LeastNodes(&j.Spec.Shape)
	if plan := a.Engine.Plan(); plan != nil {
		y := plan.Reason(j)
		if y.Expected != 0 {
			y.Expected, y.Estimate = notPast(y.Expected, y.Estimate, a.Now(v.Snap))
		}
		out.Waiting, out.Why, out.Expected, out.Estimate = y.Code, v.Sentence(y.Text, j.ID), y.Expected, y.Estimate
		if on := plan.Nodes(j.ID); on != nil && y.Expected != 0 && !y.Estimate {
			out.Planned = foldNodes(on)
		}
	}
}

// notPast is the expected start of a job that still waits. One that the plan had for a moment ago, as behind an advance
// reservation whose nodes were freed late, is a guess by now: as soon as there is a pass. An estimate that did not come
// true says nothing: the job waits for something whose end nobody knows.
func notPast(expected core.Time, estimate bool, now core.Time) (core.Time, bool) {
	switch {
	case estimate && expected <= now:
		return 0, false
	case expected < now:
		return now, true
	}
	return expected, estimate
}

func foldNodes(names []core.NodeName) string {
	list := make([]string, len(names))
	for i, n := range names {
		list[i] = string(n)
	}
	return hostlist.Fold(list)
}

// writeBriefs streams a brief listing.
func (a *Jobs) writeBriefs(w http.ResponseWriter, v *view.Viewer, list []*core.Job, next core.JobID) {
	const chunk = 64 << 10
	w.Header()["Content-Type"] = call.JsonType
	buf := call.Bodies.Get().(*bytes.Buffer)
	defer call.PutBody(buf)
	buf.Reset()
	buf.Grow(chunk + 4096)
	now := a.Now(v.Snap)
	b := append(buf.AvailableBuffer(), `{"seq":`...)
	b = strconv.AppendInt(b, v.Snap.Seq(), 10)
	b = append(b, `,"now":`...)
	b = strconv.AppendInt(b, int64(now), 10)
	if next != 0 {
		b = append(b, `,"more":true,"next":`...)
		b = strconv.AppendInt(b, int64(next), 10)
	}
	b = append(b, `,"jobs":[`...)
	var view client.Job
	for i, j := range list {
		if i > 0 {
			b = append(b, ',')
		}
		a.explain(v, &view, j) // a brief holds nothing that is private to a job
		brief := client.BriefOf(&view, now)
		b = client.AppendBrief(b, &brief)
		view = client.Job{}
		if len(b) >= chunk {
			if _, err := w.Write(b); err != nil {
				return // the caller left
			}
			b = b[:0]
		}
	}
	_, _ = w.Write(append(b, "]}\n"...)) // as above
}

// Show shows one job, or an array's record and its tasks.
func (a *Jobs) Show(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	after, err := selection.ParseAfter(r.URL.Query())
	if err != nil {
		return nil, err
	}
	v, err := a.Viewer(who)
	if err != nil {
		return nil, err
	}
	list, next, err := a.Find(r.Context(), v, r.PathValue("id"), after)
	if err != nil {
		return nil, err
	}
	out := &client.JobList{
		Jobs: make([]client.Job, len(list)), Seq: v.Snap.Seq(), Now: a.Now(v.Snap), More: next != 0,
		Next: next,
	}
	step := &a.Settings().Step
	out.SrunProlog, out.SrunEpilog = step.SrunProlog, step.SrunEpilog
	out.KillWait = a.Settings().Timers.KillWait.Seconds()
	site := &a.Settings().Jobs
	out.KillOnBadExit, out.WaitTime, out.MinAge = site.KillOnBadExit, site.WaitTime.Seconds(), site.MinAge.Seconds()
	for i, j := range list {
		a.describe(v, &out.Jobs[i], j)
	}
	out.Steps, err = a.StepsOf(r.Context(), v.Snap, list)
	return out, err
}

// Find returns the records a reference names, live or ended, those beyond after; at least one, or an error.
func (a *Jobs) Find(ctx context.Context, v *view.Viewer, text string, after core.JobID) (
	list []*core.Job, next core.JobID, err error,
) {
	ref, err := selection.ParseRef(text)
	if err != nil {
		return nil, 0, err
	}
	sel := &selection.Selection{Refs: []selection.JobRef{ref}, After: after}
	if live := a.selectLive(v, sel); len(live) == 1 && live[0].Array == nil && after == 0 {
		return live, 0, nil
	}
	sel.History = true
	for list, next, err = a.page(ctx, v, sel); err == nil && len(list) == 0 && next != 0; {
		sel.After = next // a task of an array that ended long ago
		list, next, err = a.page(ctx, v, sel)
	}
	if err == nil && len(list) == 0 && after == 0 {
		err = core.Errorf(core.NotFound, "there is no job %s", text).Because("invalid_job_id")
	}
	return list, next, err
}

// Own finds the job that a path names, for a caller who may act on it.
func (a *Jobs) Own(r *http.Request, who *call.Caller) (*view.Viewer, *core.Job, error) {
	v, err := a.Viewer(who)
	if err != nil {
		return nil, nil, err
	}
	j, err := a.One(r.Context(), v, r.PathValue("id"))
	if err != nil {
		return nil, nil, err
	}
	return v, j, a.May(who, j)
}

// One is find for calls that mean a single job: of an array and its tasks, the record that bears the id.
func (a *Jobs) One(ctx context.Context, v *view.Viewer, text string) (*core.Job, error) {
	list, _, err := a.Find(ctx, v, text, 0)
	if err != nil {
		return nil, err
	}
	ref, err := selection.ParseRef(text)
	if err != nil {
		return nil, err
	}
	for _, j := range list {
		if j.ID == ref.Id && ref.Tasks.Empty() {
			return j, nil
		}
	}
	return list[0], nil
}

// May reports whether somebody may see and steer what is private to a job.
func (a *Jobs) May(who *call.Caller, j *core.Job) error {
	if t := who.TokenRecord; t != nil && t.Project != "" && t.Project != j.Spec.Project {
		return call.OutsideProject(t)
	}
	if who.Admin || who.User == j.Spec.User {
		return nil
	}
	if !who.Plain && a.Engine.Snapshot().Role(who.User, j.Spec.Project).Rank() >= core.RoleManager.Rank() {
		return nil
	}
	return core.Errorf(core.Denied, "job %d belongs to %s", j.ID, j.Spec.User).Because("access_denied")
}

func (a *Jobs) Script(w http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	return nil, a.blob(w, r, who, func(s *core.Spec) core.Hash { return s.Script })
}

func (a *Jobs) Env(w http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	return nil, a.blob(w, r, who, func(s *core.Spec) core.Hash { return s.Env })
}

// blob writes a script or an environment; only its owner and administrators may read it, managers may not: environments
// hold secrets.
func (a *Jobs) blob(w http.ResponseWriter, r *http.Request, who *call.Caller, pick func(*core.Spec) core.Hash) error {
	v, err := a.Viewer(who)
	if err != nil {
		return err
	}
	j, err := a.One(r.Context(), v, r.PathValue("id"))
	if err != nil {
		return err
	}
	if !v.OwnsSecrets(j.Spec.User) {
		return core.Errorf(core.Denied, "job %d belongs to %s", j.ID, j.Spec.User).Because("access_denied")
	}
	a.Saw(who, j)
	h := pick(j.Spec)
	if h.IsZero() {
		return core.Errorf(core.NotFound, "job %d has none", j.ID).Because("no_script")
	}
	data, err := a.Store.Blob(r.Context(), h)
	if err != nil {
		return call.StoreError(err)
	}
	w.Header().Set("Content-Type", call.Octets)
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	_, _ = w.Write(data) // the caller may have left
	return nil
}

// Why tells in a sentence why a job waits, or how it ended.
func (a *Jobs) Why(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	v, err := a.Viewer(who)
	if err != nil {
		return nil, err
	}
	j, err := a.One(r.Context(), v, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	var view client.Job
	a.describe(v, &view, j)
	out := &client.Why{
		ID: j.ID, State: j.State, Reason: j.Reason, Why: view.Message, Expected: view.Expected,
		Estimate: view.Estimate,
	}
	switch {
	case j.State == core.Pending:
		if view.Waiting != "" {
			out.Reason = view.Waiting
		}
		if view.Why != "" {
			out.Why = view.Why
		}
		if out.Why == "" {
			out.Why = "it has not been considered yet"
		}
		if v.SeesNodes() {
			out.Why += a.lostHosts(nil)
		}
		if v.SeesUsage(j.Spec.User, j.Spec.Project) { // fair-share follows from what was used
			out.Priority = describePriority(j, v.Snap.Factors(j), false)
		}
	case out.Why == "":
		out.Why = v.Sentence(ending(j), j.ID)
	}
	if j.State == core.Running {
		if doing := a.Hub.Progress(j.ID); len(doing) > 0 {
			out.Why = doing[len(doing)-1].Text
		}
		if v.SeesNodes() || v.OwnsSecrets(j.Spec.User) {
			out.Why += a.lostHosts(j.Alloc)
		}
		out.Ports = view.Ports
	}
	if limit := a.Hub.Dropping(j); limit != "" {
		out.Why += "; output of it is dropped: " + limit + " is reached"
	}
	return out, nil
}

// describePriority tells what a waiting job's priority is made of: every factor, or those with a weight.
func describePriority(j *core.Job, f *live.Factors, all bool) *client.Priority {
	p := &client.Priority{Now: j.Priority, Fixed: f.Fixed, Base: f.Base, Run: f.Run, Site: f.Site, Nice: f.Nice}
	for i := range f.List {
		if x := &f.List[i]; all || x.Weight != 0 {
			p.Factors = append(p.Factors, client.Factor{Name: x.Name, Value: x.Value, Weight: x.Weight, Points: x.Points()})
		}
	}
	return p
}

// ending words how a job stands when nothing more particular is known.
func ending(j *core.Job) string {
	switch j.State {
	case core.Running:
		return "it runs on " + client.AllocList(j.Alloc)
	case core.Suspended:
		if j.Parked() {
			return parked(j.Pushed.Lent)
		}
		return "an administrator suspended it"
	case core.Completed:
		return "its script ended with exit code 0"
	case core.Cancelled:
		if j.Stop != nil && j.Stop.By != "" {
			return "it was cancelled by " + string(j.Stop.By)
		}
		return "it was cancelled"
	case core.Timeout:
		return "it reached its time limit of " + j.Spec.TimeLimit.Duration().String()
	case core.OutOfMemory:
		return "it used more memory than it asked for"
	case core.NodeFail:
		return "one of its nodes failed"
	case core.Failed:
		if j.Exit.Signal != 0 {
			return "it was ended by signal " + strconv.Itoa(int(j.Exit.Signal))
		}
		return "its script ended with exit code " + strconv.Itoa(int(j.Exit.Code))
	default:
		return "it " + j.State.Phrase()
	}
}

// parked words that others use a suspended job's CPUs, each named once.
func parked(lent []core.Lent) string {
	var ids []string
	for i := range lent {
		if id := strconv.FormatInt(int64(lent[i].To), 10); !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	if len(ids) == 1 {
		return "it was preempted: job " + ids[0] + " uses its CPUs, and it resumes when they are free again"
	}
	return "it was preempted: jobs " + strings.Join(ids, ", ") +
		" use its CPUs, and it resumes when all of them are free again"
}

// lostHosts words which hosts of fleets cannot be used, and why: all, or those a job holds. Empty: none.
func (a *Jobs) lostHosts(of *core.Alloc) string {
	const most = 3
	var list []string
	more := 0
	for _, f := range a.Engine.Snapshot().Fleets() {
		for i := range f.Hosts {
			h := &f.Hosts[i]
			if h.Cause == "" || of != nil && !slices.ContainsFunc(
				of.Nodes, func(na core.NodeAlloc) bool { return na.Node == h.Node }) {
				continue
			}
			if len(list) == most {
				more++
				continue
			}
			list = append(list, fmt.Sprintf("%s (%s)", h.Node, h.Cause))
		}
	}
	if len(list) == 0 {
		return ""
	}
	text := "; out of reach: " + strings.Join(list, ", ")
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
