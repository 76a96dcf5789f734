package conf

import (
	"fmt"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
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
		if _, ok := p.Get("Nodes"); !ok {
			v.note(p.Where, "PartitionName", p.Name, "it names no nodes")
			continue
		}
		for _, k := range p.Keys {
			if err := v.partitionKey(&out, k, p); err != nil {
				v.fault(p.Where, "%s=%s: %v", k.Key, k.Value, err)
			}
		}
		if out.MaxMemPerNode == 0 && out.MaxMemPerCPU == 0 {
			out.MaxMemPerNode, out.MaxMemPerCPU = v.maxMemPerNode, v.maxMemPerCPU
		}
		v.cfg.Partitions = append(v.cfg.Partitions, out)
	}
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
		if _, _, _, ok := core.ParseSharing(k.Value); !ok {
			err = fmt.Errorf("expected NO, YES[:n], FORCE[:n] or EXCLUSIVE")
		}
	case "exclusive":
		if strings.EqualFold(k.Value, "NODE") {
			out.OverSubscribe = "EXCLUSIVE"
		} else if !strings.EqualFold(k.Value, "NO") {
			v.note(p.Where, k.Key, k.Value, notYet)
		}
	case "maxcpuspernode":
		int32At(&out.MaxCPUsPerNode)
	case "maxmempercpu":
		out.MaxMemPerCPU, err = mebibytes(k.Value)
	default:
		v.other(keys.PartitionLine, p.Where, k)
	}
	return err
}
