package state

import (
	"slices"

	"bireme.dev/bireme/internal/core"
)

// EditRun changes an open run in place: its configuration and what its job can still take. Reply: the run's record.
type EditRun struct {
	By       core.Identity
	Project  core.ProjectName
	Name     string
	ID       string // it must still be this one; empty: any
	Config   []byte `json:"-"` // blob of Hash; nothing is decided by it
	Hash     core.Hash
	Priority int32 // 0 to 100
	// Inactivity is after how long without a connection it ends; 0: never.
	Inactivity core.Seconds `json:",omitempty"`
	// Service is what a service is to become: its settings, and with Spec the port and the probes of its last version.
	Service *core.Service `json:",omitempty"`
	// Spec is that of new replicas, which take the place of those that there are; nil: they stay.
	Spec   *core.Spec `json:",omitempty"`
	Script []byte     `json:"-"` // blobs of Spec
	Env    []byte     `json:"-"`
	Files  []byte     `json:"-"`
}

// DeleteRun marks a run that has ended as deleted: its name no longer leads to it. Reply: nil.
type DeleteRun struct {
	By  core.Identity
	Run *core.Run // as the store has it: ended runs have left memory
}

func (*EditRun) input()   {}
func (*DeleteRun) input() {}

func (in *EditRun) apply(s *State) (*core.Run, error) {
	r, ok := s.rec.Run(in.Project, in.Name)
	if !ok || in.ID != "" && r.ID != in.ID {
		return nil, core.Errorf(core.NotFound, "no run %q is active in project %s", in.Name, in.Project).
			Because("invalid_run")
	}
	if err := s.rec.AuthorizeJob(in.By, runOwner(r)); err != nil {
		return nil, err
	}
	next := *r
	next.Config = in.Hash
	next.Updates++
	if r.Service != nil {
		if err := in.editService(s, &next); err != nil {
			return nil, err
		}
	}
	for _, id := range r.Jobs {
		j, live := s.rec.Job(id)
		if !live || j.State.Final() {
			continue
		}
		change := &UpdateJob{By: in.By, Job: j.ID}
		if j.Spec.More().RunPriority != in.Priority {
			change.Run = &in.Priority
		}
		if rules := j.Spec.Rules(); rules != nil && rules.Inactivity != in.Inactivity {
			change.Inactivity = &in.Inactivity
		}
		if change.Run != nil || change.Inactivity != nil {
			if _, err := change.apply(s); err != nil {
				return nil, err
			}
		}
	}
	s.rec.AddBlob(in.Hash, in.Config)
	s.rec.PutRun(&next, in.By.User)
	return &next, nil
}

// updateInactivity changes after how long without a connection a run ends, and counts from now if nobody is connected.
func (s *State) updateInactivity(limit core.Seconds, next *core.Job, x *core.Extra) {
	rules := core.RunRules{}
	if x.Rules != nil {
		rules = *x.Rules
	}
	rules.Inactivity, x.Rules = max(0, limit), &rules
	connected := slices.ContainsFunc(s.rec.LiveSteps(next.ID), func(st *core.Step) bool { return st.Name == core.StepSSH })
	if next.State == core.Running && limit > 0 && !connected {
		next.OwnLife().IdleSince = s.rec.Now()
	}
}

func (in *DeleteRun) apply(s *State) (None, error) {
	r := in.Run
	if open, ok := s.rec.Run(r.Project, r.Name); r.Ended == 0 || ok && open.ID == r.ID {
		return none, core.Errorf(core.Conflict, "run %s is active", r.Name).Because("run_active")
	}
	if err := s.rec.AuthorizeJob(in.By, runOwner(r)); err != nil || r.Deleted != 0 {
		return none, err
	}
	next := *r
	next.Deleted = s.rec.Now()
	s.rec.PutRun(&next, in.By.User)
	return none, nil
}

// runOwner stands for the jobs of a run: who may steer those may steer it.
func runOwner(r *core.Run) *core.Job {
	return &core.Job{ID: r.Jobs[0], Spec: &core.Spec{User: r.User, Project: r.Project}}
}

// submitUnfit records a job that no node could ever serve: it has failed, with the refusal as its message.
func (in *Submit) submitUnfit(s *State, refusal error) (*Submitted, error) {
	if err := in.checkRun(s); err != nil {
		return nil, err
	}
	j := &core.Job{Spec: in.Spec, Submit: s.rec.Now(), Eligible: s.rec.Now()}
	in.enqueue(s, j)
	edit := s.jobs.Edit(j)
	message := refusal.Error()
	if in.Tried != "" {
		message += "; " + in.Tried
	}
	edit.End(core.Failed, core.ReasonNoCapacity, message)
	edit.Commit()
	return &Submitted{ID: j.ID}, nil
}
