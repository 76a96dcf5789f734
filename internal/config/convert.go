package config

import (
	"cmp"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
)

// CorePartitions returns the partitions as types of core, cluster-wide defaults filled in.
func (c *Config) CorePartitions() []core.Partition {
	list := make([]core.Partition, 0, len(c.Partitions))
	for _, p := range c.Partitions {
		q := core.Partition{
			Name: core.PartitionName(p.Name), Nodes: p.Nodes, Default: p.Default, State: strings.ToUpper(p.State),
			MaxTime: core.Seconds(p.MaxTime), DefaultTime: core.Seconds(p.DefaultTime), MaxNodes: p.MaxNodes,
			MinNodes:     p.MinNodes,
			DefMemPerCPU: core.Bytes(p.DefMemPerCPU), MaxMemPerNode: core.Bytes(p.MaxMemPerNode),
			MaxMemPerCPU: core.Bytes(p.MaxMemPerCPU), MaxCPUsPerNode: p.MaxCPUsPerNode,
			OverSubscribe: strings.ToUpper(p.OverSubscribe),
			PriorityTier:  p.PriorityTier, PriorityFactor: p.PriorityFactor, LLN: p.LLN, ExclusiveUser: p.ExclusiveUser,
			QOS: core.QOSName(p.QOS), AllowQOS: names[core.QOSName](p.AllowQOS), DenyQOS: names[core.QOSName](p.DenyQOS),
			AllowProjects: names[core.ProjectName](p.AllowProjects), DenyProjects: names[core.ProjectName](p.DenyProjects),
			AllowGroups: p.AllowGroups, RootOnly: p.AdminOnly, ReqResv: p.ReqResv,
			PreemptMode: core.PreemptMode(strings.ToLower(p.PreemptMode)), Grace: p.Grace.Seconds(),
		}
		q.PartitionExtra = core.PartitionExtra{
			AllocNodes: p.AllocNodes, Alternate: core.PartitionName(p.Alternate), CPUBind: p.CPUBind,
			DefMemPerNode: core.Bytes(p.DefMemPerNode), DefCPUsPerGPU: p.DefCPUsPerGPU,
			DefMemPerGPU: core.Bytes(p.DefMemPerGPU), NoRoot: p.NoRoot, Hidden: p.Hidden,
			OverTime: core.Seconds(p.OverTime), BillingWeights: p.BillingWeights,
		}
		if c.Preemption.Type != "none" {
			q.PreemptMode, q.Grace = cmp.Or(q.PreemptMode, core.PreemptMode(strings.ToLower(c.Preemption.Mode))),
				cmp.Or(q.Grace, c.Preemption.Grace.Seconds())
		}
		if q.MaxTime == 0 {
			q.MaxTime = core.Seconds(c.Jobs.MaxTime)
		}
		if q.DefaultTime == 0 {
			q.DefaultTime = core.Seconds(c.Jobs.DefaultTime)
		}
		if q.DefMemPerCPU == 0 && q.DefMemPerNode == 0 {
			q.DefMemPerCPU = core.Bytes(c.Jobs.DefMemPerCPU)
		}
		if q.MaxTime >= core.Forever {
			q.MaxTime = 0
		}
		list = append(list, q)
	}
	return list
}

func names[T ~string](list []string) (out []T) {
	for _, w := range list {
		out = append(out, T(w))
	}
	return out
}

// CoreNodes returns the static nodes as types of core, in the order of the file. The Config has been checked.
func (c *Config) CoreNodes() []*core.Node {
	var list []*core.Node
	for _, n := range c.Nodes {
		names, err := hostlist.Expand(n.Names, maxNames)
		if err != nil {
			continue // Check refuses it
		}
		hw := core.Hardware{
			CPUs: n.CPUs, Sockets: n.Sockets, Cores: n.Cores, Threads: n.Threads,
			Memory: core.Bytes(n.Memory), TmpDisk: core.Bytes(n.TmpDisk),
		}
		hw.Gres, hw.Units, _ = ParseUnits(n.Gres...) // Check refuses what it cannot read
		flags := nodeStates[strings.ToLower(n.State)]
		for _, name := range names {
			list = append(list, &core.Node{
				Name: core.NodeName(name), Roles: core.Compute, Hardware: hw, Host: core.Host{Hostname: name, Addr: n.Addr},
				Weight: n.Weight, Features: n.Features, Flags: core.NodeUnknown | flags,
				Cloud: flags.Has(core.NodePoweredDown), Reason: n.Reason,
			})
		}
	}
	return list
}
