package jobs

import (
	"context"
	"slices"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/nearest"
	"bireme.dev/bireme/internal/dstack/convert"
)

// places looks at nodes and fleets where the run names some, or is on several nodes; nil: it may be anywhere.
func places(ctx context.Context, c *client.Client, s *convert.Spec, file string) (*convert.Places, error) {
	p := s.Policy()
	if s.Nodes() == 1 && len(p.Fleets) == 0 && len(p.Instances) == 0 {
		return nil, nil
	}
	fleets, err := c.Fleets(ctx)
	if err != nil {
		return nil, err
	}
	nodes, err := c.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	out := &convert.Places{}
	of := map[core.NodeName]*core.Fleet{}
	var names []string
	for i := range fleets.Fleets {
		f := &fleets.Fleets[i]
		made := &core.Fleet{Name: f.Name, Placement: f.Placement}
		for _, x := range f.Instances {
			made.Hosts = append(made.Hosts, core.FleetHost{Num: x.Num, Node: x.Node})
			of[x.Node] = made
		}
		out.Fleets = append(out.Fleets, made)
		names = append(names, f.Name)
	}
	for i := range nodes.Nodes {
		n := &nodes.Nodes[i]
		out.Nodes = append(out.Nodes, &convert.Place{Node: &n.Node, Fleet: of[n.Name], Partitions: n.Partitions})
		for _, part := range n.Partitions {
			if !slices.Contains(names, string(part)) {
				names = append(names, string(part))
				out.Partitions = append(out.Partitions, core.Partition{Name: part})
			}
		}
	}
	for _, ref := range p.Fleets {
		if !slices.Contains(names, ref.Name) {
			return nil, core.Errorf(core.NotFound, "%s: fleets: there is no fleet %q%s", file, ref.Name,
				nearest.Hint(ref.Name, names)).Because("invalid_fleet")
		}
	}
	return out, nil
}
