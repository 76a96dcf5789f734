package state

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/admit"
	"bireme.dev/bireme/internal/engine/state/speccheck"
)

// updateRequest changes what a job asks for and how many tasks of its array may run.
func (in *UpdateJob) updateRequest(s *State, next *core.Job, spec *core.Spec) error {
	c := &in.Spec
	if c.Throttle != nil {
		if next.Array == nil {
			return core.Errorf(core.Invalid, "job %d is not an array: only arrays have a task limit",
				next.ID).Because("not_an_array")
		}
		if *c.Throttle < 0 {
			return core.Errorf(core.Invalid, "an array's limit is 0, for none, or above, not %d",
				*c.Throttle).Because("invalid_shape")
		}
		spec.Throttle = *c.Throttle
	}
	speccheck.SetIf(&spec.Requeue, c.Requeue)
	if err := updateMailAndIO(&c.PaperChange, next, spec); err != nil {
		return err
	}
	if !c.AskChange.Any() {
		return nil
	}
	if next.State != core.Pending && c.Nodes != nil { // as Slurm: it has words of its own for this
		return core.Errorf(core.Conflict, "job %d has started; its nodes can no longer change", next.ID).Because(
			"not_supported")
	}
	if next.State != core.Pending {
		return core.Errorf(core.Conflict, "job %d has started", next.ID).Because("job_running")
	}
	by := &admit.Request{By: in.By, Groups: in.Groups, Strict: in.Strict}
	if c.Project != nil {
		spec.Project = *c.Project
		if err := s.admission.Project(by, spec); err != nil {
			return err
		}
		if err := s.admission.QOS(spec); err != nil {
			return err
		}
	}
	if c.Constraint != nil || c.Prefer != nil || c.Switches != nil || c.NodeList != nil || c.Exclude != nil {
		x := *spec.More()
		speccheck.SetIf(&x.Constraint, c.Constraint)
		speccheck.SetIf(&x.Prefer, c.Prefer)
		speccheck.SetIf(&x.Switches, c.Switches)
		speccheck.SetIf(&x.NodeList, c.NodeList)
		speccheck.SetIf(&x.Exclude, c.Exclude)
		spec.Extra = &x
	}
	if err := speccheck.ApplyShapeChange(&c.AskChange, &spec.Shape); err != nil {
		return err
	}
	next.Room = nil // it was found for another shape
	return s.admission.Shape(by, spec)
}

// updateMailAndIO changes what decides nothing. A job that has started has its files open.
func updateMailAndIO(c *core.PaperChange, next *core.Job, spec *core.Spec) error {
	if !c.Any() {
		return nil
	}
	if next.State != core.Pending && (c.WCKey != nil || c.Stdin != nil || c.Stdout != nil || c.Stderr != nil) {
		return core.Errorf(core.Conflict, "job %d has started", next.ID).Because("job_running")
	}
	x := *spec.More()
	speccheck.SetIf(&x.MailUser, c.MailUser)
	speccheck.SetIf(&x.MailTypes, c.MailTypes)
	speccheck.SetIf(&x.WCKey, c.WCKey)
	spec.Extra = &x
	speccheck.SetIf(&spec.IO.Stdin, c.Stdin)
	speccheck.SetIf(&spec.IO.Stdout, c.Stdout)
	speccheck.SetIf(&spec.IO.Stderr, c.Stderr)
	return nil
}
