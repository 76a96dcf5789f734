package slurm

import (
	"fmt"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
)

// Places gives a node's address in the network and the pattern of that, as SLURM_TOPOLOGY_ADDR has them.
type Places func(core.NodeName) (addr, pattern string)

// PlacesOf works the addresses out: the switches from the top down, or the block, and the node, joined by dots. A node
// that the topology does not know, as every node without one, is its name.
func PlacesOf(t *core.Topology) Places {
	above := map[string]string{} // by switch: what is before the names below it
	kinds := map[string]string{}
	nodes := map[core.NodeName]string{}
	if t != nil {
		for _, s := range switchLevels(t) {
			kind := "switch."
			if t.Kind == core.TopologyBlock {
				kind = "block."
			}
			prefix := above[s.Name] + s.Name + "."
			kinds[prefix] = kinds[above[s.Name]] + kind
			for _, below := range expand(s.Switches) {
				above[below] = prefix
			}
			for _, n := range expand(s.Nodes) {
				nodes[core.NodeName(n)] = prefix
			}
		}
	}
	return func(n core.NodeName) (string, string) {
		prefix := nodes[n]
		return prefix + string(n), kinds[prefix] + "node"
	}
}

func expand(list string) []string {
	if list == "" {
		return nil
	}
	names, err := hostlist.Expand(list, 1<<20)
	if err != nil {
		return nil
	}
	return names
}

// switchAt is a switch or block and how far above the nodes it is.
type switchAt struct {
	core.Switch
	level int
}

// switchLevels lists a topology's switches, those above before those below them; blocks are all alike.
func switchLevels(t *core.Topology) []switchAt {
	var out []switchAt
	for _, b := range t.Blocks {
		out = append(out, switchAt{b, 0})
	}
	byName := map[string]*core.Switch{}
	for i := range t.Switches {
		byName[t.Switches[i].Name] = &t.Switches[i]
	}
	var height func(s *core.Switch, depth int) int
	height = func(s *core.Switch, depth int) (h int) {
		for _, name := range expand(s.Switches) {
			if below := byName[name]; below != nil && depth < len(t.Switches) {
				h = max(h, 1+height(below, depth+1))
			}
		}
		return h
	}
	for i := range t.Switches {
		out = append(out, switchAt{t.Switches[i], height(&t.Switches[i], 0)})
	}
	slices.SortStableFunc(out, func(a, b switchAt) int { return b.level - a.level })
	return out
}

// TopologyLines is what scontrol show topology prints: leaves first, as the file has them.
func TopologyLines(t *core.Topology) []string {
	if t == nil {
		return nil
	}
	if t.Kind == core.TopologyBlock {
		return blockLines(t)
	}
	levels := switchLevels(t)
	slices.SortStableFunc(levels, func(a, b switchAt) int { return a.level - b.level })
	under := map[string][]string{}
	var lines []string
	for _, s := range levels {
		nodes := expand(s.Nodes)
		for _, below := range expand(s.Switches) {
			nodes = append(nodes, under[below]...)
		}
		under[s.Name] = nodes
		line := fmt.Sprintf("SwitchName=%s Level=%d LinkSpeed=1 Nodes=%s", s.Name, s.level, hostlist.FoldSorted(nodes))
		if s.Switches != "" {
			line += " Switches=" + hostlist.FoldSorted(expand(s.Switches))
		}
		lines = append(lines, line)
	}
	return lines
}

func blockLines(t *core.Topology) (lines []string) {
	base := int32(0)
	for i, b := range t.Blocks {
		if n := int32(len(expand(b.Nodes))); i == 0 || n < base {
			base = n
		}
	}
	if len(t.BlockSizes) > 0 {
		base = t.BlockSizes[0]
	}
	for i, b := range t.Blocks {
		lines = append(lines, fmt.Sprintf("BlockName=%s BlockIndex=%d Nodes=%s BlockSize=%d", b.Name, i,
			hostlist.FoldSorted(expand(b.Nodes)), base))
	}
	for k := 1; k < len(t.BlockSizes); k++ { // larger blocks, of neighbors
		per := int(t.BlockSizes[k] / t.BlockSizes[0])
		for lo := 0; lo < len(t.Blocks); lo += per {
			var names, nodes []string
			for _, b := range t.Blocks[lo:min(lo+per, len(t.Blocks))] {
				names, nodes = append(names, b.Name), append(nodes, expand(b.Nodes)...)
			}
			lines = append(lines, fmt.Sprintf("AggregatedBlock=%s BlockIndex=%d Nodes=%s BlockSize=%d",
				strings.Join(names, ","), len(lines), hostlist.FoldSorted(nodes), t.BlockSizes[k]))
		}
	}
	return lines
}
