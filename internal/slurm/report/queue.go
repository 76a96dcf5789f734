package report

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/report/column"
)

// QueueRow is a job in squeue: always its short form, and the whole record when a column needs it.
type QueueRow struct {
	*client.Brief
	Job  *client.Job
	Now  core.Time
	Room int // for lists of array tasks
	Site *QueueSite
}

// Formats of squeue.
const (
	QueueFormat      = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
	QueueLongFormat  = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R"
	QueueStartFormat = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R"
	QueueStepFormat  = "%.15i %.8j %.9P %.8u %.9M %N"
)

func num[T ~int32 | ~int64 | ~uint32](n T) string { return strconv.FormatInt(int64(n), 10) }

func (r *QueueRow) reasonOrNodes() string {
	failed := r.State == core.Failed || r.State == core.Timeout || r.State == core.OutOfMemory ||
		r.State == core.DeadlineMissed
	if r.State == core.Pending && !r.Flags.Any(core.Completing) || failed && r.Reason != "" &&
		!r.Flags.Any(core.Completing) {
		return "(" + r.Reason.String() + ")"
	}
	return r.NodeList
}

func (r *QueueRow) left() string {
	if r.Limit >= core.Forever {
		return "UNLIMITED"
	}
	if r.Limit == 0 {
		return "NOT_SET"
	}
	if r.Elapsed > r.Limit {
		return "INVALID"
	}
	return grammar.FormatElapsed(int64(r.Limit - r.Elapsed))
}

func (r *QueueRow) endTime() core.Time {
	switch {
	case r.End != 0:
		return r.End
	case r.Start == 0 || r.Limit == 0 || r.Limit >= core.Forever:
		return 0
	}
	return r.Start.Add(r.Limit.Duration())
}

func (r *QueueRow) jobID() string {
	if r.Het != 0 {
		return hetName(r.Het, r.HetOffset)
	}
	return JobName(r.ID, r.Base, r.Task, r.Tasks, r.Room)
}

func (r *QueueRow) taskID() string {
	switch {
	case r.Base == 0:
		return "N/A"
	case r.Tasks != "":
		return taskList(r.Tasks, r.Room)
	}
	return num(r.Task)
}

func (r *QueueRow) minMemory() string {
	s := &r.Job.Spec.Shape
	if s.MemPerCPU > 0 {
		return memText(s.MemPerCPU)
	}
	if s.MemPerNode > 0 {
		return memText(s.MemPerNode)
	}
	return "0"
}

func (r *QueueRow) tresPerNode() string {
	return tresPer(r.Job.Spec.Shape.Gres)
}

// tresPer writes gres:gpu:a100:2,…
func tresPer(list []core.Gres) string {
	if len(list) == 0 {
		return "N/A"
	}
	var words []string
	for _, g := range list {
		words = append(words, "gres:"+gresText([]core.Gres{g}))
	}
	return strings.Join(words, ",")
}

func byNum[T cmp.Ordered](get func(*QueueRow) T) func(a, b *QueueRow) int {
	return func(a, b *QueueRow) int { return cmp.Compare(get(a), get(b)) }
}

// stateRank orders as Slurm's listing does: what is completing first, then by state number.
func stateRank(r *QueueRow) int {
	if r.Flags.Any(core.Completing) {
		return -1
	}
	return int(r.State)
}

// compareID orders by array and task.
func compareID(a, b *QueueRow) int {
	base := func(r *QueueRow) core.JobID {
		if r.Base != 0 {
			return r.Base
		}
		return r.ID
	}
	task := func(r *QueueRow) int64 {
		if r.Tasks != "" { // those that wait stand behind those that have an id of their own
			return math.MaxInt64
		}
		return int64(r.Task)
	}
	return cmp.Or(cmp.Compare(base(a), base(b)), cmp.Compare(task(a), task(b)), cmp.Compare(a.ID, b.ID))
}

func more(r *QueueRow) *core.Extra { return r.Job.Spec.More() }

// ofHet is something of a component of a het job.
func ofHet(r *QueueRow, get func(*core.HetRef) string) string {
	if ref := more(r).Het; ref != nil {
		return get(ref)
	}
	return "N/A"
}

// QueueFields is all that squeue can show of a job.
var QueueFields = append([]column.Field[QueueRow]{
	{Letter: 'i', Name: "JobArrayID", Title: "JOBID", Value: (*QueueRow).jobID, Compare: compareID},
	{Letter: 'A', Name: "JobID", Title: "JOBID", Value: func(r *QueueRow) string {
		return num(r.ID)
	}, Compare: byNum(func(r *QueueRow) core.JobID { return r.ID })},
	{Letter: 'F', Name: "ArrayJobID", Title: "ARRAY_JOB_ID", Value: func(r *QueueRow) string {
		return num(cmp.Or(r.Base, r.ID))
	}, Compare: compareID},
	{
		Letter: 'K', Name: "ArrayTaskID", Title: "ARRAY_TASK_ID", Value: (*QueueRow).taskID,
		Compare: byNum(func(r *QueueRow) int32 { return r.Task }),
	},
	{Letter: 'j', Name: "Name", Title: "NAME", Value: func(r *QueueRow) string { return r.Name }},
	{Letter: 'u', Name: "UserName", Title: "USER", Value: func(r *QueueRow) string { return string(r.User) }},
	{Letter: 'U', Name: "UserID", Title: "UID", Value: func(r *QueueRow) string {
		return num(r.UID)
	}, Compare: byNum(func(r *QueueRow) uint32 { return r.UID })},
	{Letter: 'a', Name: "Account", Title: "ACCOUNT", Value: func(r *QueueRow) string { return orNull(string(r.Project)) }},
	{Letter: 'P', Name: "Partition", Title: "PARTITION", Value: func(r *QueueRow) string { return string(r.Partition) }},
	{Letter: 'q', Name: "QOS", Title: "QOS", Value: func(r *QueueRow) string { return orNull(string(r.QOS)) }},
	{Letter: 't', Name: "StateCompact", Title: "ST", Value: func(r *QueueRow) string {
		return StateCode(r.State, r.Flags)
	}, Compare: byNum(stateRank)},
	{Letter: 'T', Name: "State", Title: "STATE", Value: func(r *QueueRow) string {
		return StateName(r.State, r.Flags)
	}, Compare: byNum(stateRank)},
	{Letter: 'M', Name: "TimeUsed", Title: "TIME", Value: func(r *QueueRow) string {
		return grammar.FormatElapsed(int64(r.Elapsed))
	}, Compare: byNum(func(r *QueueRow) core.Seconds { return r.Elapsed })},
	{Letter: 'l', Name: "TimeLimit", Title: "TIME_LIMIT", Value: func(r *QueueRow) string {
		return grammar.FormatLimit(minutes(r.Limit))
	}, Compare: byNum(func(r *QueueRow) core.Seconds { return r.Limit })},
	{
		Letter: 'L', Name: "TimeLeft", Title: "TIME_LEFT", Value: (*QueueRow).left,
		Compare: byNum(func(r *QueueRow) core.Seconds { return r.Limit - r.Elapsed }),
	},
	{Letter: 'D', Name: "NumNodes", Title: "NODES", Value: func(r *QueueRow) string {
		return num(r.Nodes)
	}, Compare: byNum(func(r *QueueRow) int32 { return r.Nodes })},
	{Letter: 'C', Name: "NumCPUs", Title: "CPUS", Value: func(r *QueueRow) string {
		return num(r.CPUs)
	}, Compare: byNum(func(r *QueueRow) int32 { return r.CPUs })},
	{Letter: 'r', Name: "Reason", Title: "REASON", Value: func(r *QueueRow) string { return r.Reason.Word().String() }},
	{Letter: 'R', Name: "ReasonList", Title: "NODELIST(REASON)", Value: (*QueueRow).reasonOrNodes},
	{Letter: 'N', Name: "NodeList", Title: "NODELIST", Value: func(r *QueueRow) string { return r.NodeList }},
	{Name: "Nodes", Title: "NODELIST", Value: func(r *QueueRow) string { return r.NodeList }},
	{Letter: 'S', Name: "StartTime", Title: "START_TIME", Value: func(r *QueueRow) string {
		return TimeText(r.Start, "N/A")
	}, Compare: byNum(func(r *QueueRow) uint64 { return uint64(r.Start) - 1 })},
	{Letter: 'e', Name: "EndTime", Title: "END_TIME", Value: func(r *QueueRow) string {
		return TimeText(r.endTime(), "N/A")
	}, Compare: byNum(func(r *QueueRow) uint64 { return uint64(r.endTime()) - 1 })},
	{Letter: 'V', Name: "SubmitTime", Title: "SUBMIT_TIME", Value: func(r *QueueRow) string {
		return TimeText(r.Submit, "N/A")
	}, Compare: byNum(func(r *QueueRow) core.Time { return r.Submit })},
	{Letter: 'p', Name: "Priority", Title: "PRIORITY", Value: func(r *QueueRow) string {
		return fmt.Sprintf("%.14f", float64(r.Priority)/(1<<32))
	}, Compare: byNum(func(r *QueueRow) uint32 { return r.Priority })},
	{Letter: 'Q', Name: "PriorityLong", Title: "PRIORITY", Value: func(r *QueueRow) string {
		return num(r.Priority)
	}, Compare: byNum(func(r *QueueRow) uint32 { return r.Priority })},
	{Letter: 'Y', Name: "SchedNodes", Title: "SCHEDNODES", Value: func(r *QueueRow) string { return orNull(r.Planned) }},
	{Letter: 'B', Name: "BatchHost", Title: "EXEC_HOST", Full: true, Value: batchHost},
	{
		Letter: 'm', Name: "MinMemory", Title: "MIN_MEMORY", Full: true, Value: (*QueueRow).minMemory,
		Compare: byNum(func(r *QueueRow) core.Bytes { return asked(r.Job.Spec).mem }),
	},
	{Letter: 'b', Name: "tres-per-node", Title: "TRES_PER_NODE", Full: true, Value: (*QueueRow).tresPerNode},
	{Name: "tres-per-job", Title: "TRES_PER_JOB", Full: true, Value: func(r *QueueRow) string {
		return tresPer(r.Job.Spec.Shape.Wide().GPUs)
	}},
	{Name: "tres-per-socket", Title: "TRES_PER_SOCKET", Full: true, Value: func(r *QueueRow) string {
		return tresPer(r.Job.Spec.Shape.Wide().GPUsPerSocket)
	}},
	{Name: "tres-per-task", Title: "TRES_PER_TASK", Full: true, Value: func(r *QueueRow) string {
		return tresPer(r.Job.Spec.Shape.Wide().GPUsPerTask)
	}},
	{Name: "gres", Title: "TRES_PER_NODE", Full: true, Value: (*QueueRow).tresPerNode},
	{Name: "tres-alloc", Title: "TRES_ALLOC", Full: true, Value: func(r *QueueRow) string {
		z := billed(r.Job)
		return z.tres(false)
	}},
	{Letter: 'y', Name: "Nice", Title: "NICE", Full: true, Value: func(r *QueueRow) string {
		return num(r.Job.Spec.Nice)
	}, Compare: byNum(func(r *QueueRow) int32 { return r.Job.Spec.Nice })},
	{Letter: 'E', Name: "Dependency", Title: "DEPENDENCY", Full: true, Value: func(r *QueueRow) string {
		return dependencyText(r.Job)
	}},
	{Letter: 'f', Name: "Feature", Title: "FEATURES", Full: true, Value: func(r *QueueRow) string {
		return orNull(more(r).Constraint.String())
	}},
	{Letter: 'h', Name: "OverSubscribe", Title: "OVER_SUBSCRIBE", Full: true, Value: func(r *QueueRow) string {
		return oversubscribe(r.Job.Spec)
	}},
	{Letter: 'k', Name: "Comment", Title: "COMMENT", Full: true, Value: func(r *QueueRow) string {
		return orNull(more(r).Comment)
	}},
	{Letter: 'n', Name: "ReqNodes", Title: "REQ_NODES", Full: true, Value: func(r *QueueRow) string {
		return folded(more(r).NodeList)
	}},
	{Letter: 'x', Name: "ExcNodes", Title: "EXC_NODES", Full: true, Value: func(r *QueueRow) string {
		return folded(more(r).Exclude)
	}},
	{Letter: 'o', Name: "Command", Title: "COMMAND", Full: true, Value: func(r *QueueRow) string {
		return command(r.Job.Spec)
	}},
	{Letter: 's', Title: "", Value: func(*QueueRow) string { return "" }},
	{Letter: 'v', Name: "Reservation", Title: "RESERVATION", Full: true, Value: func(r *QueueRow) string {
		return orNull(more(r).Reservation)
	}},
	{Letter: 'w', Name: "WCKey", Title: "WCKEY", Full: true, Value: func(r *QueueRow) string {
		return orNull(more(r).WCKey)
	}},
	{Letter: 'W', Name: "Licenses", Title: "LICENSES", Full: true, Value: func(r *QueueRow) string {
		return orNull(more(r).Licenses.String())
	}},
	{Letter: 'X', Name: "CoreSpec", Title: "CORE_SPEC", Value: func(*QueueRow) string { return "N/A" }},
	{Letter: 'z', Name: "SCT", Title: "S:C:T", Value: func(*QueueRow) string { return "*:*:*" }},
	{Letter: 'H', Name: "Sockets", Title: "SOCKETS_PER_NODE", Value: star},
	{Letter: 'I', Name: "Cores", Title: "CORES_PER_SOCKET", Value: star},
	{Letter: 'J', Name: "Threads", Title: "THREADS_PER_CORE", Value: star},
	{Letter: 'Z', Name: "WorkDir", Title: "WORK_DIR", Full: true, Value: func(r *QueueRow) string {
		return r.Job.Spec.IO.WorkDir
	}},
	{Letter: 'c', Name: "MinCpus", Title: "MIN_CPUS", Full: true, Value: func(r *QueueRow) string {
		return num(minCPUsNode(r.Job.Spec))
	}},
	{Letter: 'd', Name: "MinTmpDisk", Title: "MIN_TMP_DISK", Full: true, Value: func(r *QueueRow) string {
		return strconv.FormatInt(int64(more(r).TmpDisk/core.MiB), 10)
	}},
	{Letter: 'g', Name: "GroupName", Title: "GROUP", Full: true, Value: (*QueueRow).groupName},
	{Letter: 'G', Name: "GroupID", Title: "GROUP", Full: true, Value: func(r *QueueRow) string {
		return num(r.Job.Spec.GID)
	}},
	{Letter: 'O', Name: "Contiguous", Title: "CONTIGUOUS", Full: true, Value: func(r *QueueRow) string {
		return boolText(more(r).Contiguous, "1", "0")
	}},
	{Name: "Prefer", Title: "PREFER", Full: true, Value: func(r *QueueRow) string {
		return orNull(more(r).Prefer.String())
	}},
	{Name: "ReqSwitch", Title: "REQ_SWITCH", Full: true, Value: func(r *QueueRow) string {
		n, _, _ := wantedSwitches(more(r))
		return num(n)
	}},
	{Name: "Wait4Switch", Title: "WAIT4SWITCH", Full: true, Value: func(r *QueueRow) string {
		_, wait, _ := wantedSwitches(more(r))
		return grammar.FormatElapsed(max(0, wait))
	}},
	{Name: "SegmentSize", Title: "SEGMENT_SIZE", Full: true, Value: func(r *QueueRow) string {
		return num(more(r).Segment)
	}},
	{Name: "NumTasks", Title: "TASKS", Full: true, Value: func(r *QueueRow) string {
		return num(slurm.TasksOf(r.Job.Spec))
	}},
	{Name: "cpus-per-task", Title: "CPUS_PER_TASK", Full: true, Value: func(r *QueueRow) string {
		return num(max(1, r.Job.Spec.Shape.CPUsPerTask))
	}},
	{Name: "EligibleTime", Title: "ELIGIBLE_TIME", Full: true, Value: func(r *QueueRow) string {
		return TimeText(eligible(r.Job), "N/A")
	}},
	{Name: "exit_code", Title: "EXIT_CODE", Full: true, Value: func(r *QueueRow) string { return num(r.Job.Exit.Code) }},
	{Name: "Requeue", Title: "REQUEUE", Full: true, Value: func(r *QueueRow) string {
		return boolText(r.Job.Spec.Requeue, "1", "0")
	}},
	{Name: "RestartCnt", Title: "RESTART_COUNT", Full: true, Value: func(r *QueueRow) string {
		return num(slurm.Restarts(&r.Job.Job))
	}},
	{Name: "STDOUT", Title: "STDOUT", Full: true, Value: func(r *QueueRow) string {
		return slurm.OutPath(&r.Job.Job, r.Job.Spec.IO.Stdout)
	}},
	{Name: "STDERR", Title: "STDERR", Full: true, Value: func(r *QueueRow) string {
		return slurm.OutPath(&r.Job.Job, cmp.Or(r.Job.Spec.IO.Stderr, r.Job.Spec.IO.Stdout))
	}},
	{Name: "STDIN", Title: "STDIN", Full: true, Value: func(r *QueueRow) string {
		return slurm.OutPath(&r.Job.Job, cmp.Or(r.Job.Spec.IO.Stdin, "/dev/null"))
	}},
	{Name: "HetJobOffset", Title: "HET_JOB_OFFSET", Full: true, Value: func(r *QueueRow) string {
		return ofHet(r, func(ref *core.HetRef) string { return num(ref.Offset) })
	}},
	{Name: "HetJobID", Title: "HET_JOB_ID", Full: true, Value: func(r *QueueRow) string {
		return ofHet(r, func(ref *core.HetRef) string { return num(ref.Lead) })
	}},
	{Name: "HetJobIDSet", Title: "HET_JOB_ID_SET", Full: true, Value: func(r *QueueRow) string {
		return ofHet(r, hetSet)
	}},
	{Name: "mcslabel", Title: "MCSLABEL", Full: true, Value: func(r *QueueRow) string {
		return orNull(more(r).SlurmOption("mcs-label"))
	}},
	{Name: "PendingTime", Title: "PENDING_TIME", Value: func(r *QueueRow) string {
		end := r.Now
		if r.State != core.Pending && r.Start != 0 {
			end = r.Start
		}
		return strconv.FormatInt(max(0, seconds(end.Sub(r.Submit))), 10)
	}},
	{Name: "AllocNodes", Title: "ALLOC_NODES", Full: true, Value: func(r *QueueRow) string {
		return r.Job.Spec.From.Host
	}},
	{Name: "AllocSID", Title: "ALLOC_SID", Full: true, Value: func(r *QueueRow) string {
		return num(r.Job.Spec.From.Sid)
	}},
	{Name: "BatchFlag", Title: "BATCH_FLAG", Full: true, Value: func(r *QueueRow) string {
		return boolText(r.Job.Spec.Kind == core.Batch, "1", "0")
	}},
	{Name: "NTPerNode", Title: "NTASKS_PER_NODE", Full: true, Value: func(r *QueueRow) string {
		return num(r.Job.Spec.Shape.TasksPerNode)
	}},
}, queueRare...)

func star(*QueueRow) string { return "*" }

func boolText(b bool, yes, no string) string {
	if b {
		return yes
	}
	return no
}

func batchHost(r *QueueRow) string {
	if r.Job.Alloc == nil || len(r.Job.Alloc.Nodes) == 0 || r.Job.Spec.Kind != core.Batch {
		return "n/a"
	}
	return string(r.Job.Alloc.Nodes[0].Node)
}

// wantedSwitches reads --switches back; the wait is negative if none was given.
func wantedSwitches(x *core.Extra) (n int32, wait int64, ok bool) {
	l := x.Switches
	if wait = int64(l.Wait()); l.Wait() == core.Forever {
		wait = -1
	}
	return l.Count(), wait, l.Count() > 0
}

func minCPUsNode(s *core.Spec) int32 {
	return max(1, s.Shape.MinCPUs, max(1, s.Shape.CPUsPerTask)*max(1, s.Shape.TasksPerNode))
}

// dependencyText shows what a job still waits for: one entry an id, each with how it stands.
func dependencyText(j *client.Job) string {
	if j.Needs != nil {
		return j.Needs.String()
	}
	text := j.Spec.More().Dependency.String()
	if text == "" || j.State != core.Pending || j.Waiting != core.ReasonDependency &&
		j.Waiting != core.ReasonDependencyNever {
		return "(null)"
	}
	status := "(unfulfilled)"
	if j.Waiting == core.ReasonDependencyNever {
		status = "(failed)"
	}
	sep := ","
	if strings.Contains(text, "?") {
		sep = "?"
	}
	var out []string
	for _, item := range strings.Split(text, sep) {
		kind, ids, ok := strings.Cut(item, ":")
		switch {
		case !ok && kind != "" && kind[0] >= '0' && kind[0] <= '9':
			out = append(out, "afterany:"+kind+status)
		case !ok:
			out = append(out, kind+status)
		default:
			for _, id := range strings.Split(ids, ":") {
				out = append(out, kind+":"+id+status)
			}
		}
	}
	return strings.Join(out, sep)
}
