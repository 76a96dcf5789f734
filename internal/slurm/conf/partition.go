package conf

import (
	"fmt"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/slurm/conf/keys"
)

func (v *converter) partitions() {
	if len(v.conf.Partitions) == 0 {
		return
	}
	v.cfg.Partitions = nil
	for i := range v.conf.Partitions {
		p := &v.conf.Partitions[i]
		out := config.Partition{Name: p.Name, PriorityTier: 1, PriorityFactor: 1, Nodes: "ALL", MaxTime: forever}
		if nodes, ok := p.Get("Nodes"); !ok || nodes == "" {
			out.Nodes = core.NoNodes
		}
		for _, k := range p.Keys {
			if err := v.partitionKey(&out, k, p); err != nil {
				v.fault(p.Where, "%s=%s: %v", k.Key, k.Value, err)
			}
			v.other(keys.PartitionLine, p.Where, k)
		}
		if out.MaxMemPerNode == 0 && out.MaxMemPerCPU == 0 {
			out.MaxMemPerNode, out.MaxMemPerCPU = v.maxMemPerNode, v.maxMemPerCPU
		}
		v.common(&out, p)
		v.checkNodes(&out, p)
		v.cfg.Partitions = append(v.cfg.Partitions, out)
	}
}

// common gives a partition what slurm.conf says of all, where its line says nothing of it.
func (v *converter) common(out *config.Partition, p *Partition) {
	says := func(keys ...string) bool {
		return slices.ContainsFunc(keys, func(k string) bool { _, ok := p.Get(k); return ok })
	}
	if !says("OverTimeLimit") {
		out.OverTime = v.all.OverTime
	}
	if !says("DisableRootJobs") {
		out.NoRoot = v.all.NoRoot
	}
	if !says("DefMemPerNode", "DefMemPerCPU") {
		out.DefMemPerNode = v.all.DefMemPerNode
	}
	if !says("DefCPUPerGPU", "JobDefaults") {
		out.DefCPUsPerGPU = v.all.DefCPUsPerGPU
	}
	if !says("DefMemPerGPU", "JobDefaults") {
		out.DefMemPerGPU = v.all.DefMemPerGPU
	}
}

// checkNodes refuses a partition over nodes that no NodeName line has, as Slurm does.
func (v *converter) checkNodes(out *config.Partition, p *Partition) {
	if out.Nodes == core.NoNodes || strings.EqualFold(out.Nodes, "ALL") {
		return
	}
	names, err := hostlist.Expand(out.Nodes, maxNames)
	if err != nil {
		return // it was told
	}
	var missing []string
	for _, name := range names {
		if !v.declared[name] {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		v.fault(p.Where, "partition %s: there is no node %s: no NodeName line has it", p.Name, hostlist.Fold(missing))
	}
}

// cpuBind reads how tasks are bound to CPUs. Slurm takes plurals too.
func cpuBind(text string) (string, error) {
	switch word := strings.TrimSuffix(strings.ToLower(text), "s"); word {
	case "none", "socket", "ldom", "core", "thread":
		return word, nil
	}
	return "", fmt.Errorf("expected none, socket, ldom, core or thread")
}

// overTime reads by how many minutes jobs may exceed their time limit.
func overTime(text string) (config.TimeLimit, error) {
	if strings.EqualFold(text, "UNLIMITED") {
		return forever, nil
	}
	n, err := integer(text, 65533)
	return config.TimeLimit(n * 60), err
}

// JobDefaults reads DefCpuPerGPU=N,DefMemPerGPU=MEGABYTES.
func JobDefaults(text string, cpus *int32, mem *config.Size) error {
	*cpus, *mem = 0, 0
	for word := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(word, "=")
		n, err := integer(value, 1<<40)
		switch {
		case word == "":
		case err != nil:
			return err
		case strings.EqualFold(key, "DefCpuPerGPU"):
			*cpus = int32(min(n, 1<<20))
		case strings.EqualFold(key, "DefMemPerGPU"):
			*mem = config.Size(core.Bytes(n) * core.MiB)
		default:
			return fmt.Errorf("expected DefCpuPerGPU or DefMemPerGPU")
		}
	}
	return nil
}

// partitionKey takes one key of a partition's line.
func (v *converter) partitionKey(out *config.Partition, k Pair, p *Partition) (err error) {
	int32At := func(at *int32) {
		if strings.EqualFold(k.Value, "UNLIMITED") {
			*at = 0
			return
		}
		var x int64
		x, err = integer(k.Value, 1<<20)
		*at = int32(x)
	}
	switch strings.ToLower(k.Key) {
	case "partitionname":
	case "nodes":
		if k.Value == "" {
			return nil
		}
		out.Nodes = v.nodesOf(p.Where, k.Value)
	case "default":
		out.Default, err = yes(k.Value)
	case "state":
		if out.State = strings.ToUpper(k.Value); !slices.Contains([]string{"UP", "DOWN", "DRAIN", "INACTIVE"}, out.State) {
			err = fmt.Errorf("expected UP, DOWN, DRAIN or INACTIVE")
		}
	case "maxtime":
		out.MaxTime, err = timeLimit(k.Value)
	case "defaulttime":
		if strings.EqualFold(k.Value, "NONE") {
			return nil
		}
		out.DefaultTime, err = timeLimit(k.Value)
	case "maxnodes":
		int32At(&out.MaxNodes)
	case "minnodes":
		int32At(&out.MinNodes)
	case "defmempercpu":
		out.DefMemPerCPU, err = mebibytes(k.Value)
	case "maxmempernode":
		out.MaxMemPerNode, err = mebibytes(k.Value)
	case "prioritytier":
		int32At(&out.PriorityTier)
	case "priorityjobfactor":
		int32At(&out.PriorityFactor)
	case "priority":
		int32At(&out.PriorityTier)
		out.PriorityFactor = out.PriorityTier
	case "tresbillingweights":
		out.BillingWeights = k.Value
	case "qos":
		out.QOS = k.Value
	case "allowqos", "denyqos", "allowaccounts", "denyaccounts", "allowgroups":
		if strings.EqualFold(k.Value, "ALL") {
			return nil
		}
		*map[string]*[]string{
			"allowqos": &out.AllowQOS, "denyqos": &out.DenyQOS, "allowaccounts": &out.AllowProjects,
			"denyaccounts": &out.DenyProjects,
			"allowgroups":  &out.AllowGroups,
		}[strings.ToLower(k.Key)] = strings.Split(k.Value, ",")
	case "rootonly":
		out.AdminOnly, err = yes(k.Value)
	case "reqresv":
		out.ReqResv, err = yes(k.Value)
	case "exclusiveuser":
		out.ExclusiveUser, err = yes(k.Value)
	case "preemptmode":
		out.PreemptMode, err = preemptMode(k.Value)
	case "gracetime":
		out.Grace, err = seconds(k.Value)
	case "lln":
		out.LLN, err = yes(k.Value)
	case "oversubscribe", "shared":
		out.OverSubscribe = strings.ToUpper(k.Value)
		if _, _, _, ok := grammar.ParseSharing(k.Value); !ok {
			err = fmt.Errorf("expected NO, YES[:n], FORCE[:n] or EXCLUSIVE")
		}
	case "exclusive":
		if strings.EqualFold(k.Value, "NODE") {
			out.OverSubscribe = "EXCLUSIVE"
		} else if !strings.EqualFold(k.Value, "NO") {
			v.note(p.Where, k.Key, k.Value, notYet)
		}
	case "allocnodes":
		if out.AllocNodes = k.Value; strings.EqualFold(k.Value, "ALL") {
			out.AllocNodes = ""
		}
	case "alternate":
		out.Alternate = k.Value
	case "cpubind":
		out.CPUBind, err = cpuBind(k.Value)
	case "defcpupergpu":
		int32At(&out.DefCPUsPerGPU)
	case "defmempergpu":
		out.DefMemPerGPU, err = mebibytes(k.Value)
	case "defmempernode":
		out.DefMemPerNode, err = mebibytes(k.Value)
	case "jobdefaults":
		err = JobDefaults(k.Value, &out.DefCPUsPerGPU, &out.DefMemPerGPU)
	case "disablerootjobs":
		out.NoRoot, err = yes(k.Value)
	case "hidden":
		out.Hidden, err = yes(k.Value)
	case "overtimelimit":
		out.OverTime, err = overTime(k.Value)
	case "maxcpuspernode":
		int32At(&out.MaxCPUsPerNode)
	case "maxmempercpu":
		out.MaxMemPerCPU, err = mebibytes(k.Value)
	}
	return err
}
