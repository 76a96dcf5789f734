package state

import (
	"maps"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/engine/state/admit"
	"bireme.dev/bireme/internal/engine/state/jobs"
	"bireme.dev/bireme/internal/engine/state/speccheck"
)

// updateRequest changes what a job asks for and how many tasks of its array may run.
func (in *UpdateJob) updateRequest(s *State, next *core.Job, spec *core.Spec) error {
	c := &in.Spec
	if c.AdminComment != nil && !in.By.Admin {
		return core.Errorf(core.Denied, "only an administrator may set this comment").Because("access_denied")
	}
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
	if next.State != core.Pending && (c.Nodes != nil || c.NodeList != nil) {
		if err := in.shrink(next); err != nil {
			return err
		}
		left := int32(len(next.Alloc.Nodes) - len(in.drop)) // if it comes back to the queue it asks for no more
		spec.Shape.NodesMin, spec.Shape.NodesMax = left, left
		return nil
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
	if c.Constraint != nil || c.Prefer != nil || c.Switches != nil || c.NodeList != nil || c.Exclude != nil ||
		c.Contiguous != nil || c.TmpDisk != nil {
		x := *spec.More()
		speccheck.SetIf(&x.Constraint, c.Constraint)
		speccheck.SetIf(&x.Prefer, c.Prefer)
		speccheck.SetIf(&x.Switches, c.Switches)
		speccheck.SetIf(&x.NodeList, c.NodeList)
		speccheck.SetIf(&x.Exclude, c.Exclude)
		speccheck.SetIf(&x.Contiguous, c.Contiguous)
		speccheck.SetIf(&x.TmpDisk, c.TmpDisk)
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
	if next.State != core.Pending && (c.WCKey != nil || c.Stdin != nil || c.Stdout != nil || c.Stderr != nil ||
		c.WorkDir != nil) {
		return core.Errorf(core.Conflict, "job %d has started", next.ID).Because("job_running")
	}
	x := *spec.More()
	speccheck.SetIf(&x.MailUser, c.MailUser)
	speccheck.SetIf(&x.MailTypes, c.MailTypes)
	speccheck.SetIf(&x.WCKey, c.WCKey)
	for name, value := range map[string]*string{
		"admin-comment": c.AdminComment, "delay-boot": c.DelayBoot, "reboot": c.Reboot,
	} {
		if value != nil {
			x.Kept = withSlurm(x.Kept, name, *value)
		}
	}
	spec.Extra = &x
	speccheck.SetIf(&spec.IO.WorkDir, c.WorkDir)
	speccheck.SetIf(&spec.IO.Stdin, c.Stdin)
	speccheck.SetIf(&spec.IO.Stdout, c.Stdout)
	speccheck.SetIf(&spec.IO.Stderr, c.Stderr)
	return nil
}

// shrink notes in drop the nodes that a job that runs gives back: all but the first so many, or all that a list does
// not name. The first stays: its script runs there. What runs of the job on the others is ended once nothing else of
// the change can be refused.
func (in *UpdateJob) shrink(next *core.Job) error {
	c := &in.Spec
	left := c.AskChange
	left.Nodes, left.NodeList = nil, nil
	refused := core.Errorf(core.Conflict, "job %d has started; its nodes can no longer change", next.ID).Because(
		"not_supported") // but for giving some back
	if left.Any() || next.State != core.Running || next.Alloc == nil || next.Spec.More().Container != nil {
		return refused
	}
	keep := map[core.NodeName]bool{}
	switch {
	case c.NodeList != nil:
		names, err := hostlist.Expand(*c.NodeList, len(next.Alloc.Nodes))
		if err != nil || len(names) == 0 {
			return core.Errorf(core.Invalid, "nodelist: %q names no nodes", *c.NodeList).Because("invalid_node")
		}
		for _, n := range names {
			if !jobs.HoldsNode(next, core.NodeName(n)) {
				return core.Errorf(core.Invalid, "node %s is not in job %d", n, next.ID).Because("invalid_node")
			}
			keep[core.NodeName(n)] = true
		}
	case c.Nodes.Min < 1 || int(c.Nodes.Min) >= len(next.Alloc.Nodes):
		return refused
	default:
		for i := range c.Nodes.Min {
			keep[next.Alloc.Nodes[i].Node] = true
		}
	}
	if !keep[next.Alloc.Nodes[0].Node] {
		return refused
	}
	for i := range next.Alloc.Nodes {
		if name := next.Alloc.Nodes[i].Node; !keep[name] {
			in.drop = append(in.drop, name)
		}
	}
	return nil
}

// withSlurm gives a copy of the options in which one that Slurm's front end keeps has another value; empty: none.
func withSlurm(k *core.KeptOptions, name, value string) *core.KeptOptions {
	out := core.KeptOptions{}
	if k != nil {
		out = *k
	}
	out.Slurm = maps.Clone(out.Slurm)
	if value == "" {
		delete(out.Slurm, name)
		return &out
	}
	if out.Slurm == nil {
		out.Slurm = map[string]string{}
	}
	out.Slurm[name] = value
	return &out
}
