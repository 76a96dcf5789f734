package srun

import (
	"slices"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/slurm"
)

// divide gives each part of a step nodes of its own, out of those of a job that is no het job. It returns an exit code
// if they do not suffice.
func (s *run) divide(a *core.Alloc) int {
	var used []string
	size := len(a.Nodes)
	for _, p := range s.parts {
		p.group, p.nodes = 0, nil
		sh := &p.r.Spec.Shape
		if list := p.r.Spec.More().NodeList; list != "" {
			named, err := hostlist.Expand(list, len(a.Nodes)+1)
			if err != nil {
				s.w.Errorf("Invalid node list: %s", list)
				return slurm.ExitError
			}
			for _, n := range named {
				if slices.Contains(used, n) {
					s.w.Errorf("Requested nodelist %s overlaps with excluded %s.", list, hostlist.Fold(used))
					s.w.Errorf("Job not submitted.")
					return slurm.ExitError
				}
			}
			p.nodes = named
		}
		want := 1
		if all, _ := p.r.Step.Tasks(sh); all > 0 {
			want = min(int(all), size)
		}
		if p.r.Typed("nodes") {
			want = int(sh.NodesMin)
		}
		for i := range a.Nodes {
			if name := string(a.Nodes[i].Node); len(p.nodes) < want && !slices.Contains(used, name) &&
				!slices.Contains(p.nodes, name) {
				p.nodes = append(p.nodes, name)
			}
		}
		if len(p.nodes) < want {
			s.w.Errorf("Allocation failure of %d nodes: job size of %d, already allocated %d nodes to previous components.",
				want, size, len(used))
			return slurm.ExitError
		}
		used = append(used, p.nodes...)
	}
	return 0
}

// confine lays a part on the nodes that divide gave it.
func (p *part) confine(ask *client.NewStep) {
	if len(p.nodes) > 0 {
		ask.NodeList, ask.Nodes, ask.Relative = hostlist.Fold(p.nodes), int32(len(p.nodes)), 0
	}
}
