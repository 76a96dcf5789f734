package api

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/hub"
	"bireme.dev/bireme/internal/server/samples"
)

// Jobs answers questions about jobs and runs.
type Jobs struct {
	*Base
	Hub     *hub.Hub
	Samples *samples.Store
}

// jobs lists jobs: live ones from the snapshot, and with history those of the store.
func (a *Jobs) jobs(w http.ResponseWriter, r *http.Request, who *caller) (any, error) {
	sel, err := parseSelection(r)
	if err != nil {
		return nil, err
	}
	v, err := a.viewer(who)
	if err != nil {
		return nil, err
	}
	if sel.history {
		done, err := a.heavy(r.Context(), who)
		if err != nil {
			return nil, err
		}
		defer done()
	}
	list, next, err := a.page(r.Context(), v, sel)
	if err != nil {
		return nil, err
	}
	if sel.brief {
		a.writeBriefs(w, v, list, next)
		return nil, nil
	}
	out := &client.JobList{Jobs: make([]client.Job, len(list)), Seq: v.snap.Seq(), Now: a.now(v.snap), More: next != 0, Next: next}
	for i, j := range list {
		a.describe(v, &out.Jobs[i], j)
	}
	if sel.history {
		out.Steps, err = a.stepsOf(r.Context(), v.snap, list)
	}
	return out, err
}

// now is the time elapsed times are counted to: the engine's own may lie behind when nothing happens.
func (a *Base) now(snap *state.Snapshot) core.Time { return max(snap.Now(), core.At(time.Now())) }

// selectLive gives the live jobs that match and that the viewer sees, by ascending id. A few plain ids are looked up, not
// searched for.
func (a *Jobs) selectLive(v *viewer, sel *selection) []*core.Job {
	var out []*core.Job
	if n := len(sel.refs); n > 0 && n <= 64 && !slices.ContainsFunc(sel.refs, func(f jobRef) bool { return mayBeArray(v.snap, f) }) {
		for _, f := range sel.refs {
			if j, ok := v.job(f.id); ok && sel.match(j) && !slices.Contains(out, j) {
				out = append(out, j)
			}
		}
		slices.SortFunc(out, func(x, y *core.Job) int { return int(x.ID - y.ID) })
		return out
	}
	for j := range v.jobs() {
		if sel.match(j) {
			out = append(out, j)
		}
	}
	return out
}

// mayBeArray tells whether more than the job under the id itself may be meant: the array's record may be gone while tasks
// of it live on.
func mayBeArray(snap *state.Snapshot, f jobRef) bool {
	j, ok := snap.Job(f.id)
	return !f.tasks.Empty() || !ok || j.Array != nil || j.Spec.More().Het != nil && !f.part
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

// stepsOf finds the steps of jobs: live ones from memory, the others from the store.
func (a *Jobs) stepsOf(ctx context.Context, snap *state.Snapshot, list []*core.Job) ([]core.Step, error) {
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
			return nil, storeError(err)
		}
		for _, s := range steps {
			out = append(out, *s)
		}
	}
	return out, nil
}

// describe fills in what only a live server knows.
func (a *Jobs) describe(v *viewer, out *client.Job, j *core.Job) {
	a.explain(v, out, j)
	out.Job = v.show(j)
}

// explain fills in why a job waits and where its ports are; the record itself is as it is stored.
func (a *Jobs) explain(v *viewer, out *client.Job, j *core.Job) {
	out.Job = *j
	if j.State == core.Running && j.Spec.More().Container != nil {
		out.Ports = a.Hub.Ports(j.ID)
	}
	if j.State != core.Pending {
		return
	}
	if plan := a.Engine.Plan(); plan != nil {
		y := plan.Reason(j)
		out.Waiting, out.Why, out.Expected, out.Estimate = y.Code, v.sentence(y.Text, j.ID), y.Expected, y.Estimate
		if on := plan.Nodes(j.ID); on != nil && y.Expected != 0 && !y.Estimate {
			out.Planned = foldNodes(on)
		}
	}
}

func foldNodes(names []core.NodeName) string {
	list := make([]string, len(names))
	for i, n := range names {
		list[i] = string(n)
	}
	return hostlist.Fold(list)
}

// writeBriefs streams a brief listing.
func (a *Jobs) writeBriefs(w http.ResponseWriter, v *viewer, list []*core.Job, next core.JobID) {
	const chunk = 64 << 10
	w.Header()["Content-Type"] = jsonType
	buf := bodies.Get().(*bytes.Buffer)
	defer putBody(buf)
	buf.Reset()
	buf.Grow(chunk + 4096)
	now := a.now(v.snap)
	b := append(buf.AvailableBuffer(), `{"seq":`...)
	b = strconv.AppendInt(b, v.snap.Seq(), 10)
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

// job shows one job, or an array's record and its tasks.
func (a *Jobs) job(_ http.ResponseWriter, r *http.Request, who *caller) (any, error) {
	after, err := parseAfter(r.URL.Query())
	if err != nil {
		return nil, err
	}
	v, err := a.viewer(who)
	if err != nil {
		return nil, err
	}
	list, next, err := a.find(r.Context(), v, r.PathValue("id"), after)
	if err != nil {
		return nil, err
	}
	out := &client.JobList{Jobs: make([]client.Job, len(list)), Seq: v.snap.Seq(), Now: a.now(v.snap), More: next != 0, Next: next}
	step := &a.conf().Step
	out.SrunProlog, out.SrunEpilog = step.SrunProlog, step.SrunEpilog
	for i, j := range list {
		a.describe(v, &out.Jobs[i], j)
	}
	out.Steps, err = a.stepsOf(r.Context(), v.snap, list)
	return out, err
}

// find gives the records a reference names, live or ended, those beyond after; at least one, or an error.
func (a *Jobs) find(ctx context.Context, v *viewer, text string, after core.JobID) (list []*core.Job, next core.JobID, err error) {
	ref, err := parseRef(text)
	if err != nil {
		return nil, 0, err
	}
	sel := &selection{refs: []jobRef{ref}, after: after}
	if live := a.selectLive(v, sel); len(live) == 1 && live[0].Array == nil && after == 0 {
		return live, 0, nil
	}
	sel.history = true
	for list, next, err = a.page(ctx, v, sel); err == nil && len(list) == 0 && next != 0; {
		sel.after = next // a task of an array that ended long ago
		list, next, err = a.page(ctx, v, sel)
	}
	if err == nil && len(list) == 0 && after == 0 {
		err = core.Errorf(core.NotFound, "there is no job %s", text).Because("invalid_job_id")
	}
	return list, next, err
}

// one is find for calls that mean a single job: of an array and its tasks, the record that bears the id.
func (a *Jobs) one(ctx context.Context, v *viewer, text string) (*core.Job, error) {
	list, _, err := a.find(ctx, v, text, 0)
	if err != nil {
		return nil, err
	}
	ref, err := parseRef(text)
	if err != nil {
		return nil, err
	}
	for _, j := range list {
		if j.ID == ref.id && ref.tasks.Empty() {
			return j, nil
		}
	}
	return list[0], nil
}

// may tells whether somebody may see and steer what is private to a job.
func (a *Jobs) may(who *caller, j *core.Job) error {
	if t := who.token; t != nil && t.Project != "" && t.Project != j.Spec.Project {
		return outsideProject(t)
	}
	if who.Admin || who.User == j.Spec.User {
		return nil
	}
	if !who.Plain && a.Engine.Snapshot().Role(who.User, j.Spec.Project).Rank() >= core.RoleManager.Rank() {
		return nil
	}
	return core.Errorf(core.Denied, "job %d belongs to %s", j.ID, j.Spec.User).Because("access_denied")
}

func (a *Jobs) script(w http.ResponseWriter, r *http.Request, who *caller) (any, error) {
	return nil, a.blob(w, r, who, func(s *core.Spec) core.Hash { return s.Script })
}

func (a *Jobs) env(w http.ResponseWriter, r *http.Request, who *caller) (any, error) {
	return nil, a.blob(w, r, who, func(s *core.Spec) core.Hash { return s.Env })
}

// blob writes a script or an environment; only its owner and administrators may read it, managers may not: environments
// hold secrets.
func (a *Jobs) blob(w http.ResponseWriter, r *http.Request, who *caller, pick func(*core.Spec) core.Hash) error {
	v, err := a.viewer(who)
	if err != nil {
		return err
	}
	j, err := a.one(r.Context(), v, r.PathValue("id"))
	if err != nil {
		return err
	}
	if !v.ownsSecrets(j.Spec.User) {
		return core.Errorf(core.Denied, "job %d belongs to %s", j.ID, j.Spec.User).Because("access_denied")
	}
	a.saw(who, j)
	h := pick(j.Spec)
	if h.IsZero() {
		return core.Errorf(core.NotFound, "job %d has none", j.ID).Because("no_script")
	}
	data, err := a.Store.Blob(r.Context(), h)
	if err != nil {
		return storeError(err)
	}
	w.Header().Set("Content-Type", octets)
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	_, _ = w.Write(data) // the caller may have left
	return nil
}

// why tells in a sentence why a job waits, or how it ended.
func (a *Jobs) why(_ http.ResponseWriter, r *http.Request, who *caller) (any, error) {
	v, err := a.viewer(who)
	if err != nil {
		return nil, err
	}
	j, err := a.one(r.Context(), v, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	var view client.Job
	a.describe(v, &view, j)
	out := &client.Why{ID: j.ID, State: j.State, Reason: j.Reason, Why: view.Message, Expected: view.Expected, Estimate: view.Estimate}
	switch {
	case j.State == core.Pending:
		if view.Waiting != "" {
			out.Reason = view.Waiting
		}
		if view.Why != "" {
			out.Why = view.Why
		}
		if out.Why == "" {
			out.Why = "it has not been looked at yet"
		}
		if v.seesNodes() {
			out.Why += a.lostHosts(nil)
		}
		if v.seesUsage(j.Spec.User, j.Spec.Project) { // fair-share follows from what was used
			out.Priority = a.priority(j)
		}
	case out.Why == "":
		out.Why = v.sentence(ending(j), j.ID)
	}
	if j.State == core.Running {
		if doing := a.Hub.Doing(j.ID); doing != "" {
			out.Why = doing
		}
		if v.seesNodes() || v.ownsSecrets(j.Spec.User) {
			out.Why += a.lostHosts(j.Alloc)
		}
		out.Ports = view.Ports
	}
	if limit := a.Hub.Dropping(j); limit != "" {
		out.Why += "; output of it is dropped: " + limit + " is reached"
	}
	return out, nil
}

// priority tells what a waiting job's priority is made of.
func (a *Jobs) priority(j *core.Job) *client.Priority {
	f := a.Engine.Snapshot().Factors(j)
	p := &client.Priority{Now: j.Priority, Fixed: f.Fixed, Base: f.Base, Run: f.Run, Site: f.Site, Nice: f.Nice}
	for i := range f.List {
		if x := &f.List[i]; x.Weight != 0 {
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
		return "a node of it failed"
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
		return "it was preempted: job " + ids[0] + " uses its CPUs, and it goes on when they are free again"
	}
	return "it was preempted: jobs " + strings.Join(ids, ", ") + " use its CPUs, and it goes on when all of them are free again"
}
