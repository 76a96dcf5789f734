package core

import (
	"fmt"
	"slices"
	"time"
)

// Unit is one unit of a generic resource of a node.
type Unit struct {
	Name   string `json:"name"`
	Type   string `json:"type,omitempty"`
	Index  int32  `json:"index"`            // among all units of the name on the node, as its driver counts them
	Socket int32  `json:"socket,omitempty"` // that it is attached to, counted from 1; 0: not known
	Links  int32  `json:"links,omitempty"`  // units of the same number, from 1, are joined directly (NVLink); 0: not known
	Memory Bytes  `json:"memory,omitempty"` // of its own; 0: not known
	Vendor string `json:"vendor,omitempty"` // nvidia, amd, intel, tenstorrent; fake: it is not there
	// Capability is the compute capability of an NVIDIA GPU, ten times: 90 for 9.0; 0: not known.
	Capability int32 `json:"capability,omitempty"`
}

// SickUnit is a unit that is not given out, and why.
type SickUnit struct {
	Name   string `json:"name"`
	Index  int32  `json:"index"`
	Reason string `json:"reason"`
}

// SickText tells what ails a node's units; empty if nothing does.
func SickText(list []SickUnit) string {
	var b []byte
	for i, s := range list {
		if i > 0 {
			b = append(b, "; "...)
		}
		b = fmt.Appendf(b, "%s %d: %s", s.Name, s.Index, s.Reason)
	}
	return string(b)
}

// IsSick reports whether a unit is not to be given out.
func (h *Hardware) IsSick(name string, index int32) bool {
	return slices.ContainsFunc(h.Sick, func(s SickUnit) bool { return s.Name == name && s.Index == index })
}

// UnitState is how a unit does, as its node sees it.
type UnitState struct {
	Name   string  `json:"name"`
	Index  int32   `json:"index"`
	UUID   string  `json:"uuid,omitempty"`
	Util   float64 `json:"util"` // percent of the time that something ran on it
	Used   Bytes   `json:"used"` // of its memory
	Memory Bytes   `json:"memory,omitempty"`
	Temp   float64 `json:"temp,omitempty"`  // degrees Celsius
	Power  float64 `json:"power,omitempty"` // watts
	Health string  `json:"health"`          // healthy, warning, failure
	Faults string  `json:"faults,omitempty"`
}

// Sample is what a job used on one of its nodes at a moment.
type Sample struct {
	At   Time          `json:"at"`
	Node NodeName      `json:"node"`
	CPU  time.Duration `json:"cpu"` // time used so far
	Mem  Bytes         `json:"mem"` // in use
	GPUs []UnitUse     `json:"gpus,omitempty"`
}

// UnitUse is how one of a job's units was used.
type UnitUse struct {
	Index int32   `json:"index"`
	Util  float64 `json:"util"`
	Mem   Bytes   `json:"mem"`
}

// Kind is all units of one name and type of a node.
type Kind struct {
	Name, Type string
	Index      []int32 // of each unit, ascending
	Units      []Unit  // those that are described
}

// Kinds numbers a node's units: each has an index of its own among those of its name, whatever its type. Units that are
// described keep the index they have; the others take those that are left, in the order of the list. Sick ones have a
// number and are not listed.
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
		k := &kinds[i]
		slices.Sort(k.Index)
		if len(h.Sick) > 0 {
			k.Index = slices.DeleteFunc(k.Index, func(n int32) bool { return h.IsSick(k.Name, n) })
			k.Units = slices.DeleteFunc(k.Units, func(u Unit) bool { return h.IsSick(k.Name, u.Index) })
		}
	}
	return kinds
}
