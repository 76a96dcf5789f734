package report

import (
	"cmp"
	"fmt"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
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
	add(p.Default, "Default=YES")
	add(p.DefaultTime > 0, "DefaultTime=%s", grammar.FormatClockLimit(minutes(p.DefaultTime)))
	add(p.DefMemPerCPU > 0, "DefMemPerCPU=%d", slurm.InMiB(p.DefMemPerCPU))
	add(len(p.DenyProjects) > 0, "DenyAccounts=%s", joinNames(p.DenyProjects))
	add(len(p.DenyQOS) > 0, "DenyQos=%s", joinNames(p.DenyQOS))
	add(p.ExclusiveUser, "ExclusiveUser=YES")
	add(p.Grace > 0, "GraceTime=%d", p.Grace)
	add(p.LLN, "LLN=YES")
	add(p.MaxCPUsPerNode > 0, "MaxCPUsPerNode=%d", p.MaxCPUsPerNode)
	add(p.MaxMemPerCPU > 0, "MaxMemPerCPU=%d", slurm.InMiB(p.MaxMemPerCPU))
	add(p.MaxMemPerNode > 0, "MaxMemPerNode=%d", slurm.InMiB(p.MaxMemPerNode))
	add(p.MaxNodes > 0, "MaxNodes=%d", p.MaxNodes)
	add(p.MaxTime > 0 && p.MaxTime < core.Forever, "MaxTime=%s", grammar.FormatClockLimit(minutes(p.MaxTime)))
	add(true, "MinNodes=%d", p.MinNodes)
	add(true, "Nodes=%s", p.Nodes)
	add(p.OverSubscribe != "" && p.OverSubscribe != "NO", "OverSubscribe=%s", p.OverSubscribe)
	add(p.PreemptMode != "" && p.PreemptMode != "off", "PreemptMode=%s", strings.ToUpper(string(p.PreemptMode)))
	add(p.PriorityFactor > 1, "PriorityJobFactor=%d", p.PriorityFactor)
	add(p.PriorityTier > 1, "PriorityTier=%d", p.PriorityTier)
	add(p.QOS != "", "QOS=%s", p.QOS)
	add(p.ReqResv, "ReqResv=YES")
	add(p.RootOnly, "RootOnly=YES")
	add(true, "State=%s", cmp.Or(strings.ToUpper(p.State), "UP"))
	return out
}
