package limits

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/policy"
)

// clusterTRES are the resources of all nodes, and the licenses.
func (l *Limits) clusterTRES() policy.TRES {
	var t policy.TRES
	for n := range l.rec.Nodes() {
		if n.Roles&core.Compute != 0 && !n.Flags.Any(core.NodeFuture) {
			t = t.Plus(NodeTRES(n), 1)
		}
	}
	return t.Plus(l.LicenseTRES(), 1)
}

// LicenseTRES are the licenses there are.
func (l *Limits) LicenseTRES() (t policy.TRES) {
	for _, x := range l.cfg.Licenses {
		t = t.Plus(policy.TRES{{Name: "license/" + x.Name, Count: x.Total}}, 1)
	}
	return t
}

// NodeTRES are the resources of a node.
func NodeTRES(n *core.Node) policy.TRES {
	t := policy.Of(policy.Amount{Name: "node", Count: 1}, policy.Amount{Name: "cpu", Count: int64(n.Hardware.CPUs)},
		policy.Amount{Name: "mem", Count: int64(n.Hardware.Memory / core.MiB)})
	for _, g := range n.Hardware.Gres {
		t = t.Plus(policy.TRES{{Name: "gres/" + g.Name, Count: g.Count}}, 1)
		if g.Type != "" {
			t = t.Plus(policy.TRES{{Name: "gres/" + g.Name + ":" + g.Type, Count: g.Count}}, 1)
		}
	}
	return t
}
