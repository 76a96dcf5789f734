package hub

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cpubind"
	"bireme.dev/bireme/internal/wire"
)

// binding is how the tasks of a step are bound on one node; nil: they are not.
type binding struct {
	*cpubind.Bound
	loud  bool
	ranks []int32
	have  []int32
}

// bind computes which CPUs the tasks of a part have on its node at an index. Without a word of the step's they are
// bound where the cluster keeps jobs to their CPUs.
func (b *launchBuilder) bind(p *slurm.StepPart, at int) (*binding, error) {
	have := p.Hold(at)
	if have == nil || len(have.Cores) == 0 || p.Ask.CPUBind == "" && !b.rules().Settings.ConstrainCPUs {
		return nil, nil
	}
	how, err := cpubind.Parse(p.Ask.CPUBind)
	if err != nil {
		return nil, core.Errorf(core.Invalid, "--cpu-bind=%s: %v", p.Ask.CPUBind, err).Because("cpu_bind")
	}
	n := &cpubind.Node{Have: have.Cores}
	if node, ok := b.engine.Snapshot().Node(have.Node); ok {
		n.Hardware = node.Hardware
	}
	bound, err := how.Tasks(n, len(p.Ranks[at]), int(max(1, p.Ask.CPUsPerTask)))
	if err != nil {
		return nil, err
	}
	return &binding{bound, how.Verbose, p.Ranks[at], have.Cores}, nil
}

func (b *binding) apply(t *wire.Task, node core.NodeName, local int) {
	if b == nil {
		return
	}
	t.Env = append(t.Env, b.Vars...)
	if b.CPUs != nil {
		t.CPUs = wire.FormatRanges(b.CPUs[local])
	}
	if b.loud {
		t.Note = b.Bound.Note(node, b.ranks[local], local, b.have)
	}
}
