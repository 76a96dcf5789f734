package state

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/engine/state/conf"
	"bireme.dev/bireme/internal/engine/state/depend"
	"bireme.dev/bireme/internal/engine/state/fleets"
	"bireme.dev/bireme/internal/engine/state/named"
	"bireme.dev/bireme/internal/engine/state/people"
	"bireme.dev/bireme/internal/engine/state/usage"
	"bireme.dev/bireme/internal/sched"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/fit"
	"bireme.dev/bireme/internal/sched/ledger"
)

// The settings, as callers name them.
type (
	Config   = conf.Config
	Priority = conf.Priority
	Power    = conf.Power
	Charges  = conf.Charges
	Zone     = conf.Zone
)

// Image is a state to begin with: what a store loaded.
type Image struct {
	Seq          int64
	NextJob      core.JobID
	NextNode     int64
	Now          core.Time
	Jobs         []*core.Job
	Steps        []*core.Step
	Nodes        []*core.Node
	Users        []*core.User
	Projects     []*core.Project
	QOS          []*core.QOS
	Spent        []*core.Spent
	Tokens       []*core.Token
	Runs         []*core.Run
	Keys         []core.SubmitKey
	Reservations []*core.AdvanceReservation
	Fleets       []*core.Fleet
}

// State is everything live, with the rules that change it. It is not safe for concurrent use; Snapshot gives what is.
type State struct {
	cfg    Config
	view   Snapshot // the present; its tries are edited in place between snapshots
	ledger *ledger.Ledger

	partitions    map[core.PartitionName]*partitionInfo
	hostlists     hostlistCache
	liveCount     int        // jobs, array tasks counted one by one
	maxSeenJob    core.JobID // see maxSeenAhead
	userCounts    map[core.UserName]userCount
	arrays        map[core.JobID]map[int32]core.JobID // live started tasks, by array
	submitKeys    map[string]submitKeyUse
	submitKeyRing []string // oldest first, to forget
	// when time ends jobs: interactive ones by limit or unused, any by deadline
	jobDeadlines       map[core.JobID]core.Time
	licensesUsed       map[string]int64 // licenses that jobs hold
	licenseTotals      map[string]int64 // that there are
	nextJobDeadline    core.Time        // the first of timed, unless stale
	jobDeadlinesStale  bool
	jobsOnNode         map[core.NodeName]map[core.JobID]struct{}
	nodeTimers         nodeTimers
	idleActions        map[core.NodeName]struct{} // nodes with which something is to be done when they are empty
	owned              ownedMaps
	people             *people.Directory
	fleets             *fleets.Registry
	reservations       reservationIndex
	resendReservations bool // projects changed, and with them whose jobs reservations are for
	dependencies       depend.Index
	priorities         *priorityCalc // nil without Config.Priority
	usage              *usage.Meters
	limits             limits
	unusable           map[core.JobID]string // jobs whose stored record cannot be used, and why

	changes   *core.Changes
	dirtyJobs map[core.JobID]int // index into out.Jobs
	// dirtySteps is the index of steps into out.Steps.
	dirtySteps     map[stepKey]int
	plannerChanges sched.Changes // what the planner has not been told; see PlannerChanges
	preemption     preemptionState
}

type partitionInfo struct {
	core.Partition
	nodes  map[core.NodeName]bool
	within fit.NodeSet
	// verdict remembers which requests that were asked about could ever run here; it is dropped when nodes change.
	admitCache map[admitKey]*fit.Unsatisfiable
}

// admitKey is all that decides whether a request could ever run in a partition.
type admitKey struct {
	fit.Key
	uid uint32 // see sched.Ledger.UserOf
}

// submitKeyUse is what a submit key was used for.
type submitKeyUse struct {
	job  core.JobID
	user core.UserName
}

// ownedMaps says which maps of the view no snapshot shares. The others are copied before they change.
type ownedMaps struct{ nodeIDs, runs, qos, reservations bool }

// hostlistCache expands hostlists; the few that are in use come again and again.
type hostlistCache map[string]map[core.NodeName]bool

func (c hostlistCache) expand(list string) map[core.NodeName]bool {
	if list == "" {
		return nil
	}
	if set, ok := c[list]; ok {
		return set
	}
	set := map[core.NodeName]bool{}
	if names, err := hostlist.Expand(list, 1<<20); err == nil {
		for _, n := range names {
			set[core.NodeName(n)] = true
		}
	}
	if len(c) > 1000 {
		clear(c)
	}
	c[list] = set
	return set
}

// NewNames returns an expander of hostlists with a cache of its own, for a planner.
func NewNames() alloc.HostsFunc { return hostlistCache{}.expand }

// New builds the state from an image.
func New(cfg Config, img *Image) *State {
	cfg.SetDefaults()
	s := &State{
		cfg: cfg, hostlists: hostlistCache{},
		userCounts: map[core.UserName]userCount{}, arrays: map[core.JobID]map[int32]core.JobID{},
		submitKeys: map[string]submitKeyUse{}, jobDeadlines: map[core.JobID]core.Time{}, licensesUsed: map[string]int64{},
		jobsOnNode: map[core.NodeName]map[core.JobID]struct{}{}, dirtyJobs: map[core.JobID]int{},
		dirtySteps:  map[stepKey]int{},
		idleActions: map[core.NodeName]struct{}{},
		nodeTimers:  nodeTimers{at: map[core.NodeName]core.Time{}, occupancyChanged: map[core.NodeName]struct{}{}},
	}
	s.deriveFromConfig()
	v := &s.view
	v.seq, v.now, v.nextJob, v.nextNode = img.Seq, img.Now, max(1, img.NextJob), max(1, img.NextNode)
	s.maxSeenJob = v.nextJob + maxSeenAhead
	v.Tables = people.NewTables(img.Users, img.Projects, img.Tokens)
	s.people = people.NewDirectory(&v.Tables, journal{s})
	v.runs, v.nodeIDs = map[runKey]*core.Run{}, map[core.NodeName]int64{}
	v.qos, v.reservations = map[core.QOSName]*core.QOS{}, map[string]*core.AdvanceReservation{}
	for _, q := range img.QOS {
		v.qos[q.Name] = q
	}
	for _, r := range img.Reservations {
		v.reservations[r.Name] = r
	}
	v.Table = fleets.NewTable(img.Fleets)
	s.fleets = fleets.NewRegistry(&v.Table, journal{s})
	for _, r := range img.Runs {
		v.runs[runKey{r.Project, r.Name}] = r
	}
	before := people.PinsFromTokens(img.Tokens)
	for _, n := range img.Nodes {
		if p := before[n.Name]; p != nil && n.Pin == nil {
			c := *n
			c.Pin, n = p, &c
		}
		v.nodes.Set(n.ID, n)
		v.nodeIDs[n.Name] = n.ID
		s.trackIdleAction(n)
		s.ledger.SetNode(n)
	}
	for _, j := range img.Jobs {
		j = s.usableRecord(j)
		s.indexJob(nil, j)
		v.jobs.Set(int64(j.ID), j)
	}
	s.resetNodeTimers()
	s.dependencies.LoadSeq = img.Seq
	if len(s.dependencies.Singletons) > 0 {
		s.indexJobNames()
	}
	for _, st := range img.Steps {
		v.addStep(st)
	}
	byAge := func(a, b core.SubmitKey) int { return cmp.Compare(a.Job, b.Job) }
	if !slices.IsSortedFunc(img.Keys, byAge) {
		slices.SortStableFunc(img.Keys, byAge)
	}
	for _, k := range img.Keys {
		s.rememberKey(k.Key, k.Job, k.User)
	}
	s.beginBatch()
	s.loadUsage(img)
	s.limits.stale = true
	s.currentLimits()
	if cfg.Priority != nil {
		s.priorities = newPriorityCalc(cfg.Priority, s)
	}
	s.plannerChanges = sched.Changes{} // All tells it
	return s
}

// beginBatch starts a new set of changes.
func (s *State) beginBatch() {
	s.changes = &core.Changes{}
	s.resendReservations = false
	clear(s.dirtyJobs)
	clear(s.dirtySteps)
}

// Flush ends a batch: it returns all changes since the last Flush, to be stored. The planner's are PlannerChanges.
func (s *State) Flush() *core.Changes {
	s.currentLimits()
	out := s.changes
	out.Now, out.NextJob, out.NextNode = s.view.now, s.view.nextJob, s.view.nextNode
	out.Spent = s.usage.TakeSpent()
	s.beginBatch()
	return out
}

// PlannerChanges returns what the planner has not been told, in the order it happened. Nobody else tells it anything
// but All. It does not wait for the end of a batch.
func (s *State) PlannerChanges() sched.Changes {
	s.currentLimits()
	c := s.plannerChanges
	s.plannerChanges = sched.Changes{}
	return c
}

// All returns the whole live state as planner changes, to build a planner cold.
func (s *State) All() sched.Changes {
	var c sched.Changes
	for _, n := range s.view.nodes.All() {
		c.Nodes = append(c.Nodes, n)
	}
	for _, j := range s.view.jobs.All() {
		c.Jobs = append(c.Jobs, j)
	}
	c.Reservations = s.plannerReservations(named.Sorted(s.view.reservations))
	c.Preemption = s.preemption.table
	s.currentLimits()
	if c.Policy = s.plannerPolicy(); s.limits.rules.Minutes() {
		c.Meters = s.view.usage.List()
	}
	return c
}

// Snapshot publishes the present: an immutable view that costs what changed since the last one.
func (s *State) Snapshot() *Snapshot {
	v := s.view
	s.owned = ownedMaps{}
	s.people.Published()
	s.fleets.Published()
	v.jobs, v.nodes, v.steps = s.view.jobs.Snapshot(), s.view.nodes.Snapshot(), s.view.steps.Snapshot()
	v.usage = s.view.usage.Snapshot()
	return &v
}

// Advance sets the time of the inputs that follow. It never goes back.
func (s *State) Advance(now core.Time) core.Time {
	s.view.now = max(s.view.now, now)
	return s.view.now
}

// Now is the time set by Advance.
func (s *State) Now() core.Time { return s.view.now }

// NextWake is when time alone changes something (an interactive job ends, priorities are due); 0: never.
func (s *State) NextWake() core.Time {
	if s.jobDeadlinesStale {
		s.jobDeadlinesStale, s.nextJobDeadline = false, 0
		for _, t := range s.jobDeadlines {
			if s.nextJobDeadline == 0 || t < s.nextJobDeadline {
				s.nextJobDeadline = t
			}
		}
	}
	wake := s.nextJobDeadline
	if s.priorities != nil && (wake == 0 || s.priorities.due < wake) {
		wake = s.priorities.due
	}
	wake = sooner(sooner(wake, s.nextReservationTime()), s.nextNodeTimer())
	return sooner(wake, s.minutesExhaustedAt())
}

// indexJob updates what is derived from jobs: counts, arrays, nodes, the ledger, deadlines. New calls it for every job.
func (s *State) indexJob(old, j *core.Job) {
	s.dependencies.JobChanged(old, j)
	s.limitsJobChanged(old, j)
	s.reservationJobChanged(old, j)
	s.lendersChanged(old, j)
	if old != nil {
		s.liveCount -= old.Count()
		s.countUserJobs(old, -1)
		if old.Alloc != nil && old.Live() {
			s.countLicenses(old.Alloc, -1)
			s.release(old)
			for i := range old.Alloc.Nodes {
				if na := &old.Alloc.Nodes[i]; !na.Done {
					delete(s.jobsOnNode[na.Node], old.ID)
					if len(s.jobsOnNode[na.Node]) == 0 {
						s.noteOccupancy(na.Node)
					}
				}
			}
		}
		if _, ok := s.jobDeadlines[old.ID]; ok {
			delete(s.jobDeadlines, old.ID)
			s.jobDeadlinesStale = true
		}
	}
	if j.Array != nil && !j.IsArray() {
		tasks := s.arrays[j.Array.Base]
		if j.Live() {
			if tasks == nil {
				tasks = map[int32]core.JobID{}
				s.arrays[j.Array.Base] = tasks
			}
			tasks[j.Array.Task] = j.ID
		} else if delete(tasks, j.Array.Task); len(tasks) == 0 {
			delete(s.arrays, j.Array.Base)
		}
	}
	if !j.Live() {
		return
	}
	s.liveCount += j.Count()
	s.countUserJobs(j, 1)
	if j.Alloc != nil {
		s.countLicenses(j.Alloc, 1)
		s.allocate(j)
		for i := range j.Alloc.Nodes {
			if na := &j.Alloc.Nodes[i]; !na.Done {
				on := s.jobsOnNode[na.Node]
				if on == nil {
					on = map[core.JobID]struct{}{}
					s.jobsOnNode[na.Node] = on
				}
				if on[j.ID] = struct{}{}; len(on) == 1 {
					s.noteOccupancy(na.Node)
				}
			}
		}
	}
	s.setJobDeadline(j)
}

// setJobDeadline notes when time ends a job.
func (s *State) setJobDeadline(j *core.Job) {
	at := sooner(sooner(s.timeLimitEnd(j), deadlineOf(j)), s.ownMinutesEnd(j))
	if at != 0 {
		s.jobDeadlines[j.ID] = at
		s.jobDeadlinesStale = true
	}
}

// sooner is the first of two moments of which each may be 0 for never.
func sooner(a, b core.Time) core.Time {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// timeLimitEnd is when time ends an interactive job, 0: never. The keepers watch batch jobs.
func (s *State) timeLimitEnd(j *core.Job) (at core.Time) {
	if j.State != core.Running || j.Spec.Kind != core.Interactive {
		return s.scriptlessDeadline(j)
	}
	if l := j.Spec.TimeLimit; l > 0 && l != core.Forever {
		at = j.Start.Add(l.Duration() + j.PausedFor)
	}
	return sooner(at, s.idleAllocationEnd(j))
}

// idleAllocationEnd is when an allocation that never had a step is given up, 0: never.
func (s *State) idleAllocationEnd(j *core.Job) core.Time {
	if s.cfg.InteractiveIdle == 0 || j.Steps > 0 || j.Spec.More().Open || j.Spec.Kind != core.Interactive {
		return 0
	}
	return j.Start.Add(s.cfg.InteractiveIdle.Duration() + j.PausedFor)
}

// ownMap makes a map of the view ours to change: snapshots keep the one they have.
func ownMap[K comparable, V any](own *bool, m *map[K]V) {
	if !*own {
		*m, *own = maps.Clone(*m), true
	}
}

// event notes what happened, under the next number.
func (s *State) event(kind core.EventKind, e core.Event) {
	s.view.seq++
	if s.cfg.Unkept {
		return
	}
	e.Seq, e.At, e.Kind = s.view.seq, s.view.now, kind
	s.changes.Events = append(s.changes.Events, e)
}

// eventData writes what an event tells of a job, if anybody will read it.
func (s *State) eventData(write func(*core.Job) json.RawMessage, j *core.Job) json.RawMessage {
	if s.cfg.Unkept {
		return nil
	}
	return write(j)
}

func (s *State) rememberKey(key string, id core.JobID, user core.UserName) {
	s.submitKeys[key] = submitKeyUse{id, user}
	s.submitKeyRing = append(s.submitKeyRing, key)
	if len(s.submitKeyRing) > s.cfg.KeyWindow {
		delete(s.submitKeys, s.submitKeyRing[0])
		s.submitKeyRing = s.submitKeyRing[1:]
	}
}

// liveJob finds a live job.
func (s *State) liveJob(id core.JobID) (*core.Job, error) {
	j, ok := s.view.jobs.Get(int64(id))
	if !ok {
		return nil, core.Errorf(core.NotFound, "there is no live job %d", id).Because("invalid_job_id")
	}
	return j, nil
}

// jobIDsOn lists live jobs that hold something on a node, ascending.
func (s *State) jobIDsOn(n core.NodeName) []core.JobID {
	ids := make([]core.JobID, 0, len(s.jobsOnNode[n]))
	for id := range s.jobsOnNode[n] {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

type runKey struct {
	project core.ProjectName
	name    string
}

// Partitions gives the partitions of a config with defaults filled in.
func Partitions(cfg Config) []core.Partition {
	cfg.SetDefaults()
	return cfg.Partitions
}

// PlannerConfig is what a planner beside a state with this config goes by.
func PlannerConfig(cfg Config) sched.Config {
	cfg.SetDefaults()
	rule, _ := sched.ParseRule(cfg.Rule) // what the settings would have refused is the default
	return sched.Config{
		Partitions: cfg.Partitions, Rule: rule, Reservations: cfg.Reservations, AllocUnit: cfg.AllocUnit(),
		Licenses: cfg.Licenses,
		Offers:   cfg.Offers,
		Zone:     cfg.Zone.Location, Hosts: NewNames(), Topology: cfg.Topology, MaxSwitchWait: cfg.MaxSwitchWait,
		FaultForTests: cfg.FaultForTests,
	}
}
