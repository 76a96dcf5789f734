package hub

import (
	"cmp"
	"fmt"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/mpi"
	"bireme.dev/bireme/internal/wire"
)

// addMPI tells a node what to serve to the tasks of a step: what it asks for, or else what the site says.
func (b *launchBuilder) addMPI(l *wire.Launch, all []slurm.StepPart, asked string) error {
	switch kind := cmp.Or(asked, b.cfg.MPI); {
	case kind == "pmi2":
		l.Program.PMI = pmiOf(all)
	case !mpi.IsPMIx(kind):
	case l.Container == nil || l.Container.Host:
		l.Program.PMIx = pmixOf(all)
	case asked != "": // it is served on the node's own network
		return core.Errorf(core.Invalid, "--mpi=%s: a container has the node's network, which this needs, only where "+
			"its job has whole nodes (--exclusive)", asked)
	}
	return nil
}

// pmixOf tells MPI programs of their step, with the tasks of each node.
func pmixOf(all []slurm.StepPart) *wire.PMIx {
	p := &wire.PMIx{Namespace: fmt.Sprintf("slurm.pmix.%d.%d", all[0].Job.ID, all[0].Step.ID)}
	for _, part := range all {
		for at, list := range part.Ranks {
			if len(list) > 0 {
				p.Nodes = append(p.Nodes, wire.PMIxNode{Name: part.Step.Nodes[at], Ranks: list})
				p.Size += len(list)
			}
		}
	}
	return p
}

// pmiOf tells MPI programs of their step. Who is where is told only if each node has consecutive ranks, as the
// mapping can say nothing else.
func pmiOf(all []slurm.StepPart) *wire.PMI {
	p := &wire.PMI{Job: fmt.Sprintf("%d.%d", all[0].Job.ID, all[0].Step.ID)}
	next, block := int32(0), true
	for _, part := range all {
		p.Counts = append(p.Counts, part.Step.Tasks...)
		for _, list := range part.Ranks {
			p.Size += len(list)
			for _, r := range list {
				block = block && r == next
				next++
			}
		}
	}
	if !block {
		p.Counts = nil
	}
	return p
}
