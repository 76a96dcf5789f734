package state

import (
	"cmp"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/cluster"
	"bireme.dev/bireme/internal/engine/state/conf"
	"bireme.dev/bireme/internal/engine/state/credentials"
	"bireme.dev/bireme/internal/engine/state/depend"
	"bireme.dev/bireme/internal/engine/state/fleets"
	"bireme.dev/bireme/internal/engine/state/jobs"
	"bireme.dev/bireme/internal/engine/state/live"
	"bireme.dev/bireme/internal/engine/state/named"
	"bireme.dev/bireme/internal/engine/state/people"
	"bireme.dev/bireme/internal/engine/state/runlife"
	"bireme.dev/bireme/internal/engine/state/usage"
	"bireme.dev/bireme/internal/sched"
	"bireme.dev/bireme/internal/sched/alloc"
)

// The settings, as callers name them.
type (
	Config   = conf.Config
	Priority = conf.Priority
	Power    = conf.Power
	Charges  = conf.Charges
	Zone     = conf.Zone
)

// What readers get, as callers name it.
type (
	Snapshot   = live.Snapshot
	NodeUse    = live.NodeUse
	LicenseUse = live.LicenseUse
	Factor     = live.Factor
	Factors    = live.Factors
	Share      = live.Share
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
	Credentials  []*core.Credential
}

// State is everything live, with the rules that change it. It is not safe for concurrent use; Snapshot gives what is.
type State struct {
	cfg           Config
	rec           *live.Records
	cluster       *cluster.Cluster
	jobs          *jobs.Editor
	liveCount     int        // jobs, array tasks counted one by one
	maxSeenJob    core.JobID // see maxSeenAhead
	userCounts    map[core.UserName]userCount
	submitKeys    map[string]submitKeyUse
	submitKeyRing []string // oldest first, to forget
	// when time ends jobs: interactive ones by limit or unused, any by deadline
	jobDeadlines       map[core.JobID]core.Time
	nextJobDeadline    core.Time // the first of timed, unless stale
	jobDeadlinesStale  bool
	nodeTimers         nodeTimers
	idleActions        map[core.NodeName]struct{} // nodes with which something is to be done when they are empty
	people             *people.Directory
	fleets             *fleets.Registry
	credentials        *credentials.Registry
	reservations       reservationIndex
	resendReservations bool // projects changed, and with them whose jobs reservations are for
	dependencies       depend.Index
	priorities         *priorityCalc // nil without Config.Priority
	usage              *usage.Meters
	limits             limits
	unusable           map[core.JobID]string // jobs whose stored record cannot be used, and why

	preemption preemptionState
}

// submitKeyUse is what a submit key was used for.
type submitKeyUse struct {
	job  core.JobID
	user core.UserName
}

// New builds the state from an image.
func New(cfg Config, img *Image) *State {
	cfg.SetDefaults()
	s := &State{
		cfg:        cfg,
		userCounts: map[core.UserName]userCount{},
		submitKeys: map[string]submitKeyUse{}, jobDeadlines: map[core.JobID]core.Time{},
		idleActions: map[core.NodeName]struct{}{},
		nodeTimers:  nodeTimers{at: map[core.NodeName]core.Time{}},
	}
	s.rec = live.NewRecords(&s.cfg, live.Counters{
		Seq: img.Seq, Now: img.Now, NextJob: img.NextJob,
		NextNode: img.NextNode,
	})
	s.cluster = cluster.New(&s.cfg, s.rec)
	s.jobs = jobs.NewEditor(s.rec, &s.cfg, s.jobChanged)
	s.maxSeenJob = s.rec.NextJob() + maxSeenAhead
	s.rec.Tables = people.NewTables(img.Users, img.Projects, img.Tokens)
	s.people = people.NewDirectory(&s.rec.Tables, s.rec)
	s.rec.Table = fleets.NewTable(img.Fleets)
	s.fleets = fleets.NewRegistry(&s.rec.Table, s.rec)
	s.rec.Set = credentials.NewSet(img.Credentials)
	s.credentials = credentials.NewRegistry(&s.rec.Set, s.rec)
	for _, q := range img.QOS {
		s.rec.LoadQOS(q)
	}
	for _, r := range img.Reservations {
		s.rec.LoadReservation(r)
	}
	for _, r := range img.Runs {
		s.rec.LoadRun(r)
	}
	before := people.PinsFromTokens(img.Tokens)
	for _, n := range img.Nodes {
		if p := before[n.Name]; p != nil && n.Pin == nil {
			c := *n
			c.Pin, n = p, &c
		}
		s.rec.LoadNode(n)
		s.trackIdleAction(n)
		s.cluster.NodeChanged(n)
	}
	for _, j := range img.Jobs {
		j = s.usableRecord(j)
		s.indexJob(nil, j)
		s.rec.LoadJob(j)
	}
	s.resetNodeTimers()
	s.dependencies.LoadSeq = img.Seq
	if len(s.dependencies.Singletons) > 0 {
		s.indexJobNames()
	}
	for _, st := range img.Steps {
		s.rec.LoadStep(st)
	}
	byAge := func(a, b core.SubmitKey) int { return cmp.Compare(a.Job, b.Job) }
	if !slices.IsSortedFunc(img.Keys, byAge) {
		slices.SortStableFunc(img.Keys, byAge)
	}
	for _, k := range img.Keys {
		s.rememberKey(k.Key, k.Job, k.User)
	}
	s.rec.BeginBatch()
	s.loadUsage(img)
	s.limits.stale = true
	s.currentLimits()
	if cfg.Priority != nil {
		s.priorities = newPriorityCalc(cfg.Priority, s)
	}
	s.rec.TakePlannerChanges() // All has them
	return s
}

// Flush ends a batch: it returns all changes since the last Flush, to be stored. The planner's are PlannerChanges.
func (s *State) Flush() *core.Changes {
	s.currentLimits()
	out := s.rec.TakeChanges()
	out.Spent = s.usage.TakeSpent()
	s.resendReservations = false
	return out
}

// PlannerChanges returns what the planner has not been told, in the order it happened. Nobody else tells it anything
// but All. It does not wait for the end of a batch.
func (s *State) PlannerChanges() sched.Changes {
	s.currentLimits()
	return s.rec.TakePlannerChanges()
}

// All returns the whole live state as planner changes, to build a planner cold.
func (s *State) All() sched.Changes {
	var c sched.Changes
	for n := range s.rec.Nodes() {
		c.Nodes = append(c.Nodes, n)
	}
	for j := range s.rec.Jobs() {
		c.Jobs = append(c.Jobs, j)
	}
	c.Reservations = s.plannerReservations(named.Sorted(s.rec.ReservationsByName()))
	c.Preemption = s.preemption.table
	s.currentLimits()
	if c.Policy = s.plannerPolicy(); s.limits.rules.Minutes() {
		c.Meters = s.rec.Usage().List()
	}
	return c
}

// Snapshot publishes the present: an immutable view that costs what changed since the last one.
func (s *State) Snapshot() *Snapshot {
	s.people.Published()
	s.fleets.Published()
	s.credentials.Published()
	return s.rec.Publish()
}

// Advance sets the time of the inputs that follow. It never goes back.
func (s *State) Advance(now core.Time) core.Time { return s.rec.Advance(now) }

// Now is the time set by Advance.
func (s *State) Now() core.Time { return s.rec.Now() }

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
		if _, ok := s.jobDeadlines[old.ID]; ok {
			delete(s.jobDeadlines, old.ID)
			s.jobDeadlinesStale = true
		}
	}
	s.cluster.JobChanged(old, j)
	if !j.Live() {
		return
	}
	s.liveCount += j.Count()
	s.countUserJobs(j, 1)
	s.setJobDeadline(j)
}

// setJobDeadline notes when time ends a job.
func (s *State) setJobDeadline(j *core.Job) {
	at := sooner(sooner(s.timeLimitEnd(j), jobs.DeadlineOf(j)), s.ownMinutesEnd(j))
	if j.Spec.Rules() != nil {
		at = sooner(at, runlife.Due(j))
	}
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

func (s *State) rememberKey(key string, id core.JobID, user core.UserName) {
	s.submitKeys[key] = submitKeyUse{id, user}
	s.submitKeyRing = append(s.submitKeyRing, key)
	if len(s.submitKeyRing) > s.cfg.KeyWindow {
		delete(s.submitKeys, s.submitKeyRing[0])
		s.submitKeyRing = s.submitKeyRing[1:]
	}
}

// NewNames returns an expander of hostlists with a cache of its own, for a planner.
func NewNames() alloc.HostsFunc { return cluster.NewHosts() }

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
		Zone:     cfg.Zone.Location, Hosts: cluster.NewHosts(), Topology: cfg.Topology, MaxSwitchWait: cfg.MaxSwitchWait,
		FaultForTests: cfg.FaultForTests,
	}
}
