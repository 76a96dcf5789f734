package state

import (
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/servicelife"
)

// TendService brings a service forward: it takes what was found out about its replicas and what its load asks for, then
// starts and ends replicas. Nobody but the server itself asks for it. Reply: nil.
type TendService struct {
	Project core.ProjectName
	Name    string
	ID      string        // the run must still be this one
	Ready   []ReplicaNews `json:",omitempty"`
	Drained []int32       `json:",omitempty"` // numbers of replicas that have no requests left
	Scale   []ScaleGroup  `json:",omitempty"`
	// Blobs are those of the replicas that it may start: script, environment and files of the newest version.
	Blobs []core.Blob `json:"-"`
}

// ReplicaNews is what was found out about a replica in an attempt of its job.
type ReplicaNews struct {
	Num     int32
	Attempt int32
	Ready   bool
	Message string `json:",omitempty"` // why it is not
}

// ScaleGroup is how many replicas the load asks for.
type ScaleGroup struct {
	Group int32
	Want  int32
	Why   string
}

// StopService ends a service: its replicas finish the requests that they have, unless it is to end at once. Reply: nil.
type StopService struct {
	By      core.Identity
	Project core.ProjectName
	Name    string
	Abort   bool `json:",omitempty"`
}

func (*TendService) input() {}
func (*StopService) input() {}

func (in *TendService) apply(s *State) (None, error) {
	r, ok := s.rec.Run(in.Project, in.Name)
	if !ok || r.ID != in.ID || r.Service == nil {
		return none, nil // it has ended meanwhile
	}
	svc := r.Service.Clone()
	changed := in.report(svc, s.rec.Now())
	s.bringForward(r, svc, &tending{blobs: in.Blobs, changed: changed, drained: in.Drained})
	return none, nil
}

// report takes the news, and reports whether they are any.
func (in *TendService) report(svc *core.Service, now core.Time) (changed bool) {
	for _, n := range in.Ready {
		for i := range svc.Replicas {
			x := &svc.Replicas[i]
			if x.Num != n.Num {
				continue
			}
			at := int32(0)
			if n.Ready {
				at = n.Attempt
			}
			changed = changed || x.ReadyIn != at || x.Message != n.Message
			x.ReadyIn, x.Message, x.Was = at, n.Message, x.Was || n.Ready
		}
	}
	for _, d := range in.Scale {
		if d.Group < 0 || int(d.Group) >= len(svc.Groups) || svc.Stop != nil {
			continue
		}
		g := &svc.Groups[d.Group]
		if want := min(max(d.Want, g.Min), g.Max); want != g.Want {
			g.Want, g.Why, g.Scaled, changed = want, d.Why, now, true
		}
	}
	return changed
}

// tending is how a service is brought forward.
type tending struct {
	blobs   []core.Blob
	changed bool    // its record is no longer what is stored
	drained []int32 // see TendService
	by      core.UserName
}

// bringForward does what the rules say is to be done about a service now. svc is the caller's copy of r's. The record
// is stored before jobs end: their ends change it again.
func (s *State) bringForward(r *core.Run, svc *core.Service, t *tending) {
	steps := servicelife.Plan(svc, s.rec.Job, s.rec.Now())
	next := *r
	next.Service = svc
	if steps.RollBack != "" {
		servicelife.RollBack(svc, steps.RollBack)
		next.Config = svc.Current().Config
		steps = servicelife.Plan(svc, s.rec.Job, s.rec.Now())
		t.changed = true
	}
	for _, g := range steps.Start {
		t.changed = true
		if err := s.startReplica(&next, g, t.blobs); err != nil {
			servicelife.Fail(svc, g, "a replica cannot be started: "+err.Error(), s.rec.Now(), false)
			break
		}
	}
	stop := steps.Stop
	for i := range svc.Replicas {
		x := &svc.Replicas[i]
		if x.Draining == 0 && slices.Contains(steps.Drain, x.Num) {
			x.Draining, t.changed = s.rec.Now(), true
		} else if x.Draining != 0 && !x.Stopped && slices.Contains(t.drained, x.Num) && !slices.Contains(stop, x.Num) {
			stop = append(stop, x.Num)
		}
	}
	var ids []core.JobID
	for i := range svc.Replicas {
		if x := &svc.Replicas[i]; slices.Contains(stop, x.Num) && !x.Stopped {
			x.Stopped, t.changed = true, true
			ids = append(ids, x.Job)
		}
	}
	if t.changed {
		s.rec.PutRun(&next, t.by)
	}
	for _, id := range ids {
		s.stopReplica(id, svc.Stop)
	}
}

// startReplica adds a replica of the newest version to a group.
func (s *State) startReplica(r *core.Run, group int32, blobs []core.Blob) error {
	svc := r.Service
	v := svc.Current()
	spec := *v.Specs[group]
	// What only administrators may ask for was decided on when the service came.
	in := &Submit{By: core.Identity{User: r.User, Project: r.Project}, Spec: &spec, Site: true, Groups: svc.UnixGroups}
	for _, b := range blobs {
		switch b.Hash {
		case spec.Script:
			in.Script = b.Data
		case spec.Env:
			in.Env = b.Data
		case spec.More().Files:
			in.Files = b.Data
		}
	}
	if in.Script == nil {
		return core.Errorf(core.Unavailable, "its script is not at hand")
	}
	j, err := in.prepare(s, &spec)
	if err != nil {
		return err
	}
	in.enqueue(s, j)
	addReplica(r, group, j.ID)
	return nil
}

// addReplica notes a new job of a service.
func addReplica(r *core.Run, group int32, id core.JobID) {
	svc := r.Service
	svc.Replicas = append(svc.Replicas, core.Replica{
		Num: svc.Next, Group: group, Version: svc.Current().Num, Job: id,
	})
	svc.Next++
	jobsOfReplicas(r)
}

// jobsOfReplicas has the run name the jobs of its replicas. The last ones stay named when there are none.
func jobsOfReplicas(r *core.Run) {
	if len(r.Service.Replicas) == 0 {
		return
	}
	r.Jobs = make([]core.JobID, len(r.Service.Replicas))
	for i := range r.Service.Replicas {
		r.Jobs[i] = r.Service.Replicas[i].Job
	}
}

// stopReplica ends a replica's job: for its service, or because somebody wants the service to end.
func (s *State) stopReplica(id core.JobID, by *core.Stop) {
	j, ok := s.rec.Job(id)
	if !ok || j.State.Final() && !j.Flags.Has(core.Requeueing) {
		return
	}
	in := &Cancel{Job: id}
	if by != nil {
		in.By, in.Abort = core.Identity{User: by.By, UID: by.UID}, by.Abort
	}
	if by == nil || by.By == "" {
		edit := s.jobs.Edit(j)
		edit.Job.Flags &^= core.Requeueing | core.RequeueHold
		edit.Job.Stop = in.stop(s.rec.Now())
		if j.State == core.Pending {
			edit.Job.Start = s.rec.Now()
		} else {
			edit.Job.Flags |= core.CancelAsked
		}
		edit.End(core.Cancelled, core.ReasonScaledDown, "")
		edit.Commit()
		return
	}
	in.cancelOne(s, j)
}

// endReplica notes the end of a job of a service, which may be the end of the run.
func (s *State) endReplica(r *core.Run, j *core.Job) {
	next := *r
	next.Service = r.Service.Clone()
	failing := r.Service.Stop == nil
	over := servicelife.Ended(next.Service, j, s.rec.Job, s.rec.Now())
	next.Config = next.Service.Current().Config
	if failing && next.Service.Stop != nil { // this one ended the run
		next.FailedTask = j.ID
	}
	jobsOfReplicas(&next)
	if over {
		next.Ended = s.rec.Now()
	}
	s.rec.PutRun(&next, "")
}

func (in *StopService) apply(s *State) (None, error) {
	r, ok := s.rec.Run(in.Project, in.Name)
	if !ok || r.Service == nil {
		return none, core.Errorf(core.NotFound, "no service %q is active in project %s", in.Name, in.Project).
			Because("invalid_run")
	}
	if err := s.rec.AuthorizeJob(in.By, runOwner(r)); err != nil {
		return none, err
	}
	svc := r.Service.Clone()
	stop := (&Cancel{By: in.By, Abort: in.Abort}).stop(s.rec.Now())
	if svc.Stop != nil && !(in.Abort && !svc.Stop.Abort) {
		return none, nil
	}
	svc.Stop = stop
	if len(svc.Replicas) == 0 {
		next := *r
		next.Service, next.Ended = svc, s.rec.Now()
		s.rec.PutRun(&next, in.By.User)
		return none, nil
	}
	if in.Abort {
		for i := range svc.Replicas {
			svc.Replicas[i].Stopped = false // those that end by themselves end at once
		}
	}
	s.bringForward(r, svc, &tending{changed: true, by: in.By.User})
	return none, nil
}

// editService makes the running service one that a new description asks for. Replicas change one after the other, and
// only where their jobs, port or probes do; others take the number of the new deployment.
func (in *EditRun) editService(s *State, next *core.Run) error {
	old := next.Service
	if old.Stop != nil {
		return core.Errorf(core.Conflict, "run %s is being stopped", next.Name).Because("invalid_run")
	}
	if in.Service == nil || len(in.Service.Groups) != len(old.Groups) {
		return core.Errorf(core.Invalid, "run %s is a service, and its groups of replicas cannot change in place",
			next.Name).Because("invalid_run")
	}
	ask, err := servicelife.Clean(in.Service)
	if err != nil {
		return err
	}
	svc := old.Clone()
	svc.Open, svc.KeepPrefix, svc.Model = ask.Open, ask.KeepPrefix, ask.Model
	svc.RateLimits, svc.Drain, svc.Message = ask.RateLimits, ask.Drain, ""
	for g := range svc.Groups {
		to, from := &svc.Groups[g], &ask.Groups[g]
		to.Name, to.Min, to.Max, to.Scaling = from.Name, from.Min, from.Max, from.Scaling
		to.Want = min(max(to.Want, to.Min), to.Max)
		to.Failures, to.RetryAt = 0, 0
	}
	v := *svc.Current()
	was := v.Num
	v.Num, v.Config = next.Updates, in.Hash
	if in.Spec == nil {
		v.Specs = slices.Clone(v.Specs)
		for i, spec := range v.Specs {
			if spec.More().RunPriority != in.Priority {
				changed, extra := *spec, *spec.More()
				extra.RunPriority = in.Priority
				changed.Extra, v.Specs[i] = &extra, &changed
			}
		}
		*svc.Current() = v
		for i := range svc.Replicas {
			if svc.Replicas[i].Version == was {
				svc.Replicas[i].Version = v.Num
			}
		}
		next.Service = svc
		return nil
	}
	if !in.By.Admin && in.By.User != next.User { // it runs as its user, who alone says what that is
		return core.Errorf(core.Denied, "run %s belongs to %s, who alone may change what its replicas run", next.Name,
			next.User).Because("access_denied")
	}
	in.Spec.User, in.Spec.Project, in.Spec.Run = next.User, next.Project, next.Name
	in.Spec.UID, in.Spec.GID = v.Specs[0].UID, v.Specs[0].GID
	by := &Submit{By: in.By, Groups: svc.UnixGroups, Strict: true}
	if err := s.admission.Admit(by.request(), in.Spec); err != nil {
		return err
	}
	v.Port, v.Probes, v.Specs = ask.Versions[0].Port, ask.Versions[0].Probes, []*core.Spec{in.Spec}
	svc.Versions = append(svc.Versions, v)
	s.rec.AddBlob(in.Spec.Script, in.Script)
	s.rec.AddBlob(in.Spec.Env, in.Env)
	s.rec.AddBlob(in.Spec.More().Files, in.Files)
	next.Service = svc
	return nil
}
