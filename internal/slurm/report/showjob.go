package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/core/plain"
	"bireme.dev/bireme/internal/slurm"
)

// ShowOptions say how scontrol show prints.
type ShowOptions struct {
	OneLine bool
	Detail  bool
	Now     core.Time
	DefMem  core.Bytes // for a CPU, where a partition says nothing
	Derived core.Exit  // the worst of the job's numbered steps
	// Group finds a group's name; nil or "": its number.
	Group func(gid uint32) string
}

// block joins the lines of a record: below each other, or on one line.
func block(lines []string, oneLine bool) string {
	for i := range lines {
		lines[i] = plain.Cell(lines[i])
	}
	if oneLine {
		return strings.Join(lines, " ") + "\n"
	}
	return strings.Join(lines, "\n   ") + "\n\n"
}

// ShowJob prints a job as scontrol show job of Slurm 22.05 does.
func ShowJob(j *client.Job, o ShowOptions) string {
	s, more := j.Spec, j.Spec.More()
	first := fmt.Sprintf("JobId=%d", j.ID)
	if a := j.Array; a != nil {
		task := num(a.Task)
		if a.Tasks.Len() > 0 {
			task = taskList(client.ArrayTasks(a, s.Throttle), 0)
		}
		first += fmt.Sprintf(" ArrayJobId=%d ArrayTaskId=%s", a.Base, task)
		if s.Throttle > 0 {
			first += fmt.Sprintf(" ArrayTaskThrottle=%d", s.Throttle)
		}
	}
	het := more.Het
	if het != nil {
		first += fmt.Sprintf(" HetJobId=%d HetJobOffset=%d", het.Lead, het.Offset)
	}
	lines := []string{
		first + " JobName=" + s.Name,
		fmt.Sprintf("UserId=%s(%d) GroupId=%s(%d) MCS_label=N/A", s.User, s.UID, o.group(s.GID), s.GID),
		fmt.Sprintf("Priority=%d Nice=%d Account=%s QOS=%s", j.Priority, s.Nice, orNull(string(s.Project)),
			orNull(string(s.QOS))),
		fmt.Sprintf("JobState=%s Reason=%s Dependency=%s", StateName(j.State, j.Flags&^core.Configuring),
			strings.ReplaceAll(reasonOf(j).String(), " ", "_"), dependencyText(j)),
		fmt.Sprintf("Requeue=%s Restarts=%d BatchFlag=%s Reboot=%s ExitCode=%s", boolText(s.Requeue, "1", "0"),
			slurm.Restarts(&j.Job),
			boolText(s.Kind == core.Batch, "1", "0"), cmp.Or(more.SlurmOption("reboot"), "0"), exitText(j.Exit)),
	}
	if het != nil {
		lines = slices.Insert(lines, 1, "HetJobIdSet="+hetSet(het))
	}
	if o.Detail {
		lines = append(lines, "DerivedExitCode="+exitText(o.Derived))
	}
	lines = append(lines, showTimes(j, o)...)
	lines = append(lines,
		fmt.Sprintf("Partition=%s AllocNode:Sid=%s:%d", partitionOf(&j.Job), s.From.Host, s.From.Sid),
		fmt.Sprintf("ReqNodeList=%s ExcNodeList=%s", orNull(folded(more.NodeList)), orNull(folded(more.Exclude))),
		"NodeList="+client.AllocList(j.Alloc)+schedNodes(j))
	if j.Alloc != nil && s.Kind == core.Batch && len(j.Alloc.Nodes) > 0 {
		lines = append(lines, "BatchHost="+string(j.Alloc.Nodes[0].Node))
	}
	lines = append(lines, showSize(j, o)...)
	lines = append(lines, showWishes(j)...)
	lines = append(lines, "Command="+command(s), "WorkDir="+s.IO.WorkDir)
	if text := more.SlurmOption("admin-comment"); text != "" {
		lines = append(lines, "AdminComment="+text+" ")
	}
	if more.Comment != "" {
		lines = append(lines, "Comment="+more.Comment+" ")
	}
	if s.Kind == core.Batch {
		lines = append(lines, "StdErr="+slurm.OutPath(&j.Job, cmp.Or(s.IO.Stderr, s.IO.Stdout)),
			"StdIn="+slurm.OutPath(&j.Job, cmp.Or(s.IO.Stdin, "/dev/null")),
			"StdOut="+slurm.OutPath(&j.Job, s.IO.Stdout))
	}
	if !more.Switches.IsZero() {
		lines = append(lines, "Switches="+switchText(more.Switches))
	}
	lines = append(lines, "Power=")
	lines = append(lines, showPer(j)...)
	if more.MailTypes != "" && more.MailTypes != "NONE" {
		lines = append(lines, fmt.Sprintf("MailUser=%s MailType=%s", cmp.Or(more.MailUser, string(s.User)), more.MailTypes))
	}
	return block(append(lines, ""), o.OneLine)
}

// schedNodes are the nodes that wait for a job.
func schedNodes(j *client.Job) string {
	if j.State != core.Pending || j.Planned == "" {
		return ""
	}
	return " SchedNodeList=" + j.Planned
}

func (o *ShowOptions) group(gid uint32) string {
	if o.Group != nil {
		if name := o.Group(gid); name != "" {
			return name
		}
	}
	return num(gid)
}

func showTimes(j *client.Job, o ShowOptions) []string {
	limit := "Partition_Limit"
	if m := minutes(j.Spec.TimeLimit); m != grammar.NotSet {
		limit = grammar.FormatClockLimit(m)
	}
	timeMin := "N/A"
	if t := j.Spec.More().TimeMin; t > 0 {
		timeMin = grammar.FormatClockLimit(minutes(t))
	}
	start := j.Start
	if j.State == core.Pending {
		start = j.Expected
	}
	lines := []string{
		fmt.Sprintf("RunTime=%s TimeLimit=%s TimeMin=%s", grammar.FormatClock(seconds(j.Elapsed(o.Now))), limit, timeMin),
		fmt.Sprintf("SubmitTime=%s EligibleTime=%s", TimeText(j.Submit, "Unknown"), TimeText(eligible(j), "Unknown")),
		"AccrueTime=" + TimeText(accrued(j), "Unknown"),
		fmt.Sprintf("StartTime=%s EndTime=%s Deadline=%s", TimeText(start, "Unknown"),
			TimeText(expectedEnd(j), "Unknown"), TimeText(j.Spec.More().Deadline, "N/A")),
		fmt.Sprintf("SuspendTime=%s SecsPreSuspend=%d LastSchedEval=%s Scheduler=Main", TimeText(j.Paused, "None"),
			preSuspend(j), TimeText(cmp.Or(j.Start, j.Submit), "Unknown")),
	}
	if j.Pushed != nil {
		lines = slices.Insert(lines, 4, fmt.Sprintf("PreemptEligibleTime=%s PreemptTime=%s",
			TimeText(j.Start, "Unknown"), TimeText(j.Pushed.At, "None")))
	}
	return lines
}

// preSuspend is how long a suspended job had run when it was stopped.
func preSuspend(j *client.Job) int64 {
	if j.Paused == 0 {
		return 0
	}
	return seconds(j.Elapsed(j.Paused))
}

func showSize(j *client.Job, o ShowOptions) []string {
	s, wide := j.Spec, j.Spec.Shape.Wide()
	z := billed(j)
	z.nodes = max(z.nodes, j.LeastNodes)
	nodes := num(z.nodes)
	if j.Alloc == nil && s.Shape.NodesMax > 0 {
		nodes = fmt.Sprintf("%d-%d", z.nodes, s.Shape.NodesMax)
	}
	lines := []string{
		fmt.Sprintf("NumNodes=%s NumCPUs=%d NumTasks=%d CPUs/Task=%d ReqB:S:C:T=0:%s:%s:%s", nodes, z.cpus, slurm.TasksOf(s),
			max(1, s.Shape.CPUsPerTask),
			cmp.Or(positive(wide.Sockets), "0"), anyOr(wide.Cores), anyOr(wide.Threads)),
		"TRES=" + z.tres(false),
		fmt.Sprintf("Socks/Node=%s NtasksPerN:B:S:C=%d:0:%s:%s %s", anyOr(wide.Sockets), s.Shape.TasksPerNode,
			anyOr(wide.TasksPerSocket),
			anyOr(wide.TasksPerCore), spared(wide)),
	}
	if o.Detail && j.Alloc != nil {
		lines = append(lines, "JOB_GRES="+orNull(jobGres(&j.Job)))
		lines = append(lines, showNodes(&j.Job)...)
	}
	return lines
}

// anyOr is a count, or Slurm's sign for any.
func anyOr(n int32) string { return cmp.Or(positive(n), "*") }

func positive(n int32) string {
	if n > 0 {
		return num(n)
	}
	return ""
}

// spared is what of its nodes a job leaves to the system.
func spared(m *core.ShapeMore) string {
	if m.ThreadSpec > 0 {
		return "ThreadSpec=" + num(m.ThreadSpec)
	}
	return "CoreSpec=" + anyOr(m.CoreSpec)
}

// showPer lists what is asked for by GPU, and GPUs by job, node, socket and task.
func showPer(j *client.Job) []string {
	s, m := &j.Spec.Shape, j.Spec.Shape.Wide()
	var lines []string
	if m.CPUsPerGPU > 0 {
		lines = append(lines, "CpusPerTres=gres:gpu:"+num(m.CPUsPerGPU))
	}
	if m.MemPerGPU > 0 {
		lines = append(lines, fmt.Sprintf("MemPerTres=gres:gpu:%d", slurm.InMiB(m.MemPerGPU)))
	}
	more := j.Spec.More()
	for _, o := range []struct{ name, option string }{{"TresBind", "gpu-bind"}, {"TresFreq", "gpu-freq"}} {
		if v := more.SlurmOption(o.option); v != "" {
			lines = append(lines, o.name+"=gpu:"+strings.TrimPrefix(v, "gpu:"))
		}
	}
	for _, p := range []struct {
		name string
		list []core.Gres
	}{
		{"TresPerJob", m.GPUs},
		{"TresPerNode", s.Gres},
		{"TresPerSocket", m.GPUsPerSocket},
		{"TresPerTask", m.GPUsPerTask},
	} {
		if len(p.list) > 0 {
			lines = append(lines, p.name+"="+tresPer(p.list))
		}
	}
	if m.TasksPerGPU > 0 {
		lines = append(lines, "NtasksPerTRES:"+num(m.TasksPerGPU))
	}
	return lines
}

// requestedFirst are the units of a node in the order that Slurm shows: what the job asked for as it did, then what
// came with the nodes.
func requestedFirst(j *core.Job, list []core.GresAlloc) []core.GresAlloc {
	asked := j.Spec.Shape.Gres
	at := func(g core.GresAlloc) int {
		if i := slices.IndexFunc(asked, func(a core.Gres) bool { return a.Name == g.Name }); i >= 0 {
			return i
		}
		return len(asked)
	}
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(x, y core.GresAlloc) int { return cmp.Compare(at(x), at(y)) })
	return list
}

// jobGres sums what the job has of each generic resource.
func jobGres(j *core.Job) string {
	sums := map[string]int64{}
	var names []string
	for i := range j.Alloc.Nodes {
		for _, g := range requestedFirst(j, j.Alloc.Nodes[i].Gres) {
			name := g.Name
			if g.Type != "" {
				name += ":" + g.Type
			}
			if sums[name] == 0 {
				names = append(names, name)
			}
			sums[name] += int64(len(g.Units))
		}
	}
	var words []string
	for _, name := range names {
		words = append(words, name+":"+strconv.FormatInt(sums[name], 10))
	}
	return strings.Join(words, ",")
}

// showNodes lists the parts of nodes; neighbors with equal parts share a line.
func showNodes(j *core.Job) []string {
	a := j.Alloc
	var lines []string
	var names []string
	last := ""
	flush := func() {
		if names != nil {
			lines = append(lines, "  Nodes="+hostlist.FoldSorted(names)+" "+last)
		}
	}
	for i := range a.Nodes {
		n := &a.Nodes[i]
		var gres []string
		for _, g := range requestedFirst(j, n.Gres) {
			gres = append(gres, gresIndex(g.Name, g.Type, g.Units))
		}
		text := fmt.Sprintf("CPU_IDs=%s Mem=%d GRES=%s", ranges(n.Cores), slurm.InMiB(n.Mem), strings.Join(gres, ","))
		if text != last {
			flush()
			names, last = nil, text
		}
		names = append(names, string(n.Node))
	}
	flush()
	return lines
}

func gresIndex(kind, typ string, units []int32) string {
	name := kind
	if typ != "" {
		name += ":" + typ
	}
	if !hasDevices(kind) {
		return fmt.Sprintf("%s(CNT:%d)", name, len(units))
	}
	return fmt.Sprintf("%s:%d(IDX:%s)", name, len(units), cmp.Or(ranges(units), "N/A"))
}

// hasDevices reports whether units of a kind are devices, or parts of one: they are shown by number, others by count.
func hasDevices(name string) bool { return name == "gpu" || name == "mps" || name == "shard" }

// ranges writes 0-3,8.
func ranges(list []int32) string {
	list = slices.Clone(list)
	slices.Sort(list)
	var words []string
	for i := 0; i < len(list); {
		k := i
		for k+1 < len(list) && list[k+1] == list[k]+1 {
			k++
		}
		if k == i {
			words = append(words, num(list[i]))
		} else {
			words = append(words, num(list[i])+"-"+num(list[k]))
		}
		i = k + 1
	}
	return strings.Join(words, ",")
}

func showWishes(j *client.Job) []string {
	s, more := j.Spec, j.Spec.More()
	memory := "MinMemoryNode=" + cmp.Or(zeroText(s.Shape.MemPerNode), "0")
	if s.Shape.MemPerCPU > 0 {
		memory = "MinMemoryCPU=" + memText(s.Shape.MemPerCPU)
	}
	tmp := "0"
	if more.TmpDisk > 0 {
		tmp = memText(more.TmpDisk)
	}
	lines := []string{
		fmt.Sprintf("MinCPUsNode=%d %s MinTmpDiskNode=%s", minCPUsNode(s), memory, tmp),
		fmt.Sprintf("Features=%s DelayBoot=%s", orNull(more.Constraint.String()), delayBoot(more)),
	}
	if more.Reservation != "" {
		lines = append(lines, "Reservation="+more.Reservation)
	}
	return append(lines, fmt.Sprintf("OverSubscribe=%s Contiguous=%s Licenses=%s Network=%s", oversubscribe(s),
		boolText(more.Contiguous, "1", "0"), orNull(more.Licenses.String()), orNull(more.SlurmOption("network"))))
}

// delayBoot is how long a job would wait before nodes are booted for it: minutes, or as a time limit is written.
func delayBoot(x *core.Extra) string {
	m, err := grammar.ParseTimeLimit(x.SlurmOption("delay-boot"))
	if err != nil || m < 0 {
		m = 0
	}
	return grammar.FormatClock(m * 60)
}

func zeroText(m core.Bytes) string {
	if m == 0 {
		return ""
	}
	return memText(m)
}

// switchText is --switches as scontrol shows it: the count, and the time to wait if one was given.
func switchText(l core.SwitchLimit) string {
	if l.Fault() != nil || l.Wait() == core.Forever {
		return l.String()
	}
	return strconv.Itoa(int(l.Count())) + "@" + grammar.FormatClock(int64(l.Wait()))
}
