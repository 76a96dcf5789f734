package alloc

import (
	"strings"

	"bireme.dev/bireme/internal/core"
)

// HostsFunc expands a hostlist into a set. The caller caches the sets.
type HostsFunc func(hostlist string) map[core.NodeName]bool

// PartitionNodes expands the node list of a partition; nil means every node.
func PartitionNodes(c *core.Partition, names HostsFunc) map[core.NodeName]bool {
	if c.Nodes == "" || strings.EqualFold(c.Nodes, "ALL") {
		return nil
	}
	return names(c.Nodes)
}

// EachPartition calls do for each partition of a comma-separated list.
func EachPartition(list core.PartitionName, do func(core.PartitionName)) {
	for {
		at := strings.IndexByte(string(list), ',')
		if at < 0 {
			do(list)
			return
		}
		do(list[:at])
		list = list[at+1:]
	}
}

// FirstOf is the first partition of a comma-separated list.
func FirstOf(list core.PartitionName) (first core.PartitionName) {
	EachPartition(list, func(part core.PartitionName) {
		if first == "" {
			first = part
		}
	})
	return first
}
