package state

import (
	"maps"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
)

// topology tree leaf=n[1-4] top:leaf1,leaf2 | block b1=n[1-4] sizes=4,8
func (s *script) topology(p []string, o args) error {
	t := &core.Topology{Kind: p[0]}
	for _, w := range p[1:] {
		name, below, _ := strings.Cut(w, ":")
		t.Switches = append(t.Switches, core.Switch{Name: name, Switches: below})
	}
	for v := range strings.SplitSeq(o["sizes"], ",") {
		if v != "" {
			t.BlockSizes = append(t.BlockSizes, int32(s.num(v)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if name == "" || name == "sizes" {
			continue
		}
		sw := core.Switch{Name: name, Nodes: o[name]}
		if t.Kind == core.TopologyBlock {
			t.Blocks = append(t.Blocks, sw)
		} else {
			t.Switches = append(t.Switches, sw)
		}
	}
	s.cfg.Topology = t
	return nil
}

// wishWords are the words of submit that say which nodes a job wants.
var wishWords = map[string]bool{
	"prefer": true, "contiguous": true, "switches": true, "segment": true, "spread": true,
	"fewest": true, "owner": true,
}

// wishes reads them and reports whether any needs Extra.
func (s *script) wishes(b *coretest.JobBuilder, x *core.Extra, o args) bool {
	x.Prefer, x.Contiguous = coretest.Constraint(o["prefer"]), o["contiguous"] != ""
	x.Switches = coretest.Switches(o["switches"])
	if v := o["segment"]; v != "" {
		x.Segment = int32(s.num(v))
	}
	b.Set(func(sp *core.Spec) {
		if o["spread"]+o["fewest"]+o["owner"] != "" {
			sp.Shape.More = &core.ShapeMore{
				SpreadJob: o["spread"] != "", UseMinNodes: o["fewest"] != "",
				ExclusiveUser: o["owner"] != "",
			}
		}
		if o["tasks"] != "" {
			sp.Shape.Given |= core.GivenTasks
		}
	})
	return !x.Prefer.IsZero() || x.Contiguous || !x.Switches.IsZero() || x.Segment != 0
}
