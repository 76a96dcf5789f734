package report

import (
	"cmp"
	"fmt"

	"bireme.dev/bireme/internal/account"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/slurm"
)

// NumListedFields is how many of AcctFields sacct -e lists, as Slurm 22.05; those behind came later and are known by
// name.
const NumListedFields = 109

// AcctFields is all that sacct can show, in the order sacct -e lists it. What nobody measures is blank.
var AcctFields = []AcctField{
	{"Account", 10, func(r *AcctRow) string { return string(r.Job.Spec.Project) }},
	{"AdminComment", 15, ofJob(func(j *client.Job) string { return j.Spec.More().SlurmOption("admin-comment") })},
	{"AllocCPUS", 10, allocCPUs},
	{"AllocNodes", 10, func(r *AcctRow) string { return allocOnly(r, func(z size) string { return num(z.nodes) }) }},
	{"AllocTRES", 10, allocTRES},
	{"AssocID", 7, blank},
	{"AveCPU", 10, func(r *AcctRow) string {
		return stepOnly(r, grammar.FormatClock(seconds(r.usage().User+r.usage().Sys)))
	}},
	{"AveCPUFreq", 10, blank},
	{"AveDiskRead", 14, blank},
	{"AveDiskWrite", 14, blank},
	{"AvePages", 10, blank},
	{"AveRSS", 10, func(r *AcctRow) string { return stepOnly(r, kib(r.usage().MaxRSS)) }},
	{"AveVMSize", 10, blank},
	{"BlockID", 16, blank},
	{"Cluster", 10, func(r *AcctRow) string { return r.Cluster }},
	{"Comment", 14, ofJob(func(j *client.Job) string { return j.Spec.More().Comment })},
	{"Constraints", 19, ofJob(func(j *client.Job) string { return j.Spec.More().Constraint.String() })},
	{"ConsumedEnergy", 14, blank},
	{"ConsumedEnergyRaw", 17, blank},
	{"Container", 19, blank},
	{"CPUTime", 10, func(r *AcctRow) string { return grammar.FormatClock(r.elapsed() * cpuCount(r)) }},
	{"CPUTimeRAW", 10, func(r *AcctRow) string { return num(r.elapsed() * cpuCount(r)) }},
	{"DBIndex", -21, func(r *AcctRow) string { return num(r.Job.ID) }},
	{"DerivedExitCode", 15, func(r *AcctRow) string { return blankStep(r, exitText(r.Derived)) }},
	{"Elapsed", 10, func(r *AcctRow) string { return grammar.FormatClock(r.elapsed()) }},
	{"ElapsedRaw", 10, func(r *AcctRow) string { return num(r.elapsed()) }},
	{"Eligible", 19, func(r *AcctRow) string { return TimeText(cmp.Or(r.Job.Eligible, r.Job.Start), "Unknown") }},
	{"End", 19, func(r *AcctRow) string { return TimeText(r.end(), "Unknown") }},
	{"ExitCode", 8, func(r *AcctRow) string { return exitText(r.Exit()) }},
	{"Flags", 19, blank},
	{"GID", 6, ofJob(func(j *client.Job) string { return num(j.Spec.GID) })},
	{"Group", 9, ofJob(func(j *client.Job) string {
		if g, err := account.GroupByGID(j.Spec.GID); err == nil {
			return g.Name
		}
		return num(j.Spec.GID)
	})},
	{"JobID", -12, func(r *AcctRow) string { return rowID(r, jobRecordName(&r.Job.Job)) }},
	{"JobIDRaw", -12, func(r *AcctRow) string { return rowID(r, num(r.Job.ID)) }},
	{"JobName", 10, stepOrJobName},
	{"Layout", 9, func(r *AcctRow) string {
		switch {
		case r.Step == nil:
			return ""
		case r.Step.Step == nil:
			return "Unknown"
		}
		return r.Step.distribution()
	}},
	{"MaxDiskRead", 12, blank},
	{"MaxDiskReadNode", 15, blank},
	{"MaxDiskReadTask", 15, blank},
	{"MaxDiskWrite", 12, blank},
	{"MaxDiskWriteNode", 16, blank},
	{"MaxDiskWriteTask", 16, blank},
	{"MaxPages", 8, blank},
	{"MaxPagesNode", 12, blank},
	{"MaxPagesTask", 14, blank},
	{"MaxRSS", 10, func(r *AcctRow) string { return stepOnly(r, kib(r.usage().MaxRSS)) }},
	{"MaxRSSNode", 10, func(r *AcctRow) string { return stepOnly(r, firstNode(r)) }},
	{"MaxRSSTask", 10, func(r *AcctRow) string { return stepOnly(r, "0") }},
	{"MaxVMSize", 10, blank},
	{"MaxVMSizeNode", 14, blank},
	{"MaxVMSizeTask", 14, blank},
	{"McsLabel", 12, blank},
	{"MinCPU", 10, func(r *AcctRow) string {
		return stepOnly(r, grammar.FormatClock(seconds(r.usage().User+r.usage().Sys)))
	}},
	{"MinCPUNode", 10, func(r *AcctRow) string { return stepOnly(r, firstNode(r)) }},
	{"MinCPUTask", 10, func(r *AcctRow) string { return stepOnly(r, "0") }},
	{"NCPUS", 10, allocCPUs},
	{"NNodes", 8, func(r *AcctRow) string { z := r.size(); return num(z.nodes) }},
	{"NodeList", 15, (*AcctRow).nodeList},
	{"NTasks", 8, func(r *AcctRow) string {
		if r.Step == nil {
			return ""
		}
		return num(r.Step.Tasks())
	}},
	{"Partition", 10, ofJob(func(j *client.Job) string { return partitionOf(&j.Job) })},
	{"Priority", 10, ofJob(func(j *client.Job) string { return num(j.Priority) })},
	{"QOS", 10, ofJob(func(j *client.Job) string { return string(j.Spec.QOS) })},
	{"QOSRAW", 6, blank},
	{"Reason", 22, ofJob(func(j *client.Job) string { return reasonOf(j).String() })},
	{"ReqCPUFreq", 10, cpuFreq},
	{"ReqCPUFreqGov", 13, cpuFreq},
	{"ReqCPUFreqMax", 13, cpuFreq},
	{"ReqCPUFreqMin", 13, cpuFreq},
	{"ReqCPUS", 8, func(r *AcctRow) string {
		if r.Step != nil {
			return num(cpuCount(r))
		}
		z := asked(r.Job.Spec)
		return num(z.cpus)
	}},
	{"ReqMem", 10, ofJob(func(j *client.Job) string { z := asked(j.Spec); return memText(z.mem) })},
	{"ReqNodes", 8, ofJob(func(j *client.Job) string { z := asked(j.Spec); return num(z.nodes) })},
	{"ReqTRES", 10, ofJob(func(j *client.Job) string { z := askedBy(j); return z.tres(true) })},
	{"Reservation", 20, ofJob(func(j *client.Job) string { return j.Spec.More().Reservation })},
	{"ReservationId", 8, blank},
	{"Reserved", 10, ofJob(func(j *client.Job) string { return grammar.FormatClock(planned(j)) })},
	{"ResvCPU", 10, ofJob(func(j *client.Job) string {
		z := asked(j.Spec)
		return grammar.FormatClock(planned(j) * int64(z.cpus))
	})},
	{"ResvCPURAW", 10, ofJob(func(j *client.Job) string { z := asked(j.Spec); return num(planned(j) * int64(z.cpus)) })},
	{"Start", 19, (*AcctRow).startText},
	{"State", 10, (*AcctRow).StateText},
	{"Submit", 19, func(r *AcctRow) string {
		if r.Step != nil {
			return TimeText(r.start(), "Unknown")
		}
		return TimeText(r.Job.Submit, "Unknown")
	}},
	{"SubmitLine", 20, ofJob(func(j *client.Job) string { return j.Spec.From.Line })},
	{"Suspended", 10, func(r *AcctRow) string { return grammar.FormatClock(seconds(r.Job.PausedFor)) }},
	// what became of it, with path and cause
	{"SystemComment", 15, ofJob(func(j *client.Job) string { return j.Message })},
	{"SystemCPU", 10, func(r *AcctRow) string { return cpuTime(r.usage().Sys) }},
	{"Timelimit", 10, ofJob(func(j *client.Job) string { return acctLimit(j.Spec.TimeLimit) })},
	{"TimelimitRaw", 10, ofJob(func(j *client.Job) string {
		if m := minutes(j.Spec.TimeLimit); m >= 0 {
			return num(m)
		}
		return acctLimit(j.Spec.TimeLimit)
	})},
	{"TotalCPU", 10, func(r *AcctRow) string { return cpuTime(r.usage().User + r.usage().Sys) }},
	{"TRESUsageInAve", 14, func(r *AcctRow) string {
		u := r.usage()
		return stepOnly(r, gpuUse(u.GPUMemAve, u.GPUUtilAve))
	}},
	{"TRESUsageInMax", 14, func(r *AcctRow) string { u := r.usage(); return stepOnly(r, gpuUse(u.GPUMem, u.GPUUtil)) }},
	{"TRESUsageInMaxNode", 18, blank},
	{"TRESUsageInMaxTask", 18, blank},
	{"TRESUsageInMin", 14, blank},
	{"TRESUsageInMinNode", 18, blank},
	{"TRESUsageInMinTask", 18, blank},
	{"TRESUsageInTot", 14, blank},
	{"TRESUsageOutAve", 15, blank},
	{"TRESUsageOutMax", 15, blank},
	{"TRESUsageOutMaxNode", 19, blank},
	{"TRESUsageOutMaxTask", 19, blank},
	{"TRESUsageOutMin", 15, blank},
	{"TRESUsageOutMinNode", 19, blank},
	{"TRESUsageOutMinTask", 19, blank},
	{"TRESUsageOutTot", 15, blank},
	{"UID", 6, ofJob(func(j *client.Job) string { return num(j.Spec.UID) })},
	{"User", 9, ofJob(func(j *client.Job) string { return string(j.Spec.User) })},
	{"UserCPU", 10, func(r *AcctRow) string { return cpuTime(r.usage().User) }},
	{"WCKey", 10, ofJob(func(j *client.Job) string { return j.Spec.More().WCKey })},
	{"WCKeyID", 10, ofJob(func(*client.Job) string { return "0" })},
	{"WorkDir", 20, ofJob(func(j *client.Job) string { return j.Spec.IO.WorkDir })},
	{"Planned", 10, ofJob(func(j *client.Job) string { return grammar.FormatClock(planned(j)) })},
	{"PlannedCPU", 10, ofJob(func(j *client.Job) string {
		z := asked(j.Spec)
		return grammar.FormatClock(planned(j) * int64(z.cpus))
	})},
	{"PlannedCPURAW", 13, ofJob(func(j *client.Job) string {
		z := asked(j.Spec)
		return num(planned(j) * int64(z.cpus))
	})},
	{"StdErr", 20, ofJob(func(j *client.Job) string {
		return slurm.OutPath(&j.Job, cmp.Or(j.Spec.IO.Stderr, j.Spec.IO.Stdout))
	})},
	{"StdIn", 20, ofJob(func(j *client.Job) string {
		return slurm.OutPath(&j.Job, cmp.Or(j.Spec.IO.Stdin, "/dev/null"))
	})},
	{"StdOut", 20, ofJob(func(j *client.Job) string { return slurm.OutPath(&j.Job, j.Spec.IO.Stdout) })},
	{"Restarts", 8, ofJob(func(j *client.Job) string { return num(slurm.Restarts(&j.Job)) })},
	{"Licenses", 10, ofJob(func(j *client.Job) string { return j.Spec.More().Licenses.String() })},
}

func blank(*AcctRow) string { return "" }

// cpuFreq is a requested CPU frequency. None is recorded; a batch step has no request.
func cpuFreq(r *AcctRow) string {
	if r.Step != nil && r.Step.Step == nil {
		return "0"
	}
	return "Unknown"
}

// ofJob shows something of the job on its own row only.
func ofJob(f func(j *client.Job) string) func(*AcctRow) string {
	return func(r *AcctRow) string {
		if r.Step != nil {
			return ""
		}
		return f(r.Job)
	}
}

func blankStep(r *AcctRow, v string) string {
	if r.Step != nil {
		return ""
	}
	return v
}

func stepOnly(r *AcctRow, v string) string {
	if r.Step == nil {
		return ""
	}
	return v
}

func rowID(r *AcctRow, job string) string {
	if r.Step == nil {
		return job
	}
	return job + "." + r.Step.Name()
}

func stepOrJobName(r *AcctRow) string {
	if r.Step != nil {
		return r.Step.Title()
	}
	return r.Job.Spec.Name
}

func cpuCount(r *AcctRow) int64 { z := r.size(); return int64(z.cpus) }

func allocCPUs(r *AcctRow) string { return num(cpuCount(r)) }

func allocOnly(r *AcctRow, f func(size) string) string {
	if r.Job.Alloc == nil {
		return "0"
	}
	return f(r.size())
}

func allocTRES(r *AcctRow) string {
	if r.Job.Alloc == nil {
		return ""
	}
	z := r.size()
	if r.Step != nil {
		return z.stepTRES()
	}
	return z.tres(true)
}

func firstNode(r *AcctRow) string {
	if r.Step == nil {
		return ""
	}
	if r.Step.Step != nil && len(r.Step.Step.Nodes) > 0 {
		return string(r.Step.Step.Nodes[0])
	}
	return r.Step.NodeList()
}

// planned is how long a job waited after it could have started.
func planned(j *client.Job) int64 {
	from := cmp.Or(j.Eligible, j.Submit)
	if j.Start == 0 {
		return 0
	}
	return max(0, seconds(j.Start.Sub(from)))
}

func acctLimit(s core.Seconds) string {
	switch m := minutes(s); m {
	case grammar.Unlimited:
		return "UNLIMITED"
	case grammar.NotSet:
		return "Partition_Limit"
	default:
		return grammar.FormatClock(m * 60)
	}
}

// gpuUse is what was sampled of a step's GPUs, all together; empty where nothing was.
func gpuUse(mem core.Bytes, util int32) string {
	if mem == 0 && util == 0 {
		return ""
	}
	return fmt.Sprintf("gres/gpumem=%s,gres/gpuutil=%d", memText(mem), util)
}
