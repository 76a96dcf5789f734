package cluster

import "bireme.dev/bireme/internal/core"

// OwnedBy reports whether jobs of no other project can be on the nodes of some partitions: each admits that
// project alone, and so does every other partition with one of their nodes.
func (c *Cluster) OwnedBy(project core.ProjectName, partitions core.PartitionList) bool {
	own := func(p *Partition) bool { return len(p.AllowProjects) == 1 && p.AllowProjects[0] == project }
	for name := range partitions.All() {
		p := c.Partitions[name]
		if p == nil || !own(p) {
			return false
		}
		for _, other := range c.Partitions {
			if !own(other) && shareNodes(p, other) {
				return false
			}
		}
	}
	return true
}

// shareNodes reports whether a node is in both partitions.
func shareNodes(a, b *Partition) bool {
	if a.Nodes == nil || b.Nodes == nil { // all nodes, also those to come
		return true
	}
	for n := range a.Nodes {
		if b.Nodes[n] {
			return true
		}
	}
	return false
}
