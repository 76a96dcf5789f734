package state

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/admit"
	"bireme.dev/bireme/internal/engine/state/advance"
	"bireme.dev/bireme/internal/engine/state/charge"
	"bireme.dev/bireme/internal/engine/state/cluster"
	"bireme.dev/bireme/internal/engine/state/conf"
	"bireme.dev/bireme/internal/engine/state/credentials"
	"bireme.dev/bireme/internal/engine/state/depend"
	"bireme.dev/bireme/internal/engine/state/fleets"
	"bireme.dev/bireme/internal/engine/state/jobs"
	"bireme.dev/bireme/internal/engine/state/limits"
	"bireme.dev/bireme/internal/engine/state/live"
	"bireme.dev/bireme/internal/engine/state/nodes"
	"bireme.dev/bireme/internal/engine/state/people"
	"bireme.dev/bireme/internal/engine/state/preemption"
	"bireme.dev/bireme/internal/engine/state/ranking"
	"bireme.dev/bireme/internal/engine/state/volumes"
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
	LastIDs      core.LastIDs
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
	Volumes      []*core.Volume
}

// State is everything live, with the rules that change it. It is not safe for concurrent use; Snapshot gives what is.
// Its parts are types of their own; State has the order in which they follow a change.
type State struct {
	cfg     Config
	rec     *live.Records
	cluster *cluster.Cluster // what jobs hold of it
	jobs    *jobs.Editor     // begins changes of jobs
	nodes   *nodes.Editor    // begins changes of nodes

	people      *people.Directory
	fleets      *fleets.Registry
	credentials *credentials.Registry
	volumes     *volumes.Registry

	admission    *admit.Admission
	counts       *admit.Counts
	submitKeys   *admit.Keys
	dependencies *depend.Dependencies
	limits       *limits.Limits
	charges      *charge.Charger
	ranking      *ranking.Calc
	reservations *advance.Reservations
	preemption   *preemption.Preemption
	deadlines    *jobs.Deadlines

	maxSeenJob core.JobID // see maxSeenAhead
	revived    revivals
	unusable   unusableRecords
}

// New builds the state from an image.
func New(cfg Config, img *Image) *State {
	cfg.SetDefaults()
	s := newEmpty(cfg, img)
	s.load(img)
	s.rec.BeginBatch()
	s.charges.Load(img.Spent, img.Now, img.Jobs)
	s.limits.MarkStale()
	s.limits.Current()
	s.ranking.Begin()
	s.rec.TakePlannerChanges() // All has them
	return s
}

// newEmpty makes a state with its parts, of people, fleets and credentials with those of the image, of all else empty.
func newEmpty(cfg Config, img *Image) *State {
	s := &State{cfg: cfg}
	s.rec = live.NewRecords(&s.cfg, live.Counters{
		Seq: img.Seq, Now: img.Now, NextJob: img.NextJob, NextNode: img.NextNode, LastIDs: img.LastIDs,
	})
	s.maxSeenJob = s.rec.NextJob() + maxSeenAhead
	s.cluster = cluster.New(&s.cfg, s.rec)
	s.jobs = jobs.NewEditor(s.rec, &s.cfg, s.jobChanged)
	s.nodes = nodes.NewEditor(s.rec, &s.cfg, s.cluster, s.jobs, nodes.Followers{
		Changed: s.nodeChanged, Deleted: s.nodeDeleted,
	})
	s.rec.Tables = people.NewTables(img.Users, img.Projects, img.Tokens)
	s.people = people.NewDirectory(&s.rec.Tables, s.rec)
	s.rec.Table = fleets.NewTable(img.Fleets)
	s.fleets = fleets.NewRegistry(&s.rec.Table, s.rec)
	s.rec.Set = credentials.NewSet(img.Credentials)
	s.credentials = credentials.NewRegistry(&s.rec.Set, s.rec)
	s.rec.VolumeTable = volumes.NewTable(img.Volumes)
	s.volumes = volumes.NewRegistry(&s.rec.VolumeTable, s.rec)
	s.counts = admit.NewCounts(&s.cfg)
	s.submitKeys = admit.NewKeys(&s.cfg, img.Keys)
	s.dependencies = depend.New(s.rec, s.cluster, s.jobs, img.Seq)
	s.limits = limits.New(s.rec, &s.cfg, s.cluster, s.limitsRebuilt)
	s.charges = charge.New(s.rec, &s.cfg, s.cluster, s.limits)
	s.ranking = ranking.New(s.rec, &s.cfg, s.cluster, s.limits, s.people, s.jobs)
	s.reservations = advance.New(s.rec, &s.cfg, s.cluster, s.people, s.jobs)
	s.admission = admit.New(s.rec, &s.cfg, s.cluster, s.limits, s.reservations)
	s.preemption = preemption.New(s.rec, &s.cfg, s.cluster, s.jobs)
	s.deadlines = jobs.NewDeadlines(s.rec, &s.cfg, s.limits.OwnMinutesEnd)
	return s
}

// load enters the records of an image, and derives what follows from them.
func (s *State) load(img *Image) {
	for _, q := range img.QOS {
		s.rec.LoadQOS(q)
	}
	for _, r := range img.Reservations {
		s.rec.LoadReservation(s.unusable.usableReservation(r))
	}
	for _, r := range img.Runs {
		s.rec.LoadRun(r)
	}
	pins := people.PinsFromTokens(img.Tokens)
	for _, n := range img.Nodes {
		if p := pins[n.Name]; p != nil && n.Pin == nil {
			c := *n
			c.Pin, n = p, &c
		}
		if p := s.rec.FleetProject(n); p != n.Project { // it was stored before nodes had it
			c := *n
			c.Project, n = p, &c
		}
		s.rec.LoadNode(n)
		s.nodes.Load(n)
		s.cluster.NodeChanged(n)
	}
	for _, j := range img.Jobs {
		j = s.unusable.usable(j)
		s.indexJob(nil, j)
		s.rec.LoadJob(j)
	}
	s.nodes.ResetTimers()
	s.dependencies.Loaded()
	for _, st := range img.Steps {
		s.rec.LoadStep(st)
	}
}

// Flush ends a batch: it returns all changes since the last Flush, to be stored. The planner's are PlannerChanges.
func (s *State) Flush() *core.Changes {
	s.limits.Current()
	out := s.rec.TakeChanges()
	out.Spent = s.charges.TakeSpent()
	return out
}

// PlannerChanges returns what the planner has not been told, in the order it happened. Nobody else tells it anything
// but All. It does not wait for the end of a batch.
func (s *State) PlannerChanges() sched.Changes {
	s.limits.Current()
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
	c.Reservations = s.reservations.ForPlanner()
	c.Preemption = s.preemption.Rules
	s.limits.Current()
	if c.Policy = s.limits.PlannerPolicy(); s.limits.Rules.Minutes() {
		c.Meters = s.rec.Usage().List()
	}
	return c
}

// Snapshot publishes the present: an immutable view that costs what changed since the last one.
func (s *State) Snapshot() *Snapshot {
	s.people.Published()
	s.fleets.Published()
	s.credentials.Published()
	s.volumes.Published()
	return s.rec.Publish()
}

// Advance sets the time of the inputs that follow. It never goes back.
func (s *State) Advance(now core.Time) core.Time { return s.rec.Advance(now) }

// Now is the time set by Advance.
func (s *State) Now() core.Time { return s.rec.Now() }

// NextWake is when time alone changes something (an interactive job ends, priorities are due); 0: never.
func (s *State) NextWake() core.Time {
	wake := s.deadlines.Next()
	if due, ok := s.ranking.Due(); ok && (wake == 0 || due < wake) {
		wake = due
	}
	wake = live.Sooner(live.Sooner(wake, s.reservations.NextTime()), s.nodes.NextTimer())
	wake = live.Sooner(wake, s.volumes.NextTime())
	return live.Sooner(wake, s.limits.ExhaustedAt())
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
	return sched.Config{
		Partitions: cfg.Partitions, Rule: cfg.Rule, Reservations: cfg.Reservations, AllocUnit: cfg.Select,
		Licenses: cfg.Licenses,
		Offers:   cfg.Offers,
		Zone:     cfg.Zone.Location, Hosts: cluster.NewHosts(), Topology: cfg.Topology, MaxSwitchWait: cfg.MaxSwitchWait,
		FaultForTests: cfg.FaultForTests,
	}
}
