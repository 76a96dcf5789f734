package depend

import (
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/jsontext"
	"bireme.dev/bireme/internal/engine/state/cluster"
	"bireme.dev/bireme/internal/engine/state/jobs"
	"bireme.dev/bireme/internal/engine/state/live"
	"bireme.dev/bireme/internal/engine/state/speccheck"
)

// Dependencies evaluates what jobs wait for, and changes the jobs whose conditions are met or can no longer be.
type Dependencies struct {
	rec     *live.Records
	cluster *cluster.Cluster
	jobs    *jobs.Editor
	index   Index
}

// New makes dependencies of no job. loaded is the sequence number of the loaded state: no ending before it is known.
func New(rec *live.Records, cl *cluster.Cluster, ed *jobs.Editor, loaded int64) *Dependencies {
	return &Dependencies{rec: rec, cluster: cl, jobs: ed, index: Index{LoadSeq: loaded}}
}

// Loaded completes the index after all jobs were loaded.
func (d *Dependencies) Loaded() {
	if len(d.index.Singletons) > 0 {
		d.indexNames()
	}
}

// JobChanged updates the index; old is nil for a new job.
func (d *Dependencies) JobChanged(old, j *core.Job) { d.index.JobChanged(old, j) }

// Index is who waits for whom, to read.
func (d *Dependencies) Index() *Index { return &d.index }

// Lookup is what the caller of a submission or a change found out about the jobs that its dependency names.
type Lookup struct {
	User   core.UserName
	Ended  []*core.Job  // records of those that have left memory
	Seen   int64        // the number of the snapshot they were missing from, 0 if nobody looked
	Hidden []core.JobID // jobs that the caller is not to know of: as if they never were
	Strict bool         // refuse to wait for a job that never was
}

// submitOrder orders jobs by when they were submitted: tasks stand where their array does.
func submitOrder(j *core.Job) core.JobID {
	if j.Array != nil {
		return j.Array.Base
	}
	return j.ID
}

// indexNames begins to keep live jobs by name.
func (d *Dependencies) indexNames() {
	d.index.IndexNames()
	for j := range d.rec.Jobs() {
		d.index.AddName(j)
	}
}

// noSuchJob is an id that no job gets.
const noSuchJob core.JobID = 1 << 62

// Admit gives a job the needs of its dependency. What that names that never was is dropped, as Slurm 22.05 does.
func (d *Dependencies) Admit(in *Lookup, j *core.Job) error {
	if err := j.Spec.More().Dependency.Fault(); err != nil {
		return core.Errorf(core.Invalid, "%v", err).Because("invalid_dependency")
	}
	needs := j.Spec.More().Dependency.Needs().Clone()
	if in.Strict {
		if err := d.checkTargets(in, needs); err != nil {
			return err
		}
	}
	for i := range needs.Left {
		n := &needs.Left[i]
		if n.Kind == core.NeedSingleton {
			if !d.index.IndexesNames() {
				d.indexNames()
			}
			continue
		}
		if slices.Contains(in.Hidden, n.Job) {
			n.Job = noSuchJob
			continue
		}
		t, live := d.rec.Job(n.Job)
		if live && t.Array != nil && t.Array.Base != t.ID && n.Task == 0 { // a task by its own number
			n.Job, n.Task = t.Array.Base, t.Array.Task+1
		}
		if n.Kind == core.NeedAfterCorr && (j.Array == nil || n.Task > 0 || live && t.Array == nil) {
			n.Kind = core.NeedAfterOK
		}
		if !d.targetIsLive(n) && in.Seen != 0 && in.Seen < d.index.LoadSeq {
			return core.Errorf(core.Unavailable, "how job %d ended has to be looked up again; try again", n.Job)
		}
	}
	j.Needs, j.Reason, j.Eligible = needs, core.ReasonDependency, 0
	return nil
}

// EvaluateNew applies what is known already to a job that was just submitted with needs.
func (d *Dependencies) EvaluateNew(id core.JobID, ended []*core.Job) {
	j, _ := d.rec.Job(id)
	d.reevaluate(id, d.index.EndingsOf(j.Needs, ended), true)
}

// Notify reevaluates the jobs that wait for a job which started or ended.
func (d *Dependencies) Notify(old, j *core.Job) {
	started := j.State == core.Running && (old == nil || old.State == core.Pending)
	if !j.Live() {
		d.index.NoteEnding(j)
	}
	if len(d.index.Dependents) > 0 && (started || !j.Live()) {
		var ends []Ending
		if !j.Live() {
			ends = []Ending{EndingOf(j)}
		}
		for _, id := range d.index.WaitingFor(j) {
			d.reevaluate(id, ends, false)
		}
	}
	for _, id := range d.index.WaitingForName(old, j) {
		d.reevaluate(id, nil, false)
	}
}

// reevaluate works out again what a waiting job needs, knowing of these endings. When the job is new, what
// nobody knows anything of is not waited for.
func (d *Dependencies) reevaluate(id core.JobID, ends []Ending, new bool) {
	j, ok := d.rec.Job(id)
	if !ok || j.Needs == nil {
		return
	}
	if j.IsArray() {
		for i := range ends {
			if j = d.releasePairedTasks(j, &ends[i]); j == nil {
				return
			}
		}
	}
	edit := d.jobs.Edit(j)
	next := edit.Job
	needs := *j.Needs
	needs.Left = slices.Clone(needs.Left)
	next.Needs = &needs
	from := core.Time(0)
	met := false
	for i := 0; i < len(needs.Left); {
		n := &needs.Left[i]
		told := false
		for k := range ends {
			if ends[k].Matches(n) {
				told = true
				n.Bad = n.Bad || n.Kind != core.NeedAfterCorr && !ends[k].OK
			}
		}
		how := d.evaluate(j, n)
		if new && !told && n.Kind != core.NeedSingleton && !d.targetIsLive(n) {
			how = conditionMet
		}
		switch how {
		case conditionMet:
			if n.Delay > 0 {
				from = max(from, d.targetStart(n).Add(n.Delay.Duration()))
			}
			met = true
			needs.Left = slices.Delete(needs.Left, i, i+1)
			continue
		case conditionFailed:
			n.Failed = true
		case conditionOpen:
		}
		i++
	}
	d.store(&edit, j, met && needs.Any, from)
}

// releasePairedTasks frees the tasks of an array whose counterparts have ended, each as a job of its own; it returns
// what is left of the array, or nil.
func (d *Dependencies) releasePairedTasks(j *core.Job, e *Ending) *core.Job {
	at := slices.IndexFunc(j.Needs.Left, func(n core.Need) bool {
		return n.Kind == core.NeedAfterCorr && !n.Failed && e.Matches(&n)
	})
	if at < 0 {
		return j
	}
	both := e.Paired(j.Array.Tasks)
	for k := range both.All() {
		task := d.jobs.SplitTask(j, int32(k))
		needs := *j.Needs
		needs.Left = slices.Clone(needs.Left)
		if e.OK {
			needs.Left = slices.Delete(needs.Left, at, at+1)
		} else {
			needs.Left[at].Failed = true
		}
		task.Needs = &needs
		edit := d.jobs.EditRecord(task)
		d.store(&edit, nil, e.OK && needs.Any, 0)
		rest, ok := d.rec.Job(j.ID)
		if !ok || !rest.IsArray() {
			return nil
		}
		j = rest
	}
	return j
}

// store stores a job whose needs were worked out again; j is what it was, nil for a task that was just split
// off.
func (d *Dependencies) store(e *jobs.Edit, j *core.Job, enough bool, from core.Time) {
	if enough || len(e.Job.Needs.Left) == 0 {
		e.Job.Needs = nil
		e.Job.Eligible = max(d.rec.Now(), e.Job.Spec.Begin, from)
	}
	e.Job.Reason = Reason(e.Job)
	if e.Job.Reason == core.ReasonDependencyNever && d.jobs.KillsInvalid(e.Job.Spec) {
		e.Job.Start = d.rec.Now()
		e.End(core.Cancelled, core.ReasonDependencyNever, "what it waits for can never happen any more")
		e.Commit()
		return
	}
	if j == nil || j.Reason != e.Job.Reason || j.Needs.String() != e.Job.Needs.String() {
		e.CommitWith(core.JobUpdated,
			core.Event{Data: append(jsontext.AppendString([]byte(`{"needs":`), e.Job.Needs.String()), '}')})
	} else if !slices.Equal(j.Needs.Left, e.Job.Needs.Left) {
		e.CommitSilently() // a task of an array it waits for ended badly: nothing to show yet, but not to be forgotten
	}
}

// Reason is why a job that waits for others does not start.
func Reason(j *core.Job) core.Reason {
	switch {
	case j.Needs == nil:
		return core.ReasonNone
	case j.Needs.Never():
		return core.ReasonDependencyNever
	}
	return core.ReasonDependency
}

// Update gives a pending job another dependency, or none with an empty one. The caller stores the record, then calls
// EvaluateNew.
func (d *Dependencies) Update(next *core.Job, spec *core.Spec, to core.Dependency, in *Lookup) error {
	if next.State != core.Pending {
		return core.Errorf(core.Conflict, "job %d has started", next.ID).Because("job_running")
	}
	if n := len(to.String()); n > speccheck.MaxLine {
		return speccheck.TooLong("dependency", n, speccheck.MaxLine)
	}
	x := *spec.More()
	x.Dependency = to
	spec.Extra = &x
	was := next.Needs != nil
	if x.Dependency.IsZero() {
		if next.Needs = nil; was {
			next.Reason = core.ReasonNone
			next.Eligible = max(d.rec.Now(), spec.Begin)
		}
		return nil
	}
	trial := *next
	trial.Spec = spec
	if err := d.Admit(in, &trial); err != nil {
		return err
	}
	if round := FindCycle(next, trial.Needs, d.cluster.RecordsOf); round != nil {
		return core.Errorf(core.Invalid, "circular dependencies: %s",
			strings.Join(round, ", which waits for ")).Because("circular_dependency")
	}
	next.Needs, next.Reason, next.Eligible = trial.Needs, trial.Reason, trial.Eligible
	return nil
}
