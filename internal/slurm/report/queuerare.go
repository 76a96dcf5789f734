package report

import (
	"cmp"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/report/column"
)

// QueueSite is what rows of squeue say of the cluster.
type QueueSite struct {
	Cluster string
	Group   func(gid uint32) string // nil or "": a group's number
}

func (r *QueueRow) groupName() string {
	gid := r.Job.Spec.GID
	if r.Site != nil && r.Site.Group != nil {
		return cmp.Or(r.Site.Group(gid), num(gid))
	}
	return num(gid)
}

func (r *QueueRow) clusterName() string {
	if r.Site == nil {
		return "(null)"
	}
	return orNull(r.Site.Cluster)
}

// folded writes a list of nodes as Slurm folds it, however it was typed.
func folded(list string) string {
	names, err := hostlist.Expand(list, 1<<18)
	if err != nil {
		return list
	}
	return hostlist.FoldSorted(names)
}

// eligible is when a job was ready to start, or will be. What is held or waits for others is so at no known time.
func eligible(j *client.Job) core.Time {
	if j.State == core.Pending && j.Array == nil && (j.Priority == 0 || j.Waiting == core.ReasonDependency ||
		j.Waiting == core.ReasonDependencyNever) {
		return 0
	}
	return j.Eligible
}

// accrued is when a job's age began to count.
func accrued(j *client.Job) core.Time {
	if j.Array != nil || j.State == core.Pending && j.Waiting == core.ReasonBeginTime {
		return 0
	}
	return eligible(j)
}

// always is a column with one value.
func always(name, title, value string) column.Field[QueueRow] {
	return column.Field[QueueRow]{Name: name, Title: title, Value: func(*QueueRow) string { return value }}
}

// full is a column of the whole record.
func full(name, title string, value func(r *QueueRow) string) column.Field[QueueRow] {
	return column.Field[QueueRow]{Name: name, Title: title, Full: true, Value: value}
}

// perGPU lists one number for each GPU.
func perGPU[T ~int32 | ~int64](n T) string {
	if n == 0 {
		return "N/A"
	}
	return "gres:gpu:" + num(n)
}

func tresOption(option string) func(r *QueueRow) string {
	return func(r *QueueRow) string {
		if v := more(r).SlurmOption(option); v != "" {
			return "gpu:" + strings.TrimPrefix(v, "gpu:")
		}
		return "N/A"
	}
}

// queueRare are the fields of -O alone that few ask for.
var queueRare = []column.Field[QueueRow]{
	full("AccrueTime", "ACCRUE_TIME", func(r *QueueRow) string { return TimeText(accrued(r.Job), "N/A") }),
	full("admin_comment", "ADMIN_COMMENT", func(r *QueueRow) string {
		return orNull(more(r).SlurmOption("admin-comment"))
	}),
	always("AssocID", "ASSOC_ID", "0"),
	always("BoardsPerNode", "BOARDS_PER_NODE", "0"),
	always("BurstBuffer", "BURST_BUFFER", "(null)"),
	always("BurstBufferState", "BURST_BUFFER_STATE", "(null)"),
	{Name: "Cluster", Title: "CLUSTER", Value: (*QueueRow).clusterName},
	full("ClusterFeature", "CLUSTER_FEATURES", func(r *QueueRow) string {
		return orNull(more(r).SlurmOption("cluster-constraint"))
	}),
	full("Container", "CONTAINER", func(r *QueueRow) string { return orNull(more(r).SlurmOption("container")) }),
	full("cpus-per-tres", "CPUS_PER_TRES", func(r *QueueRow) string {
		return perGPU(r.Job.Spec.Shape.Wide().CPUsPerGPU)
	}),
	full("mem-per-tres", "MEM_PER_TRES", func(r *QueueRow) string {
		return perGPU(slurm.InMiB(r.Job.Spec.Shape.Wide().MemPerGPU))
	}),
	full("tres-bind", "TRES_BIND", tresOption("gpu-bind")),
	full("tres-freq", "TRES_FREQ", tresOption("gpu-freq")),
	full("Deadline", "DEADLINE", func(r *QueueRow) string { return TimeText(more(r).Deadline, "N/A") }),
	full("DelayBoot", "DELAY_BOOT", func(r *QueueRow) string {
		m, err := grammar.ParseTimeLimit(more(r).SlurmOption("delay-boot"))
		if err != nil {
			m = 0
		}
		return grammar.FormatElapsed(max(0, m) * 60)
	}),
	always("DerivedEC", "DERIVED_EC", "0"),
	full("LastSchedEval", "LAST_SCHED_EVAL", func(r *QueueRow) string {
		return TimeText(cmp.Or(r.Job.Start, r.Job.Submit), "N/A")
	}),
	full("MaxCPUs", "MAX_CPUS", func(r *QueueRow) string {
		z := held(&r.Job.Job)
		return num(z.cpus)
	}),
	full("MinTime", "TIME_MIN", func(r *QueueRow) string {
		if t := more(r).TimeMin; t > 0 {
			return grammar.FormatLimit(minutes(t))
		}
		return "0:00"
	}),
	full("Network", "NETWORK", func(r *QueueRow) string { return orNull(more(r).SlurmOption("network")) }),
	always("NTPerBoard", "NTASKS_PER_BOARD", "0"),
	full("NTPerCore", "NTASKS_PER_CORE", func(r *QueueRow) string {
		return cmp.Or(positive(r.Job.Spec.Shape.Wide().TasksPerCore), "N/A")
	}),
	full("NTPerSocket", "NTASKS_PER_SOCKET", func(r *QueueRow) string {
		return cmp.Or(positive(r.Job.Spec.Shape.Wide().TasksPerSocket), "N/A")
	}),
	always("Origin", "ORIGIN", "NA"),
	always("OriginRaw", "ORIGIN_RAW", "NA"),
	full("PreemptTime", "PREEMPT_TIME", func(r *QueueRow) string {
		if r.Job.Pushed == nil {
			return "N/A"
		}
		return TimeText(r.Job.Pushed.At, "N/A")
	}),
	full("Profile", "PROFILE", func(r *QueueRow) string { return cmp.Or(more(r).SlurmOption("profile"), "NotSet") }),
	full("Reboot", "REBOOT", func(r *QueueRow) string { return cmp.Or(more(r).SlurmOption("reboot"), "0") }),
	always("ResizeTime", "RESIZE_TIME", "N/A"),
	always("SelectJobInfo", "", ""),
	always("SiblingsActive", "ACTIVE_SIBLINGS", "NA"),
	always("SiblingsActiveRaw", "ACTIVE_SIBLINGS_RAW", "NA"),
	always("SiblingsViable", "VIABLE_SIBLINGS", "NA"),
	always("SiblingsViableRaw", "VIALBLE_SIBLINGS_RAW", "NA"), // misspelled there, too
	always("SPerBoard", "SOCKETS_PER_BOARD", "0"),
	always("system_comment", "SYSTEM_COMMENT", "(null)"),
	full("Shared", "OVER_SUBSCRIBE", func(r *QueueRow) string { return oversubscribe(r.Job.Spec) }),
	full("MaxNodes", "MAX_NODES", func(r *QueueRow) string {
		if r.Job.Alloc != nil {
			return strconv.Itoa(len(r.Job.Alloc.Nodes))
		}
		z := asked(r.Job.Spec)
		return num(max(r.Job.Spec.Shape.NodesMax, z.nodes))
	}),
}
