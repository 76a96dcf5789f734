package coretest

import "bireme.dev/bireme/internal/core"

// NodeBuilder makes a node.
type NodeBuilder struct{ node core.Node }

// Node begins a compute node that is up: 4 CPUs, 8 GiB, an agent that runs as root.
func Node(name core.NodeName) *NodeBuilder {
	return &NodeBuilder{core.Node{
		ID: 1, Name: name, Roles: core.Compute, Weight: 1,
		Hardware: core.Hardware{CPUs: 4, Memory: 8 * core.GiB},
		Host:     core.Host{Hostname: string(name), BootID: "boot-1", Root: true},
	}}
}

// ID sets the number it joined under.
func (b *NodeBuilder) ID(id int64) *NodeBuilder { b.node.ID = id; return b }

// CPUs sets how many it has.
func (b *NodeBuilder) CPUs(n int32) *NodeBuilder { b.node.Hardware.CPUs = n; return b }

// Mem sets its memory.
func (b *NodeBuilder) Mem(m core.Bytes) *NodeBuilder { b.node.Hardware.Memory = m; return b }

// Gres adds a generic resource.
func (b *NodeBuilder) Gres(name, typ string, count int64) *NodeBuilder {
	b.node.Hardware.Gres = append(b.node.Hardware.Gres, core.Gres{Name: name, Type: typ, Count: count})
	return b
}

// Weight sets how late it is tried.
func (b *NodeBuilder) Weight(w int32) *NodeBuilder { b.node.Weight = w; return b }

// Features sets what it can do.
func (b *NodeBuilder) Features(f ...string) *NodeBuilder { b.node.Features = f; return b }

// Build gives the node.
func (b *NodeBuilder) Build() *core.Node { n := b.node; return &n }
