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
