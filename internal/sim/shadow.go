package sim

import (
	"cmp"
	"math"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/sched"
)

// Shadow is a cluster that another scheduler drives, and the jobs it was given. The production rules are asked what
// they would have done with them on nodes of the same kind. Times are real ones, not a trace's seconds.
type Shadow struct {
	Nodes      []*core.Node
	Partitions []core.Partition
	Jobs       []ShadowJob
	Begin      core.Time // what ran then keeps its nodes
}

// ShadowJob is a job of the other scheduler.
type ShadowJob struct {
	Spec    *core.Spec   // its user and project need not be known; Extra.Priority orders jobs of one time
	Arrival core.Time    // when it could have started
	Nodes   string       // hostlist: it ran there at Begin; empty: it came later
	Run     core.Seconds // how long it ran, or would if it needs all of its time
	start   core.Time
	refused error
}

// Start is when the production rules start the job; 0: never, or it was refused, with the reason.
func (j *ShadowJob) Start() (core.Time, error) { return j.start, j.refused }

// shadow is a run of one.
type shadow struct {
	st   *state.State
	plan *sched.Planner
	in   *Shadow
	jobs map[core.JobID]*ShadowJob
	ends []shadowEnd // by time
}

type shadowEnd struct {
	at    core.Time
	job   core.JobID
	alloc *core.Alloc
	run   core.Seconds
}

// Run goes from instant to instant until nothing is left to happen, or until the given time.
func (in *Shadow) Run(until core.Time) error {
	s := in.build()
	slices.SortStableFunc(in.Jobs, func(a, b ShadowJob) int {
		return cmp.Or(cmp.Compare(max(a.Arrival, in.Begin), max(b.Arrival, in.Begin)),
			-cmp.Compare(min(1, len(a.Nodes)), min(1, len(b.Nodes)))) // what runs comes first
	})
	next, wake := 0, core.Time(math.MaxInt64)
	for {
		now := wake
		if len(s.ends) > 0 {
			now = min(now, s.ends[0].at)
		}
		if next < len(in.Jobs) {
			now = min(now, max(in.Begin, in.Jobs[next].Arrival))
		}
		if now == math.MaxInt64 || now > until {
			return nil
		}
		s.st.Advance(now)
		for len(s.ends) > 0 && s.ends[0].at <= now {
			if err := s.end(); err != nil {
				return err
			}
		}
		// What ran at the beginning is placed before anything else is planned.
		held := next < len(in.Jobs) && in.Jobs[next].Nodes != ""
		for next < len(in.Jobs) && max(in.Begin, in.Jobs[next].Arrival) <= now && (in.Jobs[next].Nodes != "") == held {
			s.submit(&in.Jobs[next])
			next++
		}
		var err error
		if wake, err = s.pass(now); err != nil {
			return err
		}
	}
}

const shadowUser core.UserName = "shadow"

func (in *Shadow) build() *shadow {
	uid := uint32(1000)
	img := &state.Image{
		Now: in.Begin, Nodes: in.Nodes,
		Users:    []*core.User{{Name: shadowUser, UnixName: "shadow", UID: &uid, Role: core.RoleAdmin, Default: "default"}},
		Projects: []*core.Project{{Name: "default", Members: []core.Member{{User: shadowUser, Role: core.RoleUser}}}},
	}
	for i, n := range img.Nodes {
		n.ID, n.Roles, n.Joined, n.Host.Root = int64(i+1), core.Compute, in.Begin, true
	}
	c := state.Config{Partitions: in.Partitions, MaxJobs: 1 << 40, Unkept: true}
	s := &shadow{
		st: state.New(c, img), in: in, jobs: map[core.JobID]*ShadowJob{},
		plan: sched.New(sched.Config{Partitions: state.Partitions(c), Hosts: state.NewNames()}),
	}
	s.plan.Apply(s.st.All())
	return s
}

func (s *shadow) submit(j *ShadowJob) {
	spec := *j.Spec
	spec.User, spec.UID, spec.Project, spec.QOS = shadowUser, 1000, "", ""
	if j.Nodes != "" {
		x := *spec.More()
		x.NodeList = j.Nodes
		spec.Extra = &x
	}
	reply, err := state.Apply(s.st, &state.Submit{
		By: core.Identity{User: shadowUser, UID: 1000, Admin: true}, Spec: &spec,
	})
	if err != nil {
		j.refused = err
		return
	}
	s.jobs[reply.ID] = j
}

// pass plans once and does as the plan says; wake is when time alone changes the answer.
func (s *shadow) pass(now core.Time) (wake core.Time, err error) {
	s.plan.Apply(s.st.PlannerChanges())
	plan := s.plan.Pass(now)
	for i := range plan.Starts {
		p := &plan.Starts[i]
		if _, err := state.Apply(s.st, &state.Start{Job: p.Job, Alloc: p.Alloc}); err != nil {
			return 0, err
		}
		j := s.jobs[p.Job]
		j.start = now
		e := shadowEnd{now + core.Time(max(1, j.Run))*1e6, p.Job, p.Alloc, j.Run}
		at, _ := slices.BinarySearchFunc(s.ends, e, func(a, b shadowEnd) int {
			return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.job, b.job))
		})
		s.ends = slices.Insert(s.ends, at, e)
	}
	if len(plan.Starts) > 0 {
		s.plan.Apply(s.st.PlannerChanges())
	}
	if plan.WakeAt <= now {
		return math.MaxInt64, nil
	}
	return plan.WakeAt, nil
}

// end is an agent's report that a job is over.
func (s *shadow) end() error {
	e := s.ends[0]
	s.ends = s.ends[1:]
	nodes := e.alloc.Nodes
	_, err := state.Apply(s.st, &state.Exited{
		Node: nodes[0].Node, Job: e.job, Attempt: 1, Step: "batch", Elapsed: e.run.Duration(), JobDone: true,
	})
	for i := 1; i < len(nodes) && err == nil; i++ {
		_, err = state.Apply(s.st, &state.NodeDone{Node: nodes[i].Node, Job: e.job, Attempt: 1})
	}
	return err
}
