package conf

import (
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
)

// topologyPlugin takes the sort of network; the switches or blocks are in topology.conf.
func topologyPlugin(v *converter, s Setting) error {
	switch kind := strings.TrimPrefix(strings.ToLower(s.Value), "topology/"); kind {
	case "tree", "block":
		v.cfg.Topology.Kind = kind
	case "", "none", "default", "flat":
		v.cfg.Topology.Kind = ""
	default:
		v.note(s.Where, s.Key, s.Value, notYet)
	}
	return nil
}

// topology takes topology.conf if TopologyPlugin says that it counts.
func (v *converter) topology() {
	t := &v.cfg.Topology
	if t.Kind == core.TopologyTree {
		for i := range v.conf.Switches {
			r := &v.conf.Switches[i]
			s := config.Switch{Name: r.Name}
			s.Nodes, _ = r.Get("Nodes")
			s.Switches, _ = r.Get("Switches")
			t.Switches = append(t.Switches, s)
		}
	}
	if t.Kind != core.TopologyBlock {
		return
	}
	for i := range v.conf.Blocks {
		r := &v.conf.Blocks[i]
		if sizes, ok := r.Get("BlockSizes"); ok {
			for word := range strings.SplitSeq(sizes, ",") {
				n, err := strconv.Atoi(word)
				if err != nil || n < 1 {
					v.fault(r.Where, "BlockSizes=%s: expected numbers of nodes", sizes)
					break
				}
				t.BlockSizes = append(t.BlockSizes, n)
			}
		}
		if name, ok := r.Get("BlockName"); ok {
			b := config.Block{Name: name}
			b.Nodes, _ = r.Get("Nodes")
			t.Blocks = append(t.Blocks, b)
		}
	}
}
