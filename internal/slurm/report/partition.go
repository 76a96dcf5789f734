package report

import (
	"cmp"
	"fmt"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/policy"
	"bireme.dev/bireme/internal/slurm"
)

// GresText writes gpu:a100:4,nic:2.
func GresText(list []core.Gres) string { return gresText(list) }

// PartitionPairs are the KEY=VALUE of a line of slurm.conf that says what a partition is, less its defaults.
func PartitionPairs(p *core.Partition) []string {
	var out []string
	add := func(on bool, format string, args ...any) {
		if on {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	add(len(p.AllowProjects) > 0, "AllowAccounts=%s", joinNames(p.AllowProjects))
	add(len(p.AllowGroups) > 0, "AllowGroups=%s", strings.Join(p.AllowGroups, ","))
	add(len(p.AllowQOS) > 0, "AllowQos=%s", joinNames(p.AllowQOS))
	add(p.AllocNodes != "", "AllocNodes=%s", p.AllocNodes)
	add(p.Alternate != "", "Alternate=%s", p.Alternate)
	add(p.CPUBind != "", "CpuBind=%s", p.CPUBind)
	add(p.Default, "Default=YES")
	add(p.DefaultTime > 0, "DefaultTime=%s", grammar.FormatClockLimit(minutes(p.DefaultTime)))
	add(p.DefMemPerCPU > 0, "DefMemPerCPU=%d", slurm.InMiB(p.DefMemPerCPU))
	add(len(p.DenyProjects) > 0, "DenyAccounts=%s", joinNames(p.DenyProjects))
	add(len(p.DenyQOS) > 0, "DenyQos=%s", joinNames(p.DenyQOS))
	add(p.DefMemPerNode > 0, "DefMemPerNode=%d", slurm.InMiB(p.DefMemPerNode))
	add(p.NoRoot, "DisableRootJobs=YES")
	add(p.ExclusiveUser, "ExclusiveUser=YES")
	add(p.Grace > 0, "GraceTime=%d", p.Grace)
	add(p.Hidden, "Hidden=YES")
	add(jobDefaults(p) != "", "JobDefaults=%s", jobDefaults(p))
	add(p.LLN, "LLN=YES")
	add(p.MaxCPUsPerNode > 0, "MaxCPUsPerNode=%d", p.MaxCPUsPerNode)
	add(p.MaxMemPerCPU > 0, "MaxMemPerCPU=%d", slurm.InMiB(p.MaxMemPerCPU))
	add(p.MaxMemPerNode > 0, "MaxMemPerNode=%d", slurm.InMiB(p.MaxMemPerNode))
	add(p.MaxNodes > 0, "MaxNodes=%d", p.MaxNodes)
	add(p.MaxTime > 0 && p.MaxTime < core.Forever, "MaxTime=%s", grammar.FormatClockLimit(minutes(p.MaxTime)))
	add(true, "MinNodes=%d", p.MinNodes)
	add(p.Nodes != core.NoNodes, "Nodes=%s", p.Nodes)
	add(p.OverSubscribe != "" && p.OverSubscribe != "NO", "OverSubscribe=%s", p.OverSubscribe)
	add(p.OverTime > 0, "OverTimeLimit=%s", overTimeText(p.OverTime))
	add(p.PreemptMode != "" && p.PreemptMode != "off", "PreemptMode=%s", strings.ToUpper(string(p.PreemptMode)))
	add(p.PriorityFactor > 1, "PriorityJobFactor=%d", p.PriorityFactor)
	add(p.PriorityTier > 1, "PriorityTier=%d", p.PriorityTier)
	add(p.QOS != "", "QOS=%s", p.QOS)
	add(p.ReqResv, "ReqResv=YES")
	add(p.RootOnly, "RootOnly=YES")
	add(p.BillingWeights != "", "TRESBillingWeights=%s", p.BillingWeights)
	add(true, "State=%s", cmp.Or(strings.ToUpper(p.State), "UP"))
	return out
}

// ShowPartition prints a partition as scontrol show partition of Slurm 22.05 does; nodes are those of the cluster.
func ShowPartition(p *core.Partition, nodes []client.Node, o ShowOptions) string {
	var cpus, count int32
	var mem core.Bytes
	var gres []core.Gres
	for i := range nodes {
		n := &nodes[i]
		if !inPartition(n, p.Name) {
			continue
		}
		count++
		cpus += n.Hardware.CPUs
		mem += n.Hardware.Memory
		gres = append(gres, n.Hardware.Gres...)
	}
	maxNodes, maxTime, defTime := "UNLIMITED", "UNLIMITED", "NONE"
	if p.MaxNodes > 0 {
		maxNodes = num(p.MaxNodes)
	}
	if p.MaxTime > 0 && p.MaxTime < core.Forever {
		maxTime = grammar.FormatClockLimit(minutes(p.MaxTime))
	}
	if p.DefaultTime > 0 {
		defTime = grammar.FormatClockLimit(minutes(p.DefaultTime))
	}
	yes := func(b bool) string { return boolText(b, "YES", "NO") }
	place := "AllocNodes=" + cmp.Or(p.AllocNodes, "ALL")
	if p.Alternate != "" {
		place += " Alternate=" + string(p.Alternate)
	}
	place += " Default=" + yes(p.Default)
	if p.CPUBind != "" {
		place += " CpuBind=" + bindText(p.CPUBind) + " "
	}
	tres := "(null)"
	if count > 0 {
		tres = billedTRES(cpus, mem, count, policy.BillingOf(p.BillingWeights, cpus, mem, count, gres), gres)
	}
	lines := []string{
		"PartitionName=" + string(p.Name),
		"AllowGroups=" + cmp.Or(strings.Join(p.AllowGroups, ","), "ALL") + " " +
			allowed("Accounts", p.AllowProjects, p.DenyProjects) + " " + allowed("Qos", p.AllowQOS, p.DenyQOS),
		place + " QoS=" + cmp.Or(string(p.QOS), "N/A"),
		"DefaultTime=" + defTime + " DisableRootJobs=" + yes(p.NoRoot) + " ExclusiveUser=" + yes(p.ExclusiveUser) +
			" GraceTime=" + num(p.Grace) + " Hidden=" + yes(p.Hidden),
		fmt.Sprintf("MaxNodes=%s MaxTime=%s MinNodes=%d LLN=%s MaxCPUsPerNode=%s", maxNodes, maxTime, p.MinNodes,
			yes(p.LLN), cmp.Or(positive(p.MaxCPUsPerNode), "UNLIMITED")),
		"Nodes=" + partitionNodes(p, nodes),
		fmt.Sprintf("PriorityJobFactor=%d PriorityTier=%d RootOnly=%s ReqResv=%s OverSubscribe=%s",
			max(1, p.PriorityFactor), max(1, p.PriorityTier), yes(p.RootOnly),
			yes(p.ReqResv), cmp.Or(strings.ToUpper(p.OverSubscribe), "NO")),
		"OverTimeLimit=" + overTimeText(p.OverTime) + " PreemptMode=" + preemptMode(p),
		fmt.Sprintf("State=%s TotalCPUs=%d TotalNodes=%d SelectTypeParameters=NONE",
			cmp.Or(strings.ToUpper(p.State), "UP"), cpus, count),
		"JobDefaults=" + orNull(jobDefaults(p)),
		partitionMemory(p, o.DefMem),
		"TRES=" + tres,
	}
	if p.BillingWeights != "" {
		lines = append(lines, "TRESBillingWeights="+p.BillingWeights)
	}
	return block(lines, o.OneLine)
}

// allowed says who may use a partition, or, where all but some may, who may not.
func allowed[T ~string](what string, allow, deny []T) string {
	if len(allow) == 0 && len(deny) > 0 {
		return "Deny" + what + "=" + joinNames(deny)
	}
	return "Allow" + what + "=" + cmp.Or(joinNames(allow), "ALL")
}

// bindText is a binding as Slurm shows it.
func bindText(bind string) string {
	if bind == "none" {
		return bind
	}
	return bind + "s"
}

func overTimeText(t core.Seconds) string {
	switch {
	case t == 0:
		return "NONE"
	case t >= core.Forever:
		return "UNLIMITED"
	}
	return num(t / 60)
}

func jobDefaults(p *core.Partition) string {
	var words []string
	if p.DefCPUsPerGPU > 0 {
		words = append(words, fmt.Sprintf("DefCpuPerGPU=%d", p.DefCPUsPerGPU))
	}
	if p.DefMemPerGPU > 0 {
		words = append(words, fmt.Sprintf("DefMemPerGPU=%d", slurm.InMiB(p.DefMemPerGPU)))
	}
	return strings.Join(words, ",")
}

// partitionMemory is the default and the limit; a default that is the cluster's is not shown.
func partitionMemory(p *core.Partition, cluster core.Bytes) string {
	def, most := "DefMemPerNode=UNLIMITED", "MaxMemPerNode=UNLIMITED"
	switch {
	case p.DefMemPerNode > 0:
		def = fmt.Sprintf("DefMemPerNode=%d", slurm.InMiB(p.DefMemPerNode))
	case p.DefMemPerCPU > 0 && p.DefMemPerCPU != cluster:
		def = fmt.Sprintf("DefMemPerCPU=%d", slurm.InMiB(p.DefMemPerCPU))
	}
	switch {
	case p.MaxMemPerCPU > 0:
		most = fmt.Sprintf("MaxMemPerCPU=%d", slurm.InMiB(p.MaxMemPerCPU))
	case p.MaxMemPerNode > 0:
		most = fmt.Sprintf("MaxMemPerNode=%d", slurm.InMiB(p.MaxMemPerNode))
	}
	return def + " " + most
}
