package config

import (
	"fmt"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
)

// Known is what a cluster holds that settings may name. A nil function: nobody could be asked.
type Known struct {
	QOS  func(core.QOSName) bool
	Node func(core.NodeName) bool
}

// Judge holds settings that are sound in themselves against what is there. `biremed config check`, a server's start and
// reconfigure all ask it. Faults forbid the settings. Notes do not: a node may join later, and then belongs to the
// partitions that name it.
func (c *Config) Judge(k Known) (faults []core.Fault, notes []string) {
	declared := map[string]bool{}
	for _, n := range c.Nodes {
		names, err := hostlist.Expand(n.Names, maxNames)
		if err != nil {
			continue // Check tells
		}
		for _, name := range names {
			declared[name] = true
		}
	}
	for i, p := range c.Partitions {
		if p.QOS != "" {
			switch {
			case k.QOS == nil:
				notes = append(notes, fmt.Sprintf("partitions[%d].qos: no server answers, so QOS %q cannot be checked", i, p.QOS))
			case !k.QOS(core.QOSName(p.QOS)):
				faults = append(faults, core.Fault{
					Path:    fmt.Sprintf("partitions[%d].qos", i),
					Message: fmt.Sprintf("partition %s: there is no QOS %q", p.Name, p.QOS),
				})
			}
		}
		if strings.EqualFold(p.Nodes, "ALL") || p.Nodes == core.NoNodes {
			continue
		}
		names, err := hostlist.Expand(p.Nodes, maxNames)
		if err != nil {
			continue
		}
		var missing []string
		for _, name := range names {
			if !declared[name] && (k.Node == nil || !k.Node(core.NodeName(name))) {
				missing = append(missing, name)
			}
		}
		if len(missing) > 0 {
			notes = append(notes, fmt.Sprintf("partitions[%d].nodes: partition %s: %s: neither under nodes: nor "+
				"joined; no jobs run there until they join",
				i, p.Name, hostlist.Fold(missing)))
		}
	}
	return faults, notes
}
