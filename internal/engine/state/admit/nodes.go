package admit

import (
	"fmt"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/engine/state/cluster"
	"bireme.dev/bireme/internal/engine/state/speccheck"
	"bireme.dev/bireme/internal/sched/fit"
)

func (a *Admission) checkExtra(x *core.Extra) error {
	for i, list := range []string{x.NodeList, x.Exclude} {
		if list == "" {
			continue
		}
		// The writer expands no more names than there are nodes: beyond that one of them is wrong anyway. A list of the
		// nodes of tasks names them again and again.
		most := a.rec.NumNodes() + 1
		if i == 0 && speccheck.IsArbitrary(x) {
			most = speccheck.MaxListedTasks
		}
		names, err := hostlist.Expand(list, most)
		if err != nil {
			return core.Errorf(core.Invalid, "node list %.200q: %v", list, err).Because("invalid_node")
		}
		if len(names) == 0 {
			return core.Errorf(core.Invalid, "node list %.200q names no node", list).Because("invalid_node")
		}
		for _, n := range names {
			if _, ok := a.rec.Node(core.NodeName(n)); !ok {
				return core.Errorf(core.Invalid, "there is no node %q", n).Because("invalid_node")
			}
		}
	}
	if err := a.checkConstraints(x); err != nil {
		return err
	}
	if x.KillGrace < 0 || x.KillGrace > a.cfg.MaxKillGrace {
		return core.Errorf(core.Invalid, "kill_grace: %v exceeds the limit of %v", x.KillGrace.Duration(),
			a.cfg.MaxKillGrace.Duration()).Because("kill_grace")
	}
	return nil
}

// checkConstraints refuses what does not parse of what a job asks of its nodes as a whole.
func (a *Admission) checkConstraints(x *core.Extra) error {
	for _, c := range [...]core.Constraint{x.Constraint, x.Prefer} {
		if err := c.Fault(); err != nil {
			return core.Errorf(core.Invalid, "%v", err).Because("invalid_feature")
		}
	}
	if err := x.Switches.Fault(); err != nil {
		return core.Errorf(core.Invalid, "%v", err).Because("invalid_switches")
	}
	return nil
}

// checkSegment refuses node counts that are no whole number of segments.
func (a *Admission) checkSegment(spec *core.Spec) error {
	k, sh := spec.More().Segment, &spec.Shape
	switch {
	case k == 0:
		return nil
	case a.cfg.Topology != nil && a.cfg.Topology.Kind == core.TopologyTree:
		return core.Errorf(core.Invalid,
			"--segment=%d: the topology is a tree of switches and has no blocks; --switches keeps nodes near each other here",
			k).Because("segment")
	case k < 0 || k > speccheck.MaxNodes:
		return core.Errorf(core.Invalid, "segment: %d must be 1 or more", k).Because("invalid_shape")
	case max(1, sh.NodesMin)%k != 0:
		return core.Errorf(core.Invalid, "nodes: %d is not a multiple of the segment size %d", max(1, sh.NodesMin),
			k).Because("invalid_shape")
	}
	return nil
}

// checkPartition checks what can never start. As Slurm: a node configuration that is not there is refused, but tasks
// wider than any node, and a node count or time over the partition's limit, wait with their reason, unless submission
// is strict.
func (a *Admission) checkPartition(in *Request, spec *core.Spec, part *cluster.Partition) error {
	strict := in.Strict || a.cfg.StrictSubmit
	if part.State == "INACTIVE" || part.State == "DRAIN" {
		return core.Errorf(core.Conflict, "partition %s does not accept jobs now", part.Name).Because("partition_inactive")
	}
	nodes := a.rec.NumNodes()
	if part.Nodes != nil {
		nodes = len(part.Nodes)
	}
	over := ""
	lifts := func(f core.QOSFlag) bool { q := a.rec.QOSByName()[spec.QOS]; return q != nil && q.Flags&f != 0 }
	switch sh := &spec.Shape; {
	case part.MaxTime > 0 && spec.TimeLimit > part.MaxTime && !lifts(core.PartitionTimeLimit):
		over = fmt.Sprintf("the job requests %v; partition %s allows %v", spec.TimeLimit.Duration(), part.Name,
			part.MaxTime.Duration())
		if strict {
			return core.Errorf(core.Invalid, "%s", over).Because("time_limit")
		}
	case part.MaxNodes > 0 && sh.NodesMin > part.MaxNodes && !lifts(core.PartitionMaxNodes):
		over = fmt.Sprintf("the job requests %d nodes; partition %s allows %d per job", sh.NodesMin, part.Name, part.MaxNodes)
	case int(sh.NodesMin) > nodes:
		over = fmt.Sprintf("the job requests %d nodes; partition %s has %d", sh.NodesMin, part.Name, nodes)
	}
	if over != "" {
		if strict {
			return core.Errorf(core.Invalid, "%s", over).Because("too_many_nodes")
		}
		return nil
	}
	if least, most := speccheck.MinMemoryPerNode(&spec.Shape), part.MaxMemPerNode; most > 0 && least > most {
		return core.Errorf(core.Invalid, "the job requests %d MiB of memory on a node; partition %s allows %d",
			least/core.MiB,
			part.Name, most/core.MiB).Because("memory_unsatisfiable")
	}
	key := cluster.AdmitKey{Key: fit.KeyOf(spec), UID: a.cluster.Ledger.KeptUser(spec)}
	fault, seen := part.AdmitCache[key]
	if !seen {
		if fault = a.checkGresExists(spec); fault == nil {
			fault = a.checkFeaturesExist(spec)
		}
		if fault == nil {
			fault = fit.CheckSatisfiable(a.cluster.Ledger, spec, &part.Partition, &part.Within, a.cluster.Expand)
		}
		if len(part.AdmitCache) > 10_000 {
			clear(part.AdmitCache)
		}
		part.AdmitCache[key] = fault
	}
	if fault != nil && len(a.cfg.Offers) > 0 && fit.OffersCouldHold(a.cfg.Offers, spec, part.Name, a.cluster.Expand) {
		return nil
	}
	if fault != nil && (!strict && mayWaitHeld(spec, fault.Reason) || triesAgain(spec)) {
		return nil
	}
	if fault != nil && (strict || !fault.OnlyCPUs) {
		return core.Errorf(core.Invalid, "%s", fault.Text).Because(fault.Reason)
	}
	return nil
}

// mayWaitHeld reports whether a held job that no node can run is accepted, as in Slurm: it is judged when it is
// released. Commands say the line that they were called with; a program that says none is told at once.
func mayWaitHeld(spec *core.Spec, reason string) bool {
	return spec.Hold && spec.From.Line != "" && (reason == "node_config_unavailable" || reason == "memory_unsatisfiable")
}

// triesAgain reports whether a run is tried again when there is no capacity: it waits for nodes that could come, for as
// long as its rule says.
func triesAgain(spec *core.Spec) bool {
	rules := spec.Rules()
	return rules != nil && rules.Retry != nil && rules.Retry.NoCapacity && rules.StartWithin > 0
}

// checkGresExists refuses resources no node has any of.
func (a *Admission) checkGresExists(spec *core.Spec) *fit.Unsatisfiable {
	for _, want := range speccheck.AllGres(&spec.Shape) {
		found := false
		for n := range a.rec.Nodes() {
			for _, g := range n.Hardware.Gres {
				found = found || g.Name == want.Name
			}
		}
		if !found {
			return &fit.Unsatisfiable{Reason: "invalid_gres", Text: fmt.Sprintf("no node has %q", want.Name)}
		}
	}
	return nil
}

// checkFeaturesExist refuses features that no node has, also where another would do.
func (a *Admission) checkFeaturesExist(spec *core.Spec) *fit.Unsatisfiable {
	x := spec.Extra
	if x == nil {
		return nil
	}
	for _, c := range [...]core.Constraint{x.Constraint, x.Prefer} {
		if c.Expr() == nil {
			continue
		}
		for _, name := range c.Expr().Names() {
			if !a.featureExists(name) {
				return &fit.Unsatisfiable{Reason: "invalid_feature", Text: fmt.Sprintf("no node has the feature %q", name)}
			}
		}
	}
	return nil
}

func (a *Admission) featureExists(name string) bool {
	for n := range a.rec.Nodes() {
		if slices.Contains(n.Features, name) {
			return true
		}
	}
	return false
}

// checkUnprivilegedNodes refuses what no node may run: without root an agent runs its own user's jobs only.
func (a *Admission) checkUnprivilegedNodes(spec *core.Spec) error {
	any := a.rec.NumNodes() == 0
	for n := range a.rec.Nodes() {
		if n.Host.KeptTo() == 0 || n.Host.KeptTo() == spec.UID || n.Flags.Has(core.NodeUnknown) {
			any = true
			break
		}
	}
	if any {
		return nil
	}
	return core.Errorf(core.Denied,
		"the nodes' agents do not run as root and run only their own user's jobs, not those of %s (uid %d)", spec.User,
		spec.UID).Because("access_denied")
}
