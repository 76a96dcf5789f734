package live

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/jsontext"
	"bireme.dev/bireme/internal/engine/state/conf"
	"bireme.dev/bireme/internal/sched"
)

// Records is everything live, for its one writer. Records are never changed in place: snapshots and the planner share
// them.
type Records struct {
	Snapshot // the present; its tables are edited in place between two published snapshots
	LastIDs

	cfg        *conf.Config
	owned      ownedMaps
	changes    *core.Changes      // of the batch under way
	dirtyJobs  map[core.JobID]int // index into changes.Jobs
	dirtySteps map[stepKey]int    // index into changes.Steps
	planner    sched.Changes      // what the planner has not been told
}

// ownedMaps says which maps of the present no published snapshot shares. The others are copied before they change.
type ownedMaps struct{ nodeIDs, runs, qos, reservations bool }

// ownMap makes a map ours to change: published snapshots keep the one they have.
func ownMap[K comparable, V any](own *bool, m *map[K]V) {
	if !*own {
		*m, *own = maps.Clone(*m), true
	}
}

// stepKey names a step.
type stepKey struct {
	job  core.JobID
	step int32
}

// Counters are the numbers that a store keeps beside the records.
type Counters struct {
	Seq      int64 // of the last event
	Now      core.Time
	NextJob  core.JobID
	NextNode int64
	LastIDs  core.LastIDs
}

// NewRecords makes an empty set of records. cfg stays the caller's, who may change it in place.
func NewRecords(cfg *conf.Config, n Counters) *Records {
	r := &Records{cfg: cfg, dirtyJobs: map[core.JobID]int{}, dirtySteps: map[stepKey]int{}}
	r.seq, r.now, r.nextJob, r.nextNode = n.Seq, n.Now, max(1, n.NextJob), max(1, n.NextNode)
	r.LastIDs = newLastIDs(n.LastIDs)
	r.runs, r.nodeIDs = map[runKey]*core.Run{}, map[core.NodeName]int64{}
	r.qos, r.reservations = map[core.QOSName]*core.QOS{}, map[string]*core.AdvanceReservation{}
	r.ConfigChanged()
	r.BeginBatch()
	return r
}

// Counters are the numbers as they are now.
func (r *Records) Counters() Counters {
	return Counters{Seq: r.seq, Now: r.now, NextJob: r.nextJob, NextNode: r.nextNode, LastIDs: r.last}
}

// ConfigChanged takes over what snapshots show of the settings.
func (r *Records) ConfigChanged() {
	r.partitions, r.defaultProject, r.runWeight = r.cfg.Partitions, r.cfg.DefaultProject, r.cfg.RunWeight
	r.licenseTotals = map[string]int64{}
	for _, l := range r.cfg.Licenses {
		r.licenseTotals[l.Name] = l.Total
	}
}

// LoadJob, LoadNode, LoadStep, LoadQOS, LoadReservation and LoadRun add a record that the store has already.
func (r *Records) LoadJob(j *core.Job) { r.jobs.Set(int64(j.ID), j) }

// LoadNode is as LoadJob.
func (r *Records) LoadNode(n *core.Node) {
	r.nodes.Set(n.ID, n)
	r.nodeIDs[n.Name] = n.ID
}

// LoadStep is as LoadJob.
func (r *Records) LoadStep(st *core.Step) { r.addStep(st) }

// LoadQOS is as LoadJob.
func (r *Records) LoadQOS(q *core.QOS) {
	r.qos[q.Name] = q
	r.give(&r.last.QOS, q.ID)
}

// LoadReservation is as LoadJob.
func (r *Records) LoadReservation(a *core.AdvanceReservation) {
	r.reservations[a.Name] = a
	r.give(&r.last.Reservation, a.ID)
}

// LoadRun is as LoadJob.
func (r *Records) LoadRun(x *core.Run) { r.runs[runKey{x.Project, x.Name}] = x }

// BeginBatch starts a new set of changes.
func (r *Records) BeginBatch() {
	r.changes = &core.Changes{}
	clear(r.dirtyJobs)
	clear(r.dirtySteps)
}

// TakeChanges ends a batch: it returns all changes since the last one, to be stored.
func (r *Records) TakeChanges() *core.Changes {
	out := r.changes
	out.Now, out.NextJob, out.NextNode, out.LastIDs = r.now, r.nextJob, r.nextNode, r.takeGiven()
	r.BeginBatch()
	return out
}

// TellPlanner adds to what the planner is told next.
func (r *Records) TellPlanner(c sched.Changes) { r.planner.Merge(c) }

// TellPlannerAll replaces all that the planner was to be told.
func (r *Records) TellPlannerAll(c sched.Changes) { r.planner = c }

// TakePlannerChanges returns what the planner has not been told, in the order it happened.
func (r *Records) TakePlannerChanges() sched.Changes {
	c := r.planner
	r.planner = sched.Changes{}
	return c
}

// Publish returns the present as an immutable snapshot. It costs what changed since the last one.
func (r *Records) Publish() *Snapshot {
	v := r.Snapshot
	r.owned = ownedMaps{}
	v.jobs, v.nodes, v.steps = r.jobs.Snapshot(), r.nodes.Snapshot(), r.steps.Snapshot()
	v.usage = r.usage.Snapshot()
	return &v
}

// Advance sets the time of what follows. It never goes back.
func (r *Records) Advance(now core.Time) core.Time {
	r.now = max(r.now, now)
	return r.now
}

// Changes is the changes of the batch under way.
func (r *Records) Changes() *core.Changes { return r.changes }

// Event notes what happened, under the next number.
func (r *Records) Event(kind core.EventKind, e core.Event) {
	r.seq++
	if r.cfg.Unkept {
		return
	}
	e.Seq, e.At, e.Kind = r.seq, r.now, kind
	r.changes.Events = append(r.changes.Events, e)
}

// EventData writes what an event says of a job, if anybody will read it.
func (r *Records) EventData(write func(*core.Job) json.RawMessage, j *core.Job) json.RawMessage {
	if r.cfg.Unkept {
		return nil
	}
	return write(j)
}

// LiveJob finds a live job, or says that there is none.
func (r *Records) LiveJob(id core.JobID) (*core.Job, error) {
	j, ok := r.jobs.Get(int64(id))
	if !ok {
		return nil, core.Errorf(core.NotFound, "there is no live job %d", id).Because("invalid_job_id")
	}
	return j, nil
}

// TakeJobID gives out the next job id.
func (r *Records) TakeJobID() core.JobID {
	id := r.nextJob
	r.nextJob++
	return id
}

// SkipJobIDs makes the next job id at least this one.
func (r *Records) SkipJobIDs(next core.JobID) { r.nextJob = max(r.nextJob, next) }

// TakeNodeID gives out the next node id.
func (r *Records) TakeNodeID() int64 {
	id := r.nextNode
	r.nextNode++
	return id
}

// StoreJob replaces a job's record in the tables. A job that is no longer live leaves them with its steps. The store
// and the planner learn of it by NoteJob.
func (r *Records) StoreJob(j *core.Job) {
	if j.Live() {
		r.jobs.Set(int64(j.ID), j)
		return
	}
	r.jobs.Delete(int64(j.ID))
	r.steps.Delete(int64(j.ID))
}

// NoteJob has the store and the planner learn of a job's record.
func (r *Records) NoteJob(j *core.Job) {
	r.planner.Jobs = append(r.planner.Jobs, j)
	if i, ok := r.dirtyJobs[j.ID]; ok {
		r.changes.Jobs[i] = j
	} else if !r.cfg.Unkept {
		r.dirtyJobs[j.ID] = len(r.changes.Jobs)
		r.changes.Jobs = append(r.changes.Jobs, j)
	}
}

// PutJobUnstored replaces a live record by one that differs in what need not be stored.
func (r *Records) PutJobUnstored(j *core.Job) {
	r.jobs.Set(int64(j.ID), j)
	r.planner.Jobs = append(r.planner.Jobs, j)
	if i, ok := r.dirtyJobs[j.ID]; ok {
		r.changes.Jobs[i] = j
	}
}

// AddSpec stores a revision of a job's spec.
func (r *Records) AddSpec(id core.JobID, spec *core.Spec) {
	r.changes.Specs = append(r.changes.Specs, core.SpecRow{ID: id, Spec: spec})
}

// AddBlob stores data under its hash, if there is any.
func (r *Records) AddBlob(h core.Hash, data []byte) {
	if !h.IsZero() && data != nil {
		r.changes.Blobs = append(r.changes.Blobs, core.Blob{Hash: h, Data: data})
	}
}

// PutStep stores a numbered step.
func (r *Records) PutStep(st *core.Step) {
	r.addStep(st)
	at := stepKey{st.Job, st.ID}
	if i, ok := r.dirtySteps[at]; ok {
		r.changes.Steps[i] = st
		return
	}
	r.dirtySteps[at] = len(r.changes.Steps)
	r.changes.Steps = append(r.changes.Steps, st)
}

// PutNode stores a node.
func (r *Records) PutNode(n *core.Node) {
	if _, known := r.nodeIDs[n.Name]; !known {
		ownMap(&r.owned.nodeIDs, &r.nodeIDs)
		r.nodeIDs[n.Name] = n.ID
	}
	r.nodes.Set(n.ID, n)
	r.planner.Nodes = append(r.planner.Nodes, n)
	r.changes.Nodes = append(slices.DeleteFunc(r.changes.Nodes, func(o *core.Node) bool { return o.ID == n.ID }), n)
}

// DeleteNode deletes a node. The planner is not told.
func (r *Records) DeleteNode(n *core.Node) {
	ownMap(&r.owned.nodeIDs, &r.nodeIDs)
	delete(r.nodeIDs, n.Name)
	r.nodes.Delete(n.ID)
	r.changes.Nodes = slices.DeleteFunc(r.changes.Nodes, func(o *core.Node) bool { return o.Name == n.Name })
	r.changes.GoneNodes = append(r.changes.GoneNodes, n.Name)
}

// TellPlannerNodeGone tells the planner that a node was deleted, and nothing else of it.
func (r *Records) TellPlannerNodeGone(name core.NodeName) {
	r.planner.Nodes = slices.DeleteFunc(r.planner.Nodes, func(o *core.Node) bool { return o.Name == name })
	r.planner.Merge(sched.Changes{GoneNodes: []core.NodeName{name}})
}

// PutQOS stores a QOS with its event. It returns the record that was replaced, nil if there was none.
func (r *Records) PutQOS(q *core.QOS) (old *core.QOS) {
	ownMap(&r.owned.qos, &r.qos)
	old = r.qos[q.Name]
	q.ID = r.qosID(q.Name, old)
	r.give(&r.last.QOS, q.ID)
	r.qos[q.Name] = q
	r.changes.QOS = append(slices.DeleteFunc(r.changes.QOS, func(o *core.QOS) bool { return o.Name == q.Name }), q)
	r.Event(core.QOSChanged, core.Event{Data: nameData(`{"qos":`, string(q.Name))})
	return old
}

// DeleteQOS deletes a QOS with its event and returns it.
func (r *Records) DeleteQOS(name core.QOSName) (old *core.QOS) {
	ownMap(&r.owned.qos, &r.qos)
	old = r.qos[name]
	delete(r.qos, name)
	r.changes.QOS = slices.DeleteFunc(r.changes.QOS, func(o *core.QOS) bool { return o.Name == name })
	r.changes.GoneQOS = append(r.changes.GoneQOS, name)
	r.Event(core.QOSChanged, core.Event{Data: nameData(`{"gone":true,"qos":`, string(name))})
	return old
}

// nameData ends the data of an event with a name.
func nameData(begin, name string) []byte {
	return append(jsontext.AppendString([]byte(begin), name), '}')
}

// PutReservation stores an advance reservation, without an event.
func (r *Records) PutReservation(a *core.AdvanceReservation) {
	ownMap(&r.owned.reservations, &r.reservations)
	r.reservations[a.Name] = a
	r.give(&r.last.Reservation, a.ID)
	same := func(o *core.AdvanceReservation) bool { return o.Name == a.Name }
	r.changes.Reservations = append(slices.DeleteFunc(r.changes.Reservations, same), a)
}

// DeleteReservation deletes an advance reservation and tells the planner.
func (r *Records) DeleteReservation(name string) {
	ownMap(&r.owned.reservations, &r.reservations)
	delete(r.reservations, name)
	r.changes.Reservations = slices.DeleteFunc(r.changes.Reservations,
		func(o *core.AdvanceReservation) bool { return o.Name == name })
	r.changes.GoneReservations = append(r.changes.GoneReservations, name)
	r.planner.Merge(sched.Changes{GoneReservations: []string{name}})
}

// PutRun stores a run, which somebody changed or which has come further by itself, with its event. One that has ended
// leaves memory.
func (r *Records) PutRun(x *core.Run, by core.UserName) {
	ownMap(&r.owned.runs, &r.runs)
	key := runKey{x.Project, x.Name}
	if x.Ended == 0 {
		r.runs[key] = x
	} else if open := r.runs[key]; open != nil && open.ID == x.ID { // not one that has its name now
		delete(r.runs, key)
	}
	r.changes.Runs = append(slices.DeleteFunc(r.changes.Runs,
		func(o *core.Run) bool { return o.ID == x.ID && o.Project == x.Project && o.Name == x.Name }), x)
	r.Event(core.RunChanged, core.Event{User: x.User, By: by, Job: x.Jobs[0], Data: runData(x)})
}

func runData(x *core.Run) json.RawMessage {
	b := append(make([]byte, 0, 96), `{"project":`...)
	b = jsontext.AppendString(b, string(x.Project))
	b = append(b, `,"run":`...)
	b = jsontext.AppendString(b, x.Name)
	b = strconv.AppendBool(append(b, `,"ended":`...), x.Ended != 0)
	if x.Updates > 0 {
		b = strconv.AppendInt(append(b, `,"updates":`...), int64(x.Updates), 10)
	}
	if x.Deleted != 0 {
		b = append(b, `,"deleted":true`...)
	}
	return append(b, '}')
}

// QOSByName is the table of QOS, to read.
func (r *Records) QOSByName() map[core.QOSName]*core.QOS { return r.qos }

// ReservationsByName is the table of advance reservations, to read.
func (r *Records) ReservationsByName() map[string]*core.AdvanceReservation { return r.reservations }

// SetRanking replaces what jobs share of their priorities; nil: first come, first served.
func (r *Records) SetRanking(k *Ranking) { r.ranking = k }

// Sooner is the first of two moments of which each may be 0 for never.
func Sooner(a, b core.Time) core.Time {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
