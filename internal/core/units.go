package core

import "slices"

// Unit is one unit of a generic resource of a node.
type Unit struct {
	Name   string `json:"name"`
	Type   string `json:"type,omitempty"`
	Index  int32  `json:"index"`            // among all units of the name on the node, as its driver counts them
	Socket int32  `json:"socket,omitempty"` // that it is attached to, counted from 1; 0: not known
	Links  int32  `json:"links,omitempty"`  // units of the same number, from 1, are joined directly (NVLink); 0: not known
	Memory Bytes  `json:"memory,omitempty"` // of its own; 0: not known
	Vendor string `json:"vendor,omitempty"` // nvidia, amd, intel, tenstorrent; fake: it is not there
}

// Kind is all units of one name and type of a node.
type Kind struct {
	Name, Type string
	Index      []int32 // of each unit, ascending
	Units      []Unit  // those that are described
}

// Kinds numbers a node's units: each has an index of its own among those of its name, whatever its type. Units that are
// described keep the index they have; the others take those that are left, in the order of the list.
func (h *Hardware) Kinds() []Kind {
	kinds := make([]Kind, 0, len(h.Gres))
	taken := map[string]map[int32]bool{}
	for _, u := range h.Units {
		if taken[u.Name] == nil {
			taken[u.Name] = map[int32]bool{}
		}
		taken[u.Name][u.Index] = true
	}
	next := map[string]int32{}
	for _, g := range h.Gres {
		i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == g.Name && k.Type == g.Type })
		if i < 0 {
			i = len(kinds)
			kinds = append(kinds, Kind{Name: g.Name, Type: g.Type})
		}
		k := &kinds[i]
		if k.Index == nil {
			for _, u := range h.Units {
				if u.Name == g.Name && u.Type == g.Type && g.Count > 0 {
					k.Units, k.Index = append(k.Units, u), append(k.Index, u.Index)
					g.Count--
				}
			}
		}
		for range g.Count {
			at := next[g.Name]
			for taken[g.Name][at] {
				at++
			}
			next[g.Name] = at + 1
			k.Index = append(k.Index, at)
		}
	}
	for i := range kinds {
		slices.Sort(kinds[i].Index)
	}
	return kinds
}
