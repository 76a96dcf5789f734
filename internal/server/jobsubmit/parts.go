package jobsubmit

import (
	"strings"

	lua "github.com/yuin/gopher-lua"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/engine/state"
)

// partTable is part_list: the partitions by name, each a table whose fields are made when they are read.
func partTable(l *lua.LState, now *state.Snapshot) *lua.LTable {
	t := l.NewTable()
	if now == nil {
		return t
	}
	parts := now.Partitions()
	for i := range parts {
		t.RawSetString(string(parts[i].Name), lazy(l, func(name string) lua.LValue {
			return partField(now, &parts[i], name)
		}))
	}
	return t
}

// lazy is a table that makes its fields when they are read; what is written to it stays in it.
func lazy(l *lua.LState, get func(name string) lua.LValue) *lua.LTable {
	t, meta := l.NewTable(), l.NewTable()
	meta.RawSetString("__index", l.NewFunction(func(l *lua.LState) int {
		l.Push(get(l.CheckString(2)))
		return 1
	}))
	l.SetMetatable(t, meta)
	return t
}

// partField is a field of a partition, by Slurm's name; nil where it is unset or unknown.
func partField(now *state.Snapshot, p *core.Partition, name string) lua.LValue {
	switch name {
	case "name":
		return lua.LString(p.Name)
	case "nodes":
		return textOr(p.Nodes)
	case "allow_accounts":
		return textOr(joined(p.AllowProjects))
	case "deny_accounts":
		return textOr(joined(p.DenyProjects))
	case "allow_qos":
		return textOr(joined(p.AllowQOS))
	case "deny_qos":
		return textOr(joined(p.DenyQOS))
	case "allow_groups":
		return textOr(strings.Join(p.AllowGroups, ","))
	case "allow_alloc_nodes":
		return textOr(p.AllocNodes)
	case "alternate":
		return textOr(string(p.Alternate))
	case "qos", "qos_char":
		return textOr(string(p.QOS))
	case "billing_weights_str":
		return textOr(p.BillingWeights)
	case "flag_default":
		return lua.LNumber(bit(p.Default, 1))
	case "flags":
		return lua.LNumber(bit(p.Default, 1) | bit(p.Hidden, 2) | bit(p.NoRoot, 4) | bit(p.RootOnly, 8) |
			bit(p.ReqResv, 16) | bit(p.LLN, 32) | bit(p.ExclusiveUser, 64))
	case "state_up":
		return lua.LNumber(map[string]int{"DOWN": 1, "DRAIN": 2, "INACTIVE": 0}[p.State] + bit(p.State == "" ||
			p.State == "UP", 3))
	default:
		return partNumber(now, p, name)
	}
}

func partNumber(now *state.Snapshot, p *core.Partition, name string) lua.LValue {
	orInfinite := func(n int64) lua.LValue {
		if n == 0 {
			return lua.LNumber(infinite)
		}
		return lua.LNumber(n)
	}
	memory := func(perNode, perCPU core.Bytes, ofCPU bool) lua.LValue {
		switch {
		case ofCPU && perCPU > 0:
			return lua.LNumber(perCPU / core.MiB)
		case ofCPU || perCPU > 0:
			return lua.LNil
		}
		return lua.LNumber(perNode / core.MiB)
	}
	switch name {
	case "max_nodes", "max_nodes_orig":
		return orInfinite(int64(p.MaxNodes))
	case "min_nodes", "min_nodes_orig":
		return lua.LNumber(p.MinNodes)
	case "max_time":
		return orInfinite(int64(p.MaxTime) / 60)
	case "default_time":
		if p.DefaultTime == 0 {
			return lua.LNumber(noVal)
		}
		return lua.LNumber(int64(p.DefaultTime) / 60)
	case "priority_job_factor":
		return lua.LNumber(p.PriorityFactor)
	case "priority_tier":
		return lua.LNumber(p.PriorityTier)
	case "max_cpus_per_node":
		return orInfinite(int64(p.MaxCPUsPerNode))
	case "def_mem_per_cpu":
		return memory(p.DefMemPerNode, p.DefMemPerCPU, true)
	case "def_mem_per_node":
		return memory(p.DefMemPerNode, p.DefMemPerCPU, false)
	case "max_mem_per_cpu":
		return memory(p.MaxMemPerNode, p.MaxMemPerCPU, true)
	case "max_mem_per_node":
		return memory(p.MaxMemPerNode, p.MaxMemPerCPU, false)
	case "max_share":
		return lua.LNumber(1)
	case "total_nodes":
		nodes, _ := totals(now, p)
		return lua.LNumber(nodes)
	case "total_cpus":
		_, cpus := totals(now, p)
		return lua.LNumber(cpus)
	}
	return lua.LNil
}

// totals counts the nodes of a partition and their CPUs.
func totals(now *state.Snapshot, p *core.Partition) (nodes int, cpus int64) {
	if strings.EqualFold(p.Nodes, "ALL") {
		for n := range now.Nodes() {
			nodes, cpus = nodes+1, cpus+int64(n.Hardware.CPUs)
		}
		return nodes, cpus
	}
	names, err := hostlist.Expand(p.Nodes, 1<<20)
	if err != nil {
		return 0, 0
	}
	for _, name := range names {
		if n, ok := now.Node(core.NodeName(name)); ok {
			nodes, cpus = nodes+1, cpus+int64(n.Hardware.CPUs)
		}
	}
	return nodes, cpus
}

// maxListed bounds slurm.jobs: a script that needs more must be written in another way.
const maxListed = 100_000

// jobTable is slurm.jobs: the live jobs by id.
func jobTable(l *lua.LState, c *call) *lua.LTable {
	t := l.NewTable()
	if c.now == nil {
		return t
	}
	listed := 0
	for j := range c.now.Jobs() {
		if listed++; listed > maxListed {
			break
		}
		c.spend(l, 256)
		t.RawSet(lua.LNumber(j.ID), lazy(l, func(name string) lua.LValue { return jobField(j, name) }))
	}
	return t
}

// reservationTable is slurm.reservations, by name.
func reservationTable(l *lua.LState, c *call) *lua.LTable {
	t := l.NewTable()
	if c.now == nil {
		return t
	}
	for _, r := range c.now.Reservations() {
		t.RawSetString(r.Name, lazy(l, func(name string) lua.LValue {
			switch name {
			case "name":
				return lua.LString(r.Name)
			case "accounts":
				return textOr(joined(r.Projects))
			case "users":
				return textOr(joined(r.Users))
			case "start_time":
				return lua.LNumber(r.Start.Unix())
			case "end_time":
				return lua.LNumber(r.End.Unix())
			}
			return lua.LNil
		}))
	}
	return t
}

func textOr(s string) lua.LValue {
	if s == "" {
		return lua.LNil
	}
	return lua.LString(s)
}

func joined[T ~string](list []T) string {
	out := make([]string, len(list))
	for i, x := range list {
		out[i] = string(x)
	}
	return strings.Join(out, ",")
}

func bit(on bool, n int) int {
	if on {
		return n
	}
	return 0
}
