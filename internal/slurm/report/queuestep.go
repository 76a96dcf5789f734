package report

import (
	"cmp"
	"strconv"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/slurm/report/column"
)

// StepRow is a step in squeue -s and sacct: a numbered one, or with Step nil the job's batch step.
type StepRow struct {
	Job  *client.Job
	Step *core.Step
	Now  core.Time
}

// Name is the step's last name: "batch" or its number.
func (r *StepRow) Name() string {
	if r.Step == nil {
		return "batch"
	}
	return strconv.Itoa(int(r.Step.ID))
}

// ID is JOB.STEP, with the array form of the job. The script of a het job is not one component's.
func (r *StepRow) ID() string {
	if r.Step == nil && r.Job.Spec.More().Het != nil {
		return num(r.Job.ID) + "." + r.Name()
	}
	return jobRecordName(&r.Job.Job) + "." + r.Name()
}

// Title is the name of what runs.
func (r *StepRow) Title() string {
	if r.Step == nil {
		return "batch"
	}
	return r.Step.Name
}

// NodeList are the nodes it runs on; a batch script runs on the first.
func (r *StepRow) NodeList() string {
	if r.Step == nil {
		if r.Job.Alloc == nil || len(r.Job.Alloc.Nodes) == 0 {
			return ""
		}
		return string(r.Job.Alloc.Nodes[0].Node)
	}
	names := make([]string, len(r.Step.Nodes))
	for i, n := range r.Step.Nodes {
		names[i] = string(n)
	}
	return hostlist.FoldSorted(names)
}

// Elapsed is how long it has run, in seconds.
func (r *StepRow) Elapsed() int64 {
	if r.Step == nil {
		return seconds(r.Job.Elapsed(r.Now))
	}
	return max(0, seconds(cmp.Or(r.Step.End, r.Now).Sub(r.Step.Start)))
}

// Tasks is how many processes it has.
func (r *StepRow) Tasks() int32 {
	if r.Step == nil {
		return 1
	}
	var n int32
	for _, t := range r.Step.Tasks {
		n += t
	}
	return n
}

func (r *StepRow) start() core.Time {
	if r.Step == nil {
		return r.Job.Start
	}
	return r.Step.Start
}

// QueueStepFields is all that squeue -s can show.
var QueueStepFields = []column.Field[StepRow]{
	{Letter: 'i', Name: "StepID", Title: "STEPID", Value: (*StepRow).ID},
	{Letter: 'j', Name: "StepName", Title: "NAME", Value: (*StepRow).Title},
	{Letter: 'P', Name: "Partition", Title: "PARTITION", Value: func(r *StepRow) string {
		return partitionOf(&r.Job.Job)
	}},
	{Letter: 'u', Name: "UserName", Title: "USER", Value: func(r *StepRow) string { return string(r.Job.Spec.User) }},
	{Letter: 'U', Name: "UserID", Title: "UID", Value: func(r *StepRow) string { return num(r.Job.Spec.UID) }},
	{Letter: 'M', Name: "TimeUsed", Title: "TIME", Value: func(r *StepRow) string {
		return grammar.FormatElapsed(r.Elapsed())
	}},
	{Letter: 'l', Name: "TimeLimit", Title: "TIME_LIMIT", Value: func(r *StepRow) string {
		return r.limit(grammar.FormatLimit)
	}},
	{Letter: 'N', Name: "NodeList", Title: "NODELIST", Value: (*StepRow).NodeList},
	{Letter: 'S', Name: "StartTime", Title: "START_TIME", Value: func(r *StepRow) string {
		return TimeText(r.start(), "N/A")
	}},
	{Letter: 'b', Name: "tres-per-node", Title: "TRES_PER_JOB", Value: func(r *StepRow) string {
		if r.Step == nil {
			return "(null)"
		}
		return orNull(r.gresPerNode())
	}},
	{Letter: 'A', Name: "NumTasks", Title: "TASKS", Value: func(r *StepRow) string { return num(r.Tasks()) }},
	{Name: "Nodes", Title: "NODELIST", Value: (*StepRow).NodeList},
	{Name: "JobID", Title: "JOB_ID", Value: func(r *StepRow) string { return num(r.Job.ID) }},
	{Name: "ArrayJobID", Title: "ARRAY_JOB_ID", Value: func(r *StepRow) string {
		if r.Job.Array == nil {
			return "0"
		}
		return num(r.Job.Array.Base)
	}},
	{Name: "ArrayTaskID", Title: "ARRAY_TASK_ID", Value: func(r *StepRow) string {
		if r.Job.Array == nil {
			return "N/A"
		}
		return num(r.Job.Array.Task)
	}},
	{Name: "NumCPUs", Title: "NUM_CPUS", Value: func(r *StepRow) string {
		if r.Step == nil {
			return "0"
		}
		z := r.size()
		return num(z.cpus)
	}},
	{Name: "StepState", Title: "STATE", Value: func(*StepRow) string { return "RUNNING" }},
	{Name: "CPUFreq", Title: "CPU_FREQ", Value: func(*StepRow) string { return "Unknown-Unknown:Unknown" }},
	noStep("Network", "NETWORK"), noStep("ResvPorts", "RESERVED_PORTS"), noStep("container", "CONTAINER"),
	noStep("tres-per-step", "TRES_PER_STEP"), noStep("tres-per-job", "TRES_PER_STEP"),
	noStep("tres-per-socket", "TRES_PER_SOCKET"), noStep("tres-per-task", "TRES_PER_TASK"),
	noStep("tres-bind", "TRES_BIND"), noStep("tres-freq", "TRES_FREQ"), noStep("mem-per-tres", "MEM_PER_TRES"),
	noStep("cpus-per-tres", "CPUS_PER_TRES"),
}

// noStep is a column that our steps have nothing for.
func noStep(name, title string) column.Field[StepRow] {
	return column.Field[StepRow]{Name: name, Title: title, Value: func(*StepRow) string { return "(null)" }}
}

// jobRecordName is JobName of a whole record.
func jobRecordName(j *core.Job) string {
	if x := j.Spec.Extra; x != nil && x.Het != nil {
		return hetName(x.Het.Lead, x.Het.Offset)
	}
	if j.Array == nil {
		return num(j.ID)
	}
	tasks := ""
	switch n := j.Array.Tasks.Len(); {
	case n == 1 && j.State.Final(): // the one task that was canceled before it started
		return JobName(j.ID, j.Array.Base, int32(j.Array.Tasks.Min()), "", 0)
	case n > 0:
		tasks = client.ArrayTasks(j.Array, j.Spec.Throttle)
	}
	return JobName(j.ID, j.Array.Base, j.Array.Task, tasks, grammar.ArrayText)
}

func partitionOf(j *core.Job) string {
	if j.Alloc != nil {
		return string(j.Alloc.Partition)
	}
	return j.Spec.Partition.String()
}
