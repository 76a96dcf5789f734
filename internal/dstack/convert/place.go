package convert

import (
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/config"
	"bireme.dev/bireme/internal/dstack/wire"
)

// Places are the nodes that a project may use, and the fleets and partitions that they are in.
type Places struct {
	Nodes      []*Place
	Fleets     []*core.Fleet
	Partitions []core.Partition
}

// Place is a node that a project may use.
type Place struct {
	Node       *core.Node
	Fleet      *core.Fleet          // nil: it is in none
	Partitions []core.PartitionName // that it is in and the project may use
	UsedCPUs   int32
	UsedMem    core.Bytes
	UsedGPUs   int64
}

// place restricts a submission to the fleets, partitions, nodes and kinds of nodes that the run names. What there is
// none of becomes a feature that no node has, so that the refusal names it.
func (b *builder) place(spec *core.Spec) error {
	p, at := &b.policy, b.o.Places
	if at == nil {
		return nil
	}
	if !slices.ContainsFunc(at.Nodes, func(p *Place) bool { return p.Node.Hardware.TmpDisk > 0 }) {
		spec.Extra.TmpDisk = 0 // nobody knows how much disk there is
	}
	var features []string
	if miss := missing(p); miss != "" {
		features = append(features, miss)
	}
	fleets, parts, err := at.choose(p.Fleets, b.s.Nodes())
	if err != nil {
		return err
	}
	if len(fleets) > 0 {
		c := strings.Join(fleets, "|")
		switch {
		case b.s.Nodes() > 1 && len(fleets) > 1:
			c = "[" + c + "]" // all nodes of one of them
		case len(fleets) > 1:
			c = "(" + c + ")"
		}
		features = append(features, c)
	}
	if zones := p.AvailabilityZones; len(zones) > 0 {
		parts = append(parts, zones...)
	}
	if len(parts) > 0 && spec.Partition.IsZero() {
		spec.Partition = core.ParsePartitions(strings.Join(parts, ","))
	}
	if own := spec.Extra.Constraint.String(); own != "" {
		if len(features) > 0 {
			own = "(" + own + ")"
		}
		features = append(features, own)
	}
	// admission refuses what does not parse
	spec.Extra.Constraint, _ = core.ParseConstraint(strings.Join(features, "&"))
	if len(p.Instances) > 0 {
		return at.instances(p.Instances, spec)
	}
	return nil
}

// missing names a wish that no node of ours can fulfill.
func missing(p *config.Policy) string {
	has := func(list []string, one string) bool {
		return len(list) == 0 || slices.ContainsFunc(list, func(s string) bool { return strings.EqualFold(s, one) })
	}
	switch {
	case !has(p.Backends, wire.BackendRemote) && !has(p.Backends, "ssh"):
		return "backend_" + word(p.Backends[0])
	case !has(p.Regions, wire.RegionRemote):
		return "region_" + word(p.Regions[0])
	case !has(p.InstanceTypes, instanceName):
		return "instance_type_" + word(p.InstanceTypes[0])
	case config.Value(p.SpotPolicy) == "spot":
		return "spot"
	}
	return ""
}

// word makes a feature's name of a text.
func word(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '.' {
			return r
		}
		return '_'
	}, s[:min(len(s), 60)])
}

// choose gives the fleets and partitions that a run may be on. On several nodes it must be a fleet with placement:
// cluster, where the project's nodes are in fleets at all; a partition is one.
func (at *Places) choose(refs []config.Ref, nodes int) (fleets, parts []string, err error) {
	for _, ref := range refs {
		i := slices.IndexFunc(at.Fleets, func(f *core.Fleet) bool { return f.Name == ref.Name })
		switch {
		case i >= 0 && (nodes == 1 || at.Fleets[i].Placement == core.PlaceCluster):
			fleets = append(fleets, ref.Name)
		case i >= 0:
			return nil, nil, refuse("fleets: %s: a run on %d nodes needs a fleet with `placement: cluster`", ref.Name, nodes)
		case slices.ContainsFunc(at.Partitions, func(p core.Partition) bool { return string(p.Name) == ref.Name }):
			parts = append(parts, ref.Name)
		default:
			fleets = append(fleets, word(ref.Name)) // no node has it
		}
	}
	if len(refs) > 0 || nodes == 1 || slices.ContainsFunc(at.Nodes, func(p *Place) bool { return p.Fleet == nil }) {
		return fleets, parts, nil
	}
	for _, f := range at.Fleets {
		if f.Placement == core.PlaceCluster {
			fleets = append(fleets, f.Name)
		}
	}
	if len(fleets) == 0 {
		fleets = []string{"placement_cluster"} // likewise
	}
	return fleets, parts, nil
}

// instances restricts a submission to nodes that selectors name.
func (at *Places) instances(list []config.InstanceSelector, spec *core.Spec) error {
	var yes, no []string
	for _, p := range at.Nodes {
		if slices.ContainsFunc(list, p.is) {
			yes = append(yes, string(p.Node.Name))
		} else {
			no = append(no, string(p.Node.Name))
		}
	}
	switch {
	case len(yes) == 0:
		spec.Extra.Constraint, _ = core.ParseConstraint("instance_selected") // no node has it
	case len(yes) <= int(spec.Shape.NodesMin):
		spec.Extra.NodeList = strings.Join(yes, ",")
	default:
		spec.Extra.Exclude = strings.Join(no, ",")
	}
	return nil
}

// is reports whether a selector means the node.
func (p *Place) is(s config.InstanceSelector) bool {
	n := p.Node
	switch {
	case s.Fleet != nil:
		return p.Fleet != nil && p.Fleet.Name == s.Fleet.Name && p.Fleet.NodeOf(int32(s.Instance)) == n.Name
	case s.Hostname != "":
		if strings.EqualFold(s.Hostname, n.Host.Hostname) || s.Hostname == n.Host.Addr {
			return true
		}
		if p.Fleet != nil {
			for i := range p.Fleet.Hosts {
				if h := &p.Fleet.Hosts[i]; h.Node == n.Name {
					return strings.EqualFold(h.Login.Host, s.Hostname) || h.Addr == s.Hostname || h.Peer == s.Hostname
				}
			}
		}
		return false
	}
	return s.Name == string(n.Name)
}
