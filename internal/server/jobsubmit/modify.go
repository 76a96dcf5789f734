package jobsubmit

import (
	"context"

	lua "github.com/yuin/gopher-lua"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/engine/state"
)

// Change is a change of a job. Plug-ins change Update.
type Change struct {
	Job    *core.Job
	Update *client.Update
	By     uint32 // uid of who changes it
	Now    *state.Snapshot
}

// Modify asks the script about a change.
func (p *Plugins) Modify(ctx context.Context, c *Change) error {
	set, lua := p.now()
	for _, name := range set.Plugins {
		if name != Lua {
			continue
		}
		if err := lua.modify(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// modify calls slurm_job_modify. Its job_desc is a job that asks for nothing but what the change says.
func (s *script) modify(ctx context.Context, in *Change) error {
	if s == nil {
		return broken("there is no job_submit.lua that can be loaded; the server's log says why")
	}
	c := &call{now: in.Now}
	_, err := s.run(ctx, c, func(l *lua.LState) error {
		spec := &core.Spec{Kind: core.Interactive, Requeue: true}
		d := &desc{Submission: &Submission{Spec: spec, Now: in.Now}, call: c, written: map[string]bool{}}
		d.describe(in.Update)
		spec.UID, spec.GID, d.User = in.Job.Spec.UID, in.Job.Spec.GID, string(in.Job.Spec.User)
		rec := lazy(l, func(name string) lua.LValue { return jobField(in.Job, name) })
		code, err := s.function(l, "slurm_job_modify", d.table(l), rec, partTable(l, in.Now), lua.LNumber(in.By))
		d.change(in.Update)
		if err == nil {
			err = answer(code, c.told)
		}
		return err
	})
	return err
}

// describe puts what a change says into a description.
func (d *desc) describe(u *client.Update) {
	s := d.Spec
	put(&s.Name, u.Name)
	put(&s.TimeLimit, u.TimeLimit)
	put(&s.Partition, u.Partition)
	put(&s.QOS, u.QOS)
	put(&s.Nice, u.Nice)
	put(&s.Project, u.Project)
	put(&s.Begin, u.Begin)
	put(&s.Shape.Tasks, u.Tasks)
	put(&s.Shape.TasksPerNode, u.TasksPerNode)
	put(&s.Shape.CPUsPerTask, u.CPUsPerTask)
	put(&s.Shape.MinCPUs, u.MinCPUs)
	put(&s.Shape.Gres, u.Gres)
	put(&s.Shape.MemPerNode, u.MemPerNode)
	put(&s.Shape.MemPerCPU, u.MemPerCPU)
	d.give(core.GivenTasks, u.Tasks != nil)
	d.give(core.GivenNodes, u.Nodes != nil)
	d.give(core.GivenCPUsPerTask, u.CPUsPerTask != nil)
	d.give(core.GivenMemPerNode, u.MemPerNode != nil)
	if u.Nodes != nil {
		s.Shape.NodesMin, s.Shape.NodesMax = u.Nodes.Min, u.Nodes.Max
	}
	x := d.extra()
	put(&x.Comment, u.Comment)
	put(&x.Constraint, u.Constraint)
	put(&x.NodeList, u.NodeList)
	put(&x.Exclude, u.Exclude)
	put(&x.Licenses, u.Licenses)
	put(&x.Reservation, u.Reservation)
	put(&x.Dependency, u.Dependency)
	put(&x.WCKey, u.WCKey)
	put(&x.MailUser, u.MailUser)
	put(&x.MailTypes, u.MailTypes)
	put(&x.TimeMin, u.TimeMin)
	x.Priority = u.Priority
	if u.AdminComment != nil {
		d.keep("admin-comment", *u.AdminComment)
	}
}

func put[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// change puts what the script wrote into a change.
func (d *desc) change(u *client.Update) {
	s, x := d.Spec, d.extra()
	for name := range d.written {
		switch name {
		case "name":
			u.Name = &s.Name
		case "time_limit":
			u.TimeLimit = &s.TimeLimit
		case "partition":
			u.Partition = &s.Partition
		case "qos":
			u.QOS = &s.QOS
		case "nice":
			u.Nice = &s.Nice
		case "account":
			u.Project = &s.Project
		case "begin_time":
			u.Begin = &s.Begin
		case "num_tasks":
			u.Tasks = &s.Shape.Tasks
		case "ntasks_per_node":
			u.TasksPerNode = &s.Shape.TasksPerNode
		case "cpus_per_task":
			u.CPUsPerTask = &s.Shape.CPUsPerTask
		case "pn_min_cpus":
			u.MinCPUs = &s.Shape.MinCPUs
		case "gres", "tres_per_node":
			u.Gres = &s.Shape.Gres
		case "pn_min_memory", "min_mem_per_node", "min_mem_per_cpu":
			if u.MemPerNode, u.MemPerCPU = &s.Shape.MemPerNode, nil; s.Shape.MemPerCPU > 0 {
				u.MemPerNode, u.MemPerCPU = nil, &s.Shape.MemPerCPU
			}
		case "min_nodes", "max_nodes":
			u.Nodes = &core.NodeCount{Min: s.Shape.NodesMin, Max: s.Shape.NodesMax}
		case "priority":
			u.Priority = x.Priority
		default:
			d.changeMore(name, u)
		}
	}
}

func (d *desc) changeMore(name string, u *client.Update) {
	x := d.extra()
	switch name {
	case "comment":
		u.Comment = &x.Comment
	case "admin_comment":
		text := x.SlurmOption("admin-comment")
		u.AdminComment = &text
	case "features":
		u.Constraint = &x.Constraint
	case "req_nodes":
		u.NodeList = &x.NodeList
	case "exc_nodes":
		u.Exclude = &x.Exclude
	case "licenses":
		u.Licenses = &x.Licenses
	case "reservation":
		u.Reservation = &x.Reservation
	case "dependency":
		u.Dependency = &x.Dependency
	case "wckey":
		u.WCKey = &x.WCKey
	case "mail_user":
		u.MailUser = &x.MailUser
	case "mail_type":
		u.MailTypes = &x.MailTypes
	case "time_min":
		u.TimeMin = &x.TimeMin
	}
}

// jobField is a field of a job's record, by Slurm's name: what it asks for as job_desc has it, and what became of it.
func jobField(j *core.Job, name string) lua.LValue {
	switch name {
	case "job_id":
		return lua.LNumber(j.ID)
	case "job_state":
		return lua.LNumber(j.State) // the numbers are those of Slurm
	case "priority":
		return lua.LNumber(j.Priority)
	case "start_time":
		return lua.LNumber(j.Start.Unix())
	case "end_time":
		return lua.LNumber(j.End.Unix())
	case "submit_time":
		return lua.LNumber(j.Submit.Unix())
	case "restart_cnt":
		return lua.LNumber(max(0, j.Attempt-1))
	case "nodes":
		if j.Alloc == nil {
			return lua.LNil
		}
		var names []string
		for i := range j.Alloc.Nodes {
			names = append(names, string(j.Alloc.Nodes[i].Node))
		}
		return textOr(hostlist.Fold(names))
	case "script", "environment":
		return lua.LNil
	}
	f, ok := fields[name]
	if !ok || f.get == nil {
		return lua.LNil
	}
	return f.get(&desc{Submission: &Submission{Spec: j.Spec, User: string(j.Spec.User)}})
}
