package report

import (
	"cmp"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/schema"
)

// PartitionRecord is a partition as --json and the REST API show it. nodes are all that the caller sees.
func PartitionRecord(p *core.Partition, nodes []client.Node, o *RecordOptions) *schema.Record {
	var cpus, count int32
	var mem core.Bytes
	var gres []core.Gres
	for i := range nodes {
		if n := &nodes[i]; inPartition(n, p.Name) {
			count++
			cpus += n.Hardware.CPUs
			mem += n.Hardware.Memory
			gres = append(gres, n.Hardware.Gres...)
		}
	}
	over := schema.New("partition_info_oversubscribe").Set("jobs", shares(p.OverSubscribe)).Set("flags", []string{})
	if strings.HasPrefix(strings.ToUpper(p.OverSubscribe), "FORCE") {
		over.Set("flags", []string{"force"})
	}
	return schema.New("partition_info").
		Set("name", string(p.Name)).Set("cluster", o.Cluster).
		Set("nodes", schema.New("partition_info_nodes").Set("configured", partitionNodes(p, nodes)).Set("total", count).
			Set("allowed_allocation", p.AllocNodes)).
		Set("alternate", string(p.Alternate)).
		Set("accounts", schema.New("partition_info_accounts").Set("allowed", joined(p.AllowProjects)).
			Set("deny", joined(p.DenyProjects))).
		Set("groups", schema.New("partition_info_groups").Set("allowed", strings.Join(p.AllowGroups, ","))).
		Set("qos", schema.New("partition_info_qos").Set("allowed", joined(p.AllowQOS)).Set("deny", joined(p.DenyQOS)).
			Set("assigned", string(p.QOS))).
		Set("tres", schema.New("partition_info_tres").Set("billing_weights", p.BillingWeights).
			Set("configured", hardwareTRES(cpus, mem, count, true, gres))).
		Set("select_type", []string{"CPU", "MEMORY"}).
		Set("cpus", schema.New("partition_info_cpus").Set("total", cpus)).
		Set("defaults", schema.New("partition_info_defaults").Set("time", limitNumber(p.DefaultTime, schema.Number{})).
			Set("memory_per_cpu", slurm.InMiB(p.DefMemPerCPU)).
			Set("partition_memory_per_cpu", schema.Positive(slurm.InMiB(p.DefMemPerCPU))).
			Set("partition_memory_per_node", schema.Positive(slurm.InMiB(p.DefMemPerNode))).Set("job", jobDefaults(p))).
		Set("grace_time", int64(p.Grace)).
		Set("maximums", schema.New("partition_info_maximums").
			Set("cpus_per_node", orInfinite(p.MaxCPUsPerNode)).Set("cpus_per_socket", schema.Infinite).
			Set("memory_per_cpu", slurm.InMiB(p.MaxMemPerCPU)).
			Set("partition_memory_per_cpu", schema.Positive(slurm.InMiB(p.MaxMemPerCPU))).
			Set("partition_memory_per_node", schema.Positive(slurm.InMiB(p.MaxMemPerNode))).
			Set("nodes", orInfinite(p.MaxNodes)).Set("shares", shares(p.OverSubscribe)).Set("oversubscribe", over).
			Set("time", limitNumber(p.MaxTime, schema.Infinite)).
			Set("over_time_limit", limitNumber(p.OverTime, schema.Number{}))).
		Set("minimums", schema.New("partition_info_minimums").Set("nodes", p.MinNodes)).
		Set("priority", schema.New("partition_info_priority").Set("job_factor", max(1, p.PriorityFactor)).
			Set("tier", max(1, p.PriorityTier))).
		Set("partition", schema.New("partition_info_partition").
			Set("state", []string{cmp.Or(strings.ToUpper(p.State), "UP")}))
}

func joined[T ~string](list []T) string {
	words := make([]string, len(list))
	for i, w := range list {
		words[i] = string(w)
	}
	return strings.Join(words, ",")
}

// shares is how many jobs may have the same CPUs.
func shares(over string) int32 {
	_, count, ok := strings.Cut(over, ":")
	n, err := strconv.ParseInt(count, 10, 32)
	switch {
	case ok && err == nil:
		return int32(n)
	case over == "" || strings.EqualFold(over, "NO"):
		return 1
	case strings.EqualFold(over, "EXCLUSIVE"):
		return 0
	}
	return 4
}

func orInfinite(n int32) schema.Number {
	if n <= 0 {
		return schema.Infinite
	}
	return schema.Int(n)
}

// limitNumber is a limit in minutes; 0 is what otherwise says.
func limitNumber(t core.Seconds, otherwise schema.Number) schema.Number {
	switch {
	case t <= 0:
		return otherwise
	case t >= core.Forever:
		return schema.Infinite
	}
	return schema.Int(int64(t+59) / 60)
}
