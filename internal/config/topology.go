package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
)

// Topology says how the network joins nodes, so that jobs get nodes near each other.
type Topology struct {
	Kind     string   `yaml:"kind"`     // tree, block; empty: nobody says
	Switches []Switch `yaml:"switches"` // of a tree: leaves have nodes, the others switches
	Blocks   []Block  `yaml:"blocks"`   // in order: neighbors form larger blocks
	// nodes in a block, and in each larger one; empty: those of the smallest block
	BlockSizes    []int    `yaml:"block_sizes"`
	MaxSwitchWait Duration `yaml:"max_switch_wait"` // a job waits for few switches so long at most
}

// Switch is one of a tree.
type Switch struct {
	Name     string `yaml:"name"`
	Nodes    string `yaml:"nodes"`    // hostlist
	Switches string `yaml:"switches"` // hostlist
}

// Block is nodes that are joined better than others.
type Block struct {
	Name  string `yaml:"name"`
	Nodes string `yaml:"nodes"` // hostlist
}

const defaultSwitchWait = Duration(300 * time.Second)

// CoreTopology returns the topology as a type of core; nil if there is none.
func (c *Config) CoreTopology() *core.Topology {
	if c.Topology.Kind == "" {
		return nil
	}
	t := &core.Topology{Kind: c.Topology.Kind}
	for _, s := range c.Topology.Switches {
		t.Switches = append(t.Switches, core.Switch(s))
	}
	for _, b := range c.Topology.Blocks {
		t.Blocks = append(t.Blocks, core.Switch{Name: b.Name, Nodes: b.Nodes})
	}
	for _, n := range c.Topology.BlockSizes {
		t.BlockSizes = append(t.BlockSizes, int32(n))
	}
	return t
}

func (d *decoder) checkTopology(c *Config) {
	t := &c.Topology
	if t.MaxSwitchWait <= 0 {
		d.at("topology.max_switch_wait", "must be more than 0")
	}
	switch t.Kind {
	case "", core.TopologyTree, core.TopologyBlock:
	default:
		d.at("topology.kind", "%q is not one of tree, block", t.Kind)
	}
	if t.Kind != core.TopologyTree && len(t.Switches) > 0 {
		d.at("topology.switches", "only a topology of kind tree has switches")
	}
	if t.Kind != core.TopologyBlock && len(t.Blocks)+len(t.BlockSizes) > 0 {
		d.at("topology.blocks", "only a topology of kind block has blocks and block sizes")
	}
	names := leafNames{d: d, what: map[string]string{}, nodes: map[string]string{}}
	for i, s := range t.Switches {
		path := fmt.Sprintf("topology.switches[%d]", i)
		names.take(path, s.Name, s.Nodes)
		if (s.Nodes == "") == (s.Switches == "") {
			d.at(path, "switch %q needs nodes or switches, and not both", s.Name)
		}
	}
	d.checkTree(t, names.what)
	least := 0
	for i, b := range t.Blocks {
		n := names.take(fmt.Sprintf("topology.blocks[%d]", i), b.Name, b.Nodes)
		if i == 0 || n < least {
			least = n
		}
	}
	d.checkSizes(t, least)
}

// leafNames sees to it that every name is there once.
type leafNames struct {
	d     *decoder
	what  map[string]string // where a switch or block is
	nodes map[string]string // which has a node
}

func (l *leafNames) take(path, name, nodes string) int {
	if name == "" || strings.ContainsAny(name, ", \t[]") {
		l.d.at(path+".name", "%q is not a name", name)
	}
	if first, twice := l.what[name]; twice {
		l.d.at(path+".name", "%q is already the name of %s", name, first)
	}
	l.what[name] = path
	if nodes == "" {
		return 0
	}
	list, err := hostlist.Expand(nodes, maxNames)
	if err != nil {
		l.d.at(path+".nodes", "%v", err)
	}
	for _, n := range list {
		if other, twice := l.nodes[n]; twice {
			l.d.at(path+".nodes", "node %s is already under %s", n, other)
			break
		}
		l.nodes[n] = name
	}
	return len(list)
}

// checkTree refuses switches that are not there, are below two others, or below themselves.
func (d *decoder) checkTree(t *Topology, known map[string]string) {
	above := map[string]string{}
	for i, s := range t.Switches {
		path := fmt.Sprintf("topology.switches[%d].switches", i)
		if s.Switches == "" {
			continue
		}
		list, err := hostlist.Expand(s.Switches, maxNames)
		if err != nil {
			d.at(path, "%v", err)
		}
		for _, name := range list {
			switch other, twice := above[name]; {
			case known[name] == "":
				d.at(path, "there is no switch %q", name)
			case twice:
				d.at(path, "switch %s is already under %s", name, other)
			default:
				above[name] = s.Name
			}
		}
	}
	for i, s := range t.Switches {
		seen := []string{s.Name}
		for up := above[s.Name]; up != ""; up = above[up] {
			if slices.Contains(seen, up) {
				d.at(fmt.Sprintf("topology.switches[%d]", i), "switch %s contains itself", s.Name)
				return
			}
			seen = append(seen, up)
		}
	}
}

// checkSizes wants each size to be a whole number of the one before, and no block smaller than the first.
func (d *decoder) checkSizes(t *Topology, least int) {
	for i, n := range t.BlockSizes {
		path := fmt.Sprintf("topology.block_sizes[%d]", i)
		switch {
		case n < 1 || n > maxNames:
			d.at(path, "%d is not between 1 and %d", n, maxNames)
			return
		case i == 0 && n > least:
			d.at(path, "larger than the smallest block, which has %d node(s)", least)
		case i > 0 && (n <= t.BlockSizes[i-1] || n%t.BlockSizes[i-1] != 0):
			d.at(path, "%d is not a multiple of %d", n, t.BlockSizes[i-1])
		}
	}
}
