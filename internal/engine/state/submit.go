package state

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/jsontext"
	"bireme.dev/bireme/internal/engine/state/admit"
	"bireme.dev/bireme/internal/engine/state/depend"
	"bireme.dev/bireme/internal/engine/state/live"
	"bireme.dev/bireme/internal/engine/state/named"
	"bireme.dev/bireme/internal/engine/state/runlife"
	"bireme.dev/bireme/internal/engine/state/servicelife"
	"bireme.dev/bireme/internal/engine/state/speccheck"
)

// apply admits a job: identity, partition, limits, then a record. The order of checks is the order users meet them.
func (in *Submit) apply(s *State) (*Submitted, error) {
	spec := in.Spec
	if use, ok := s.submitKeys.Find(in.Key); ok && in.Key != "" {
		if use.User != spec.User {
			return nil, core.Errorf(core.Conflict, "this submit key was used by somebody else").Because("submit_key")
		}
		return &Submitted{ID: use.Job, Duplicate: true}, nil
	}
	if err := speccheck.Submission(in.Key, in.Spec, in.Components); err != nil {
		return nil, err
	}
	if len(in.Components) > 0 {
		return in.submitHet(s)
	}
	j, err := in.prepare(s, spec)
	if err != nil && in.FailUnfit && speccheck.IsUnfit(err) {
		return in.submitUnfit(s, err)
	}
	if err != nil {
		return nil, err
	}
	in.enqueue(s, j)
	return &Submitted{ID: j.ID}, nil
}

// prepare makes the record of a job that may be, without an id.
func (in *Submit) prepare(s *State, spec *core.Spec) (*core.Job, error) {
	if err := s.admission.Admit(in.request(), spec); err != nil {
		return nil, err
	}
	j := &core.Job{Spec: spec, Submit: s.rec.Now(), Eligible: max(s.rec.Now(), spec.Begin)}
	j.Priority = s.ranking.PriorityOf(j, spec)
	if spec.Array != "" {
		ref, err := s.admission.Array(spec)
		if err != nil {
			return nil, err
		}
		j.Array = ref
	}
	if err := s.counts.Admit(in.By, j, in.Components); err != nil {
		return nil, err
	}
	if err := s.limits.Admit(j); err != nil {
		return nil, err
	}
	if err := in.checkRun(s); err != nil {
		return nil, err
	}
	if !spec.More().Dependency.IsZero() {
		if err := s.dependencies.Admit(in.lookup(), j); err != nil {
			return nil, err
		}
	}
	if err := runlife.Admit(j, s.cfg.Zone.Location, s.rec.Now()); err != nil {
		return nil, err
	}
	if spec.Hold {
		j.Flags |= core.HeldUser
		j.Priority = 0
	}
	return j, nil
}

// enqueue gives a prepared record its id and puts it down.
func (in *Submit) enqueue(s *State, j *core.Job) {
	spec := j.Spec
	j.ID = s.rec.TakeJobID()
	j.SpecID = j.ID
	if j.Array != nil {
		j.Array.Base = j.ID
	}
	if !s.cfg.Unkept {
		s.rec.AddSpec(j.SpecID, spec)
		s.rec.AddBlob(spec.Script, in.Script)
		s.rec.AddBlob(spec.Env, in.Env)
		s.rec.AddBlob(spec.More().Files, in.Files)
	}
	if in.Run != nil {
		in.createRun(s, j.ID)
	}
	edit := s.jobs.EditRecord(j)
	edit.CommitSilently() // its event comes once its key is noted
	if in.Key != "" {
		s.submitKeys.Remember(in.Key, j.ID, spec.User)
		c := s.rec.Changes()
		c.Keys = append(c.Keys, core.SubmitKey{Key: in.Key, Job: j.ID, At: s.rec.Now(), User: spec.User})
	}
	edit.Event(core.JobSubmitted, core.Event{By: in.By.User, Data: s.rec.EventData(live.SubmittedData, j)})
	if j.Needs != nil {
		s.dependencies.EvaluateNew(j.ID, in.Ended)
	}
}

// appendJSON appends a JSON string.
func appendJSON(b []byte, t string) []byte { return jsontext.AppendString(b, t) }

// request is who submits.
func (in *Submit) request() *admit.Request {
	return &admit.Request{By: in.By, Groups: in.Groups, Strict: in.Strict, Site: in.Site}
}

// lookup is what the submission knows of the jobs that its dependency names.
func (in *Submit) lookup() *depend.Lookup {
	return &depend.Lookup{User: in.Spec.User, Ended: in.Ended, Seen: in.Seen, Hidden: in.Hidden, Strict: in.Strict}
}

// checkRun checks a run's name: one open run a name and project.
func (in *Submit) checkRun(s *State) error {
	if in.Run == nil {
		return nil
	}
	if !named.IsValid(in.Run.Name) {
		return core.Errorf(core.Invalid, "%q is not a valid run name", in.Run.Name).Because("invalid_name")
	}
	if in.Run.Service != nil {
		if in.Spec.Array != "" || in.Spec.Kind != core.Batch || len(in.Components) > 0 {
			return core.Errorf(core.Invalid, "a service's replicas are plain jobs, no arrays").Because("invalid_service")
		}
		svc, err := servicelife.Clean(in.Run.Service)
		if err != nil {
			return err
		}
		in.Run.Service = svc
	}
	in.Run.Project = in.Spec.Project
	if r, ok := s.rec.Run(in.Run.Project, in.Run.Name); ok {
		return core.Errorf(core.Conflict, "run %s already exists (job %d); stop it first or use another name", r.Name,
			r.Jobs[0]).Because("run_exists")
	}
	return nil
}

func (in *Submit) createRun(s *State, id core.JobID) {
	r := in.Run
	r.Jobs, r.Created, r.User = []core.JobID{id}, s.rec.Now(), in.Spec.User
	in.Spec.Run = r.Name
	if r.Service != nil {
		in.beginService(id)
	}
	s.rec.AddBlob(r.Config, in.Config)
	s.rec.PutRun(r, "")
}

// beginService makes the first job of a run the first replica of its service. The others follow when it is tended.
func (in *Submit) beginService(id core.JobID) {
	r := in.Run
	svc := r.Service.Clone()
	r.Service = svc
	svc.Replicas, svc.Next, svc.Stop, svc.UnixGroups = nil, 0, nil, in.Groups
	v := svc.Current()
	v.Num, v.Config, v.Specs = 0, r.Config, []*core.Spec{in.Spec}
	for g := range svc.Groups {
		// One that may have no replicas begins with one, so that what is wrong with it shows when it is applied.
		svc.Groups[g].Want = max(1, svc.Groups[g].Min)
	}
	addReplica(r, 0, id)
}

// Try is a submission that is only admitted or refused: nothing waits or runs afterwards, but a number is used up, as
// in Slurm. Reply: *core.Job, as it would wait.
type Try struct{ Submit }

func (*Try) input() {}

func (in *Try) apply(s *State) (*core.Job, error) {
	if err := speccheck.Submission(in.Key, in.Spec, in.Components); err != nil {
		return nil, err
	}
	j, err := in.Submit.prepare(s, in.Spec)
	if err != nil {
		return nil, err
	}
	j.ID = s.rec.TakeJobID()
	j.SpecID = j.ID
	if j.Array != nil {
		j.Array.Base = j.ID
	}
	return j, nil
}
