package state

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/jobs"
	"bireme.dev/bireme/internal/engine/state/limits"
	"bireme.dev/bireme/internal/engine/state/speccheck"
	"bireme.dev/bireme/internal/policy"
	"bireme.dev/bireme/internal/sched"
)

// submitHet files all components, or none.
func (in *Submit) submitHet(s *State) (*Submitted, error) {
	specs := append([]*core.Spec{in.Spec}, in.Components...)
	jobs := make([]*core.Job, len(specs))
	for i, spec := range specs {
		switch {
		case spec.Array != "":
			return nil, core.Errorf(core.Invalid, "component %d: a het job cannot be an array", i).Because("invalid_array")
		case in.Run != nil && spec.More().Container == nil: // one starts the commands of all, in their containers
			return nil, core.Errorf(core.Invalid, "component %d: groups of a run need containers", i).Because("invalid_het")
		case spec.User != in.Spec.User || spec.Kind != in.Spec.Kind:
			return nil, core.Errorf(core.Invalid, "component %d: all components must have the same user and kind",
				i).Because("invalid_het")
		}
		x := *spec.More()
		x.Het = &core.HetRef{Lead: s.rec.NextJob(), Offset: int32(i), Count: int32(len(specs))}
		spec.Extra, spec.Hold = &x, in.Spec.Hold
		switch {
		case i > 0 && in.Run != nil: // its containers know what runs in them
			spec.Run, spec.Script, spec.Env, x.Files = in.Run.Name, in.Spec.Script, in.Spec.Env, in.Spec.More().Files
		case i > 0:
			spec.Script = core.Hash{}
		}
		j, err := in.prepare(s, spec)
		if err != nil {
			if i > 0 {
				err = speccheck.InComponent(err, i)
			}
			return nil, err
		}
		jobs[i] = j
		if l := s.limits.Current(); l.Tally != nil { // the next one counts this one too
			g := l.Gate(l.Tally, j)
			l.Tally.Submit(g, 1)
			defer l.Tally.Submit(g, -1) // filing it counts it for good
		}
	}
	first := *in
	for i, j := range jobs {
		first.enqueue(s, j)
		if i == 0 { // the key and the blobs are the first one's
			first.Key, first.Script, first.Env, first.Files, first.Run = "", nil, nil, nil, nil
		}
	}
	return &Submitted{ID: jobs[0].ID}, nil
}

// checkHet checks that all components can start where the plan says, side by side.
func (in *Start) checkHet(s *State, ref *core.HetRef) error {
	if ref.Offset != 0 || len(in.Rest) != int(ref.Count)-1 {
		return core.Errorf(core.Conflict, "component %d of job %d does not start alone", ref.Offset, ref.Lead)
	}
	var undo []func()
	defer func() {
		for i := len(undo) - 1; i >= 0; i-- {
			undo[i]()
		}
	}()
	lim := s.limits.Current()
	for k := range int(ref.Count) {
		part := in
		if k > 0 {
			part = &in.Rest[k-1]
		}
		j, ok := s.jobs.HetComponent(ref, int32(k))
		if !ok || part.Job != j.ID || j.State != core.Pending || sched.IsBlocked(j) || j.Eligible > s.rec.Now() {
			return core.Errorf(core.Conflict, "component %d of job %d does not wait to start", k, ref.Lead)
		}
		if err := s.limits.CheckStart(j, part.Alloc); err != nil {
			return err
		}
		if err := part.recheck(s, j); err != nil {
			return err
		}
		if !s.cluster.PlacementFree(j, part.Alloc) {
			return core.Errorf(core.Conflict, "job %d: what the plan gives it is not free", j.ID)
		}
		trial := *j
		trial.State, trial.Start, trial.Alloc = core.Running, s.rec.Now(), part.Alloc
		s.cluster.Allocate(&trial)
		s.cluster.CountLicenses(trial.Alloc, 1)
		undo = append(undo, func() { s.cluster.CountLicenses(trial.Alloc, -1); s.cluster.Release(&trial) })
		if t := lim.Tally; t != nil {
			if g := lim.GateIn(t, j.Spec, part.Alloc.Partition); g != nil {
				undo = append(undo, releaseUse(t, t.Start(g, limits.RequestOf(lim.Rules, part.Alloc), limits.LatestEnd(&trial))))
			}
		}
	}
	return nil
}

func releaseUse(t *policy.Tally, st *policy.Use) func() { return func() { t.End(st) } }

// changesAllComponents reports whether an update changes what all components have in common.
func changesAllComponents(in *UpdateJob) bool {
	return in.Hold != nil || in.Priority != nil || in.Dependency != nil
}

// updateComponents makes the change of the first component to the others, if it was made.
func (in *UpdateJob) updateComponents(s *State, was *core.Job, ref *core.HetRef) {
	if lead, ok := s.jobs.HetComponent(ref, 0); !ok || lead == was {
		return
	}
	for k := int32(1); k < ref.Count; k++ {
		if f, ok := s.jobs.HetComponent(ref, k); ok && !f.State.Final() {
			part := UpdateJob{
				By: in.By, Job: f.ID, Hold: in.Hold, AdminHold: in.AdminHold, Priority: in.Priority,
				Dependency: in.Dependency, Ended: in.Ended, Seen: in.Seen, part: true,
			}
			_, _ = part.apply(s) // one that is being requeued waits with the others anyhow
		}
	}
}

// suspendComponents stops the other components with the first one, if it was stopped, or lets them go on.
func (in *Suspend) suspendComponents(s *State, was *core.Job, ref *core.HetRef) {
	if lead, ok := s.jobs.HetComponent(ref, 0); ref.Offset > 0 || !ok || lead == was {
		return
	}
	for k := int32(1); k < ref.Count; k++ {
		if f, ok := s.jobs.HetComponent(ref, k); ok && !jobs.IsOver(f) {
			_, _ = (&Suspend{By: in.By, Job: f.ID, Resume: in.Resume, part: true}).apply(s) // it may be so already
		}
	}
}
