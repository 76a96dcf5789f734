package state

import (
	"cmp"
	"slices"

	"bireme.dev/bireme/internal/core"
)

// updateRequest changes what a job asks for and how many tasks of its array may run.
func (s *State) updateRequest(in *UpdateJob, next *core.Job, spec *core.Spec) error {
	c := &in.Spec
	if c.Throttle != nil {
		if next.Array == nil {
			return core.Errorf(core.Invalid, "job %d is not an array, which alone has a limit on its tasks",
				next.ID).Because("not_an_array")
		}
		if *c.Throttle < 0 {
			return core.Errorf(core.Invalid, "an array's limit is 0, for none, or above, not %d",
				*c.Throttle).Because("invalid_shape")
		}
		spec.Throttle = *c.Throttle
	}
	setIf(&spec.Requeue, c.Requeue)
	if err := updateMailAndIO(&c.PaperChange, next, spec); err != nil {
		return err
	}
	if !c.AskChange.Any() {
		return nil
	}
	if next.State != core.Pending && c.Nodes != nil { // as Slurm: it has words of its own for this
		return core.Errorf(core.Conflict, "job %d has started; its nodes are given", next.ID).Because("not_supported")
	}
	if next.State != core.Pending {
		return core.Errorf(core.Conflict, "job %d has started", next.ID).Because("job_running")
	}
	by := &Submit{By: in.By, Groups: in.Groups, Strict: in.Strict}
	if c.Project != nil {
		spec.Project = *c.Project
		if err := s.admitProject(by, spec); err != nil {
			return err
		}
		if err := s.admitQOS(spec); err != nil {
			return err
		}
	}
	if c.Constraint != nil || c.Prefer != nil || c.Switches != nil || c.NodeList != nil || c.Exclude != nil {
		x := *spec.More()
		setIf(&x.Constraint, c.Constraint)
		setIf(&x.Prefer, c.Prefer)
		setIf(&x.Switches, c.Switches)
		setIf(&x.NodeList, c.NodeList)
		setIf(&x.Exclude, c.Exclude)
		spec.Extra = &x
	}
	if err := applyShapeChange(&c.AskChange, &spec.Shape); err != nil {
		return err
	}
	next.Room = nil // it was found for another shape
	return s.admitShape(by, spec)
}

// applyShapeChange changes a shape. What admission filled in and the change does not name is filled in anew.
func applyShapeChange(c *core.AskChange, sh *core.Shape) error {
	for _, n := range []struct {
		name  string
		v     *int32
		least int32
	}{
		{"cpus", c.CPUs, 1}, {"ntasks", c.Tasks, 1}, {"ntasks-per-node", c.TasksPerNode, 0},
		{"cpus-per-task", c.CPUsPerTask, 1}, {"mincpus", c.MinCPUs, 0},
	} {
		if n.v != nil && *n.v < n.least {
			return core.Errorf(core.Invalid, "%s is %d; it is at least %d", n.name, *n.v, n.least).Because("invalid_shape")
		}
	}
	if c.Nodes != nil {
		if c.Nodes.Min < 1 {
			return core.Errorf(core.Invalid, "a job has at least one node, not %d", c.Nodes.Min).Because("invalid_shape")
		}
		sh.NodesMin, sh.NodesMax = c.Nodes.Min, cmp.Or(c.Nodes.Max, c.Nodes.Min)
		sh.Given |= core.GivenNodes
	}
	if c.TasksPerNode != nil {
		sh.TasksPerNode = *c.TasksPerNode
		sh.Given |= core.GivenTasksPerNode
	}
	if c.CPUsPerTask != nil {
		sh.CPUsPerTask = *c.CPUsPerTask
		sh.Given |= core.GivenCPUsPerTask
	}
	setIf(&sh.MinCPUs, c.MinCPUs)
	if c.Gres != nil {
		sh.Gres = slices.Clone(*c.Gres)
		sh.Given |= core.GivenGres
	}
	switch each := max(1, sh.CPUsPerTask); {
	case c.Tasks != nil:
		sh.Tasks = *c.Tasks
		sh.Given |= core.GivenTasks
	case c.CPUs != nil:
		sh.Tasks = (*c.CPUs-1)/each + 1
		sh.Given |= core.GivenTasks
	case (c.Nodes != nil || c.TasksPerNode != nil) && sh.Given&core.GivenTasks == 0:
		sh.Tasks = 0
	}
	if c.MemPerNode != nil {
		sh.MemPerNode, sh.MemPerCPU = *c.MemPerNode, 0
		sh.Given = sh.Given&^core.GivenMemPerCPU | core.GivenMemPerNode
	}
	if c.MemPerCPU != nil {
		sh.MemPerNode, sh.MemPerCPU = 0, *c.MemPerCPU
		sh.Given = sh.Given&^core.GivenMemPerNode | core.GivenMemPerCPU
	}
	return nil
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
	setIf(&x.MailUser, c.MailUser)
	setIf(&x.MailTypes, c.MailTypes)
	setIf(&x.WCKey, c.WCKey)
	spec.Extra = &x
	setIf(&spec.IO.Stdin, c.Stdin)
	setIf(&spec.IO.Stdout, c.Stdout)
	setIf(&spec.IO.Stderr, c.Stderr)
	return nil
}
