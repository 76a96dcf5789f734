package report

import (
	"slices"
	"strings"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/schema"
)

// AcctRecords are rows as sacct --json and the REST API show them: each job with the steps that follow it.
func AcctRecords(rows []AcctRow, o *RecordOptions) []*schema.Record {
	out := []*schema.Record{}
	for i := 0; i < len(rows); {
		r := &rows[i]
		i++
		if r.Step != nil { // its job was not asked for
			continue
		}
		steps := []*schema.Record{}
		for ; i < len(rows) && rows[i].Step != nil && rows[i].Job.ID == r.Job.ID; i++ {
			steps = append(steps, stepRecord(&rows[i]))
		}
		out = append(out, acctRecord(r, o).Set("steps", steps))
	}
	return out
}

func acctRecord(r *AcctRow, o *RecordOptions) *schema.Record {
	j, s, more := r.Job, r.Job.Spec, r.Job.Spec.More()
	want := askedBy(j)
	out := schema.New("job").
		Set("account", string(s.Project)).Set("cluster", r.Cluster).Set("constraints", more.Constraint.String()).
		Set("group", o.group(s.GID)).Set("job_id", int64(j.ID)).Set("name", s.Name).Set("nodes", r.nodeList()).
		Set("partition", partitionOf(&j.Job)).Set("priority", schema.Int(j.Priority)).Set("qos", string(s.QOS)).
		Set("qosreq", string(s.QOS)).Set("user", string(s.User)).Set("working_directory", s.IO.WorkDir).
		Set("comment.job", more.Comment).Set("comment.administrator", more.SlurmOption("admin-comment")).
		Set("comment.system", "").Set("licenses", more.Licenses.String()).Set("submit_line", s.From.Line).
		Set("association", schema.New("assoc_short").Set("account", string(s.Project)).Set("cluster", r.Cluster).
			Set("user", string(s.User))).
		Set("exit_code", exitRecord(r.Exit(), j.State)).Set("derived_exit_code", exitRecord(r.Derived, core.Completed)).
		Set("hold", j.Priority == 0 && j.State == core.Pending).
		Set("time.eligible", j.Eligible.Unix()).Set("time.submission", j.Submit.Unix()).
		Set("time.start", j.Start.Unix()).Set("time.end", j.End.Unix()).
		Set("required.CPUs", want.cpus).Set("required.memory", slurm.InMiB(want.mem)).
		Set("state.current", recorded(j.State.String(), []string{j.State.String()})).
		Set("state.reason", reasonOf(j).String()).Set("restart_cnt", slurm.Restarts(&j.Job)).
		Set("reservation.name", more.Reservation).Set("reservation.requested", more.Reservation).
		Set("wckey", schema.New("wckey_tag_struct").Set("wckey", more.WCKey)).
		Set("tres.requested", want.records()).Set("mcs.label", "").Set("segment_size", more.Segment).
		Set("array.job_id", 0).Set("array.limits.max.running.tasks", s.Throttle).Set("het.job_id", 0)
	setAcctTime(out, r)
	setAcctSize(out, j)
	switch m := minutes(s.TimeLimit); {
	case s.TimeLimit >= core.Forever:
		out.Set("time.limit", schema.Infinite)
	case m >= 0:
		out.Set("time.limit", schema.Int(m))
	}
	if j.Stop != nil {
		out.Set("kill_request_user", string(j.Stop.By))
	}
	if a := j.Array; a != nil {
		out.Set("array.job_id", int64(a.Base))
		if a.Tasks.Len() > 0 {
			out.Set("array.task", client.ArrayTasks(a, s.Throttle))
		} else {
			out.Set("array.task_id", schema.Int(a.Task))
		}
	}
	if ref := more.Het; ref != nil {
		out.Set("het.job_id", int64(ref.Lead)).Set("het.job_offset", schema.Int(ref.Offset))
	}
	if s.Kind == core.Batch {
		in, std, bad := "/dev/null", s.IO.Stdout, s.IO.Stderr
		if s.IO.Stdin != "" {
			in = s.IO.Stdin
		}
		if bad == "" {
			bad = std
		}
		out.Set("stdin", in).Set("stdout", std).Set("stderr", bad).Set("stdin_expanded", slurm.OutPath(&j.Job, in)).
			Set("stdout_expanded", slurm.OutPath(&j.Job, std)).Set("stderr_expanded", slurm.OutPath(&j.Job, bad))
	}
	return out
}

// setAcctSize is what a job asked for of memory, and what it has or had.
func setAcctSize(out *schema.Record, j *client.Job) {
	shape := &j.Spec.Shape
	if m := slurm.InMiB(shape.MemPerCPU); m > 0 {
		out.Set("required.memory_per_cpu", schema.Int(m))
	} else if m := slurm.InMiB(shape.MemPerNode); m > 0 {
		out.Set("required.memory_per_node", schema.Int(m))
	}
	if j.Alloc == nil {
		return
	}
	have := billed(j)
	out.Set("allocation_nodes", have.nodes).Set("tres.allocated", have.records())
}

func setAcctTime(out *schema.Record, r *AcctRow) {
	u := r.usage()
	out.Set("time.elapsed", r.elapsed()).Set("time.suspended", seconds(r.Job.PausedFor))
	for name, d := range map[string]time.Duration{"system": u.Sys, "user": u.User, "total": u.Sys + u.User} {
		out.Set("time."+name+".seconds", int64(d/time.Second)).
			Set("time."+name+".microseconds", int64(d%time.Second/time.Microsecond))
	}
}

func stepRecord(r *AcctRow) *schema.Record {
	z := r.size()
	state := r.Step.State()
	hosts := []string{}
	if r.Step.Step != nil {
		for i := range r.Step.Step.Nodes {
			hosts = append(hosts, string(r.Step.Step.Nodes[i]))
		}
	} else if a := r.Job.Alloc; a != nil && len(a.Nodes) > 0 {
		hosts = append(hosts, string(a.Nodes[0].Node))
	}
	u := r.usage()
	memory := []*schema.Record{}
	if u.MaxRSS > 0 {
		memory = append(memory, tresRecord("mem", "", 2, int64(u.MaxRSS)))
	}
	out := schema.New("step").
		Set("time.start", schema.Time(r.start())).Set("time.end", schema.Time(r.end())).
		Set("exit_code", exitRecord(r.Exit(), state)).Set("nodes.count", z.nodes).Set("nodes.range", r.Step.NodeList()).
		Set("nodes.list", hosts).Set("tasks.count", r.Step.Tasks()).Set("CPU.governor", "0").
		Set("state", recorded(state.String(), []string{state.String()})).
		Set("step.job_id", int64(r.Job.ID)).Set("step.id", recorded(r.Step.Name(), r.Step.ID())).
		Set("step.name", r.Step.Title()).Set("task.distribution", "Unknown").
		Set("tres.requested.max", memory).Set("tres.requested.average", memory).Set("tres.requested.total", memory).
		Set("tres.allocated", slices.DeleteFunc(z.records(), func(t *schema.Record) bool {
			return t.Get("type") == "billing"
		}))
	setAcctTime(out, r)
	return out
}

func tresRecord(kind, name string, id, count int64) *schema.Record {
	return schema.New("tres").Set("type", kind).Set("name", name).Set("id", id).Set("count", count)
}

// The numbers of TRES, and the first that sites give.
const (
	tresCPU, tresMem, tresEnergy, tresNode, tresBilling = 1, 2, 3, 4, 5
	firstGres                                           = 1001
)

// records lists the same amounts as tres.
func (z *size) records() []*schema.Record {
	list := []*schema.Record{tresRecord("cpu", "", tresCPU, int64(z.cpus))}
	if z.mem > 0 {
		list = append(list, tresRecord("mem", "", tresMem, slurm.InMiB(z.mem)))
	}
	list = append(list, tresRecord("node", "", tresNode, int64(z.nodes)),
		tresRecord("billing", "", tresBilling, z.billing()))
	for i, name := range sortedKeys(z.gres) {
		list = append(list, tresRecord("gres", name, int64(firstGres+i), z.gres[name]))
	}
	return list
}

// TRESRecords are amounts of a limit.
func TRESRecords(t core.TRES) []*schema.Record {
	ids := map[string]int64{"cpu": tresCPU, "mem": tresMem, "energy": tresEnergy, "node": tresNode, "billing": tresBilling}
	list := []*schema.Record{}
	for i, a := range t {
		kind, name, _ := strings.Cut(a.Name, "/")
		id, ok := ids[a.Name]
		if !ok {
			id = int64(firstGres + i)
		}
		list = append(list, tresRecord(kind, name, id, a.Count))
	}
	return list
}
