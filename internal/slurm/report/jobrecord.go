package report

import (
	"cmp"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/schema"
)

// RecordOptions is what records of jobs and nodes say beside what the API does.
type RecordOptions struct {
	Cluster string
	// Group finds a group's name; nil or "": none.
	Group func(gid uint32) string
}

func (o *RecordOptions) group(gid uint32) string {
	if o.Group == nil {
		return ""
	}
	return o.Group(gid)
}

// recorded is a value that --json=v0.0.38 has in another way.
func recorded(old, now any) any { return schema.Either{Until: schema.Recorded, Old: old, New: now} }

// mailWords are what mail is sent about, each by its own word.
func mailWords(text string) []string {
	words := []string{}
	for w := range strings.SplitSeq(text, ",") {
		switch w {
		case "ALL":
			words = append(words, "BEGIN", "END", "FAIL", "REQUEUE", "STAGE_OUT", "INVALID_DEPENDENCY")
		case "TIME_LIMIT":
			words = append(words, "TIME=100%")
		case "TIME_LIMIT_90", "TIME_LIMIT_80", "TIME_LIMIT_50":
			words = append(words, "TIME="+strings.TrimPrefix(w, "TIME_LIMIT_")+"%")
		case "INVALID_DEPEND":
			words = append(words, "INVALID_DEPENDENCY")
		case "BEGIN", "END", "FAIL", "REQUEUE", "STAGE_OUT", "ARRAY_TASKS":
			words = append(words, w)
		}
	}
	return words
}

var jobObject = schema.Of("job_info")

// JobRecord is a job as --json and the REST API show it. What we have nothing for is as Slurm shows it unset.
func JobRecord(j *client.Job, o *RecordOptions) *schema.Record {
	s, more := j.Spec, j.Spec.More()
	want, have := askedBy(j), billed(j)
	r := jobObject.New().
		Set("account", string(s.Project)).Set("association_id", 0).Set("allocating_node", s.From.Host).
		Set("admin_comment", more.SlurmOption("admin-comment")).
		Set("batch_flag", s.Kind == core.Batch).Set("flags", jobFlags(j)).Set("cluster", o.Cluster).
		Set("comment", more.Comment).Set("contiguous", more.Contiguous).
		Set("billable_tres", schema.Float(float64(have.cpus))).
		Set("excluded_nodes", more.Exclude).Set("features", more.Constraint.String()).
		Set("prefer", more.Prefer.String()).Set("group_id", s.GID).Set("group_name", o.group(s.GID)).
		Set("job_id", int64(j.ID)).Set("job_state", recorded(StateName(j.State, j.Flags), jobStates(j))).
		Set("licenses", more.Licenses.String()).
		Set("licenses_allocated", heldLicenses(j)).
		Set("max_cpus", schema.Int(0)).Set("max_nodes", schema.Int(s.Shape.NodesMax)).Set("name", s.Name).
		Set("cpus", schema.Int(have.cpus)).Set("node_count", schema.Int(have.nodes)).
		Set("tasks", schema.Int(slurm.TasksOf(s))).Set("partition", partitionOf(&j.Job)).
		Set("minimum_cpus_per_node", schema.Int(minCPUsNode(s))).
		Set("minimum_tmp_disk_per_node", schema.Int(slurm.InMiB(more.TmpDisk))).
		Set("hold", j.Priority == 0 && j.State == core.Pending).Set("priority", schema.Int(j.Priority)).
		Set("qos", string(s.QOS)).Set("required_nodes", more.NodeList).Set("requeue", s.Requeue).
		Set("restart_cnt", slurm.Restarts(&j.Job)).Set("resv_name", more.Reservation).
		Set("scheduled_nodes", j.Planned).Set("state_description", j.Message).
		Set("state_reason", reasonOf(j).Word().String()).Set("network", more.SlurmOption("network")).
		Set("tres_req_str", want.tres(false)).Set("user_id", s.UID).Set("user_name", string(s.User)).
		Set("mail_user", more.MailUser).Set("mail_type", mailWords(more.MailTypes)).
		Set("wckey", more.WCKey).Set("current_working_directory", s.IO.WorkDir).
		Set("exit_code", recorded(j.Exit.Code<<8|j.Exit.Signal, exitRecord(j.Exit, j.State))).
		Set("derived_exit_code", recorded(0, exitRecord(core.Exit{}, j.State))).
		Set("shared", recorded("", shared(s))).Set("exclusive", exclusiveWord(s)).
		Set("oversubscribe", s.Shape.Wide().OverSubscribe).
		Set("show_flags", recorded(
			[]string{"SHOW_ALL", "SHOW_DETAIL", "SHOW_LOCAL"}, []string{"ALL", "DETAIL", "LOCAL"})).
		Set("gres_detail", gresDetail(j.Alloc))
	if s.From.Command != "" {
		r.Set("command", command(s))
	}
	if d := dependencyText(j); d != "(null)" {
		r.Set("dependency", d)
	}
	if ref := more.Het; ref != nil {
		r.Set("het_job_id", schema.Int(int64(ref.Lead))).Set("het_job_id_set", hetSet(ref)).
			Set("het_job_offset", schema.Int(ref.Offset))
	} else {
		r.Set("het_job_id", schema.Int(0)).Set("het_job_offset", schema.Int(0))
	}
	setTimes(r, j)
	setShape(r, j)
	setStreams(r, j)
	setArray(r, j)
	setHeld(r, j, &have)
	return r
}

func setTimes(r *schema.Record, j *client.Job) {
	more := j.Spec.More()
	r.Set("accrue_time", schema.Time(cmp.Or(j.Accrue, j.Eligible))).Set("deadline", schema.Time(more.Deadline)).
		Set("eligible_time", schema.Time(j.Eligible)).Set("end_time", schema.Time(expectedEnd(j))).
		Set("start_time", schema.Time(cmp.Or(j.Start, j.Expected))).Set("submit_time", schema.Time(j.Submit)).
		Set("suspend_time", schema.Time(j.Paused)).Set("pre_sus_time", schema.Int(preSuspend(j))).
		Set("last_sched_evaluation", schema.Time(cmp.Or(j.Start, j.Submit))).
		Set("time_minimum", schema.Int(int64(more.TimeMin/60))).Set("preempt_time", schema.Int(0)).
		Set("preemptable_time", schema.Int(0)).Set("resize_time", schema.Int(0)).Set("delay_boot", schema.Int(0))
	if j.Pushed != nil {
		r.Set("preempt_time", schema.Time(j.Pushed.At))
	}
	switch m := minutes(j.Spec.TimeLimit); {
	case j.Spec.TimeLimit >= core.Forever:
		r.Set("time_limit", schema.Infinite)
	case m >= 0:
		r.Set("time_limit", schema.Int(m))
	}
}

func setShape(r *schema.Record, j *client.Job) {
	s, wide := j.Spec, j.Spec.Shape.Wide()
	r.Set("tasks_per_node", schema.Int(s.Shape.TasksPerNode)).Set("tasks_per_board", schema.Int(0)).
		Set("tasks_per_core", schema.Positive(wide.TasksPerCore)).
		Set("tasks_per_socket", schema.Positive(wide.TasksPerSocket)).
		Set("tasks_per_tres", schema.Positive(wide.TasksPerGPU)).
		Set("sockets_per_node", schema.Positive(wide.Sockets)).Set("cores_per_socket", schema.Positive(wide.Cores)).
		Set("threads_per_core", schema.Positive(wide.Threads)).Set("core_spec", schema.Positive(wide.CoreSpec)).
		Set("thread_spec", schema.Positive(wide.ThreadSpec)).Set("segment_size", s.More().Segment)
	if s.Nice != 0 {
		r.Set("nice", schema.Int(s.Nice))
	}
	if s.Shape.Given&core.GivenCPUsPerTask != 0 {
		r.Set("cpus_per_task", schema.Int(s.Shape.CPUsPerTask))
	}
	if m := slurm.InMiB(s.Shape.MemPerCPU); m > 0 {
		r.Set("memory_per_cpu", schema.Int(m))
	} else if m := slurm.InMiB(s.Shape.MemPerNode); m > 0 {
		r.Set("memory_per_node", schema.Int(m))
	}
	if limit := s.More().Switches; !limit.IsZero() && limit.Fault() == nil {
		r.Set("required_switches", limit.Count()).Set("minimum_switches", limit.Count())
		if limit.Wait() < core.Forever {
			r.Set("maximum_switch_wait_time", int64(limit.Wait()))
		}
	}
	for _, p := range []struct {
		name string
		list []core.Gres
	}{
		{"tres_per_job", wide.GPUs},
		{"tres_per_node", s.Shape.Gres},
		{"tres_per_socket", wide.GPUsPerSocket},
		{"tres_per_task", wide.GPUsPerTask},
	} {
		if len(p.list) > 0 {
			r.Set(p.name, tresPer(p.list))
		}
	}
	if wide.CPUsPerGPU > 0 {
		r.Set("cpus_per_tres", "gres:gpu:"+num(wide.CPUsPerGPU))
	}
	if wide.MemPerGPU > 0 {
		r.Set("memory_per_tres", "gres:gpu:"+num(int32(slurm.InMiB(wide.MemPerGPU))))
	}
}

func setStreams(r *schema.Record, j *client.Job) {
	s := j.Spec
	if s.Kind != core.Batch {
		return
	}
	in, out := slurm.OutPath(&j.Job, cmp.Or(s.IO.Stdin, "/dev/null")), slurm.OutPath(&j.Job, s.IO.Stdout)
	bad := slurm.OutPath(&j.Job, cmp.Or(s.IO.Stderr, s.IO.Stdout))
	r.Set("standard_input", in).Set("standard_output", out).Set("standard_error", bad).
		Set("stdin_expanded", in).Set("stdout_expanded", out).Set("stderr_expanded", bad)
}

func setArray(r *schema.Record, j *client.Job) {
	a := j.Array
	if a == nil {
		r.Set("array_job_id", schema.Int(0)).Set("array_max_tasks", schema.Int(0))
		return
	}
	r.Set("array_job_id", schema.Int(int64(a.Base))).Set("array_max_tasks", schema.Int(j.Spec.Throttle))
	if a.Tasks.Len() > 0 {
		r.Set("array_task_string", taskList(client.ArrayTasks(a, j.Spec.Throttle), 0))
	} else {
		r.Set("array_task_id", schema.Int(a.Task))
	}
}

// setHeld says what the job has of nodes.
func setHeld(r *schema.Record, j *client.Job, have *size) {
	a := j.Alloc
	if a == nil || len(a.Nodes) == 0 {
		r.Set("job_resources", recorded(schema.Omit{}, schema.None{}))
		return
	}
	list := client.AllocList(a)
	r.Set("nodes", list).Set("tres_alloc_str", have.tres(false)).
		Set("job_size_str", []string{})
	if j.Spec.Kind == core.Batch {
		r.Set("batch_host", string(a.Nodes[0].Node))
	}
	var old, now []*schema.Record
	for i := range a.Nodes {
		n := &a.Nodes[i]
		old = append(old, schema.New("job_res_node_old").Set("nodename", string(n.Node)).
			Set("memory_allocated", slurm.InMiB(n.Mem)))
		now = append(now, schema.New("job_res_node").Set("index", i).Set("name", string(n.Node)).
			Set("cpus", schema.New("job_res_node_cpus").Set("count", n.CPUs)).
			Set("memory", schema.New("job_res_node_memory").Set("allocated", slurm.InMiB(n.Mem))))
	}
	nodes := schema.New("job_res_nodes").Set("count", len(a.Nodes)).Set("select_type", []string{"AVAILABLE"}).
		Set("list", list).Set("whole", j.Spec.Shape.Exclusive).Set("allocation", now)
	r.Set("job_resources", schema.New("job_res").Set("select_type", []string{"CPU", "MEMORY"}).
		Set("nodes", schema.Either{Until: 40, Old: list, New: nodes}).Set("cpus", have.cpus).Set("allocated_cpus", have.cpus).
		Set("allocated_hosts", len(a.Nodes)).Set("allocated_nodes", old))
}

// heldLicenses are those that a running job has.
func heldLicenses(j *client.Job) string {
	if j.State != core.Running && j.State != core.Suspended {
		return ""
	}
	return j.Spec.More().Licenses.String()
}

// jobStates is the base state and the flags beside it, in Slurm's words.
func jobStates(j *client.Job) []string {
	words := []string{j.State.String()}
	for i := range flagStates {
		if j.Flags.Any(flagStates[i].flag) {
			words = append(words, flagStates[i].name)
		}
	}
	return words
}

func jobFlags(j *client.Job) []string {
	words := []string{}
	if j.Spec.Shape.Wide().SpreadJob {
		words = append(words, "SPREAD_JOB")
	}
	if j.Spec.Shape.Wide().UseMinNodes {
		words = append(words, "PREFER_MINIMUM_NODE_COUNT")
	}
	if j.Spec.More().Het != nil {
		words = append(words, "HETEROGENEOUS_JOB")
	}
	if j.Attempt > 0 {
		words = append(words, "JOB_WAS_RUNNING")
	}
	return words
}

func shared(s *core.Spec) []string {
	switch wide := s.Shape.Wide(); {
	case s.Shape.Exclusive:
		return []string{"none"}
	case wide.ExclusiveUser:
		return []string{"user"}
	case wide.OverSubscribe:
		return []string{"oversubscribe"}
	}
	return []string{}
}

func exclusiveWord(s *core.Spec) []string {
	switch {
	case s.Shape.Exclusive:
		return []string{"true"}
	case s.Shape.Wide().ExclusiveUser:
		return []string{"user"}
	}
	return []string{}
}

// gresDetail is which units the job has on each node.
func gresDetail(a *core.Alloc) []string {
	words := []string{}
	if a == nil {
		return words
	}
	for i := range a.Nodes {
		var gres []string
		for _, g := range a.Nodes[i].Gres {
			gres = append(gres, gresIndex(g.Name, g.Type, g.Units))
		}
		if len(gres) > 0 {
			words = append(words, strings.Join(gres, ","))
		}
	}
	return words
}

// exitRecord is how something ended.
func exitRecord(e core.Exit, s core.JobState) *schema.Record {
	status, signal := "SUCCESS", schema.New("process_exit_signal")
	old := any(schema.Omit{})
	switch {
	case e.Signal != 0:
		status = "SIGNALED"
		old = signal
		signal.Set("signal_id", e.Signal).Set("id", schema.Int(e.Signal)).
			Set("name", grammar.SignalName(int(e.Signal)))
	case e.Code != 0:
		status = "ERROR"
	case !s.Final():
		status = "PENDING"
	}
	return schema.New("process_exit_code_verbose").Set("status", []string{status}).
		Set("return_code", schema.Int(e.Code)).Set("signal", recorded(old, signal))
}

// reasonOf is why a job waits, or how it ended.
func reasonOf(j *client.Job) core.Reason {
	if j.State == core.Pending && j.Waiting != "" {
		return j.Waiting
	}
	if j.State == core.Cancelled && j.Alloc == nil && j.Reason == "" {
		return waitedFor(&j.Job)
	}
	return j.Reason
}

// waitedFor is why a job waited that was canceled then, as far as its record says.
func waitedFor(j *core.Job) core.Reason {
	switch {
	case j.Flags.Has(core.HeldAdmin):
		return core.ReasonHeldAdmin
	case j.Flags.Has(core.HeldUser):
		return core.ReasonHeldUser
	case j.Needs != nil:
		return core.ReasonDependency
	case j.Spec != nil && j.Spec.Begin > j.End:
		return core.ReasonBeginTime
	}
	return j.Reason
}
