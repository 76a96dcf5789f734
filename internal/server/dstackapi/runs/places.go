package runs

import (
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/dstack/convert"
)

// maxNodes bounds the nodes of a partition.
const maxNodes = 1 << 20

// places are the nodes that the call's project may use.
func (l *look) places() *convert.Places {
	snap, project := l.c.Snap, l.c.Project.Name
	at := &convert.Places{}
	for _, f := range snap.Fleets() {
		if f.Project == "" || f.Project == project {
			at.Fleets = append(at.Fleets, f)
		}
	}
	in := map[core.NodeName][]core.PartitionName{}
	all := []core.PartitionName{}
	for _, p := range snap.Partitions() {
		allow := p.AllowProjects
		if p.State == "INACTIVE" || p.RootOnly && !l.c.Admin || len(allow) > 0 && !snap.IsUnder(project, allow) ||
			len(allow) == 0 && snap.IsUnder(project, p.DenyProjects) {
			continue
		}
		at.Partitions = append(at.Partitions, p)
		if p.Nodes == "ALL" || p.Nodes == "" {
			all = append(all, p.Name)
			continue
		}
		names, err := hostlist.Expand(p.Nodes, maxNodes)
		if err != nil {
			continue // the settings were checked
		}
		for _, n := range names {
			in[core.NodeName(n)] = append(in[core.NodeName(n)], p.Name)
		}
	}
	uses := snap.Uses()
	for n := range snap.Nodes() {
		parts := append(slices.Clone(all), in[n.Name]...)
		p := &convert.Place{Node: n, Partitions: parts}
		if n.Fleet != "" {
			i := slices.IndexFunc(at.Fleets, func(f *core.Fleet) bool { return f.Name == n.Fleet })
			if i < 0 {
				continue // it runs jobs of another project only
			}
			p.Fleet = at.Fleets[i]
		}
		if len(parts) == 0 {
			continue
		}
		if u := uses[n.Name]; u != nil {
			p.UsedCPUs, p.UsedMem = u.CPUs, u.Mem
			for _, g := range u.Gres {
				if g.Name == "gpu" {
					p.UsedGPUs += g.Count
				}
			}
		}
		at.Nodes = append(at.Nodes, p)
	}
	return at
}
