package advance

import (
	"cmp"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/engine/state/named"
)

// chooseNodes turns what is asked for into nodes; chosen tells that they are free by then.
func (a *Reservations) chooseNodes(r *core.AdvanceReservation) (chosen bool, err error) {
	if r.Partition != "" {
		if _, ok := a.cluster.Partitions[r.Partition]; !ok {
			return false, core.Errorf(core.Invalid, "there is no partition %q", r.Partition).Because("invalid_partition")
		}
	}
	if err := r.Features.Fault(); err != nil {
		return false, core.Errorf(core.Invalid, "features: %v", err).Because("invalid_feature")
	}
	if r.NodeCount < 0 || r.CoreCount < 0 {
		return false, core.Errorf(core.Invalid, "counts must not be negative").Because("invalid_node_count")
	}
	switch {
	case r.Nodes != "":
		return false, a.resolveNamedNodes(r)
	case r.NodeCount > 0 || r.CoreCount > 0:
		return true, a.chooseCountedNodes(r)
	case len(r.Licenses) > 0:
		r.Flags |= core.ReserveAnyNodes // as Slurm: nodes are free for all
		return true, nil
	}
	return false, core.Errorf(core.Invalid,
		"reservation %s is empty: give nodes, a number of nodes or cores, or licenses",
		r.Name).Because("invalid_node_count")
}

func (a *Reservations) resolveNamedNodes(r *core.AdvanceReservation) error {
	all := strings.EqualFold(r.Nodes, "ALL")
	var nodes []*core.Node
	if all {
		r.Flags |= core.ReserveAllNodes
		for n := range a.rec.Nodes() {
			if n.Roles&core.Compute != 0 && a.cluster.InPartition(n, r.Partition) {
				nodes = append(nodes, n)
			}
		}
	} else {
		list, err := hostlist.Expand(r.Nodes, hostlist.MaxRequest)
		if err != nil {
			return core.Errorf(core.Invalid, "nodes: %v", err).Because("invalid_node")
		}
		for _, name := range list {
			n, ok := a.rec.Node(core.NodeName(name))
			switch {
			case !ok:
				return core.Errorf(core.Invalid, "there is no node %q", name).Because("invalid_node")
			case n.LoginOnly():
				return core.Errorf(core.Invalid, "node %s runs no jobs", name).Because("invalid_node")
			case !a.cluster.InPartition(n, r.Partition):
				return core.Errorf(core.Invalid, "node %s is not in partition %s", name, r.Partition).Because("invalid_node")
			}
		}
		nodes = a.nodesOf(r)
	}
	if len(nodes) == 0 {
		return core.Errorf(core.Invalid, "reservation %s has no node", r.Name).Because("invalid_node")
	}
	if r.NodeCount == 0 || all { // a list that was chosen is not one that was named
		r.Flags |= core.ReserveSpecNodes
	}
	r.Nodes, r.NodeCount = hostlistOf(nodes), int32(len(nodes))
	return a.checkCores(r, nodes)
}

// checkCores reports whether nodes have the cores a reservation wants of them.
func (a *Reservations) checkCores(r *core.AdvanceReservation, nodes []*core.Node) error {
	for i, n := range nodes {
		if share := coreShare(r, i, len(nodes)); share > n.Hardware.CPUs {
			return core.Errorf(core.Invalid, "node %s has %d CPUs, not %d", n.Name, n.Hardware.CPUs,
				share).Because("invalid_node_count")
		}
	}
	return nil
}

// coreShare is what a reservation of cores has of the i-th of its nodes, in the order of the cluster's.
func coreShare(r *core.AdvanceReservation, i, of int) int32 {
	share := r.CoreCount / int32(of)
	if int32(i) < r.CoreCount%int32(of) {
		share++
	}
	return share
}

// mayOverlap reports whether reservations may overlap.
func mayOverlap(r, o *core.AdvanceReservation) bool {
	return r.Flags&(core.ReserveMaint|core.ReserveOverlap) != 0 || o.Flags&core.ReserveOverlap != 0
}

// conflicting lists the reservations that r must keep out of the way of.
func (a *Reservations) conflicting(r *core.AdvanceReservation) []*core.AdvanceReservation {
	var out []*core.AdvanceReservation
	for _, o := range named.Sorted(a.rec.ReservationsByName()) {
		if o.Name != r.Name && o.Nodes != "" && !mayOverlap(r, o) && r.Meets(o, a.rec.Now(), a.cfg.Zone.Location) {
			out = append(out, o)
		}
	}
	return out
}

// findCollision finds a reservation that has what r wants at the same time. Those of cores share a node while it has
// enough.
func (a *Reservations) findCollision(r *core.AdvanceReservation) *core.AdvanceReservation {
	if r.Nodes == "" {
		return nil
	}
	taken := map[core.NodeName]int32{}
	mine := a.nodesOf(r)
	for i, n := range mine {
		taken[n.Name] = n.Hardware.CPUs
		if r.CoreCount > 0 {
			taken[n.Name] = coreShare(r, i, len(mine))
		}
	}
	for _, o := range a.conflicting(r) {
		theirs := a.nodesOf(o)
		for i, n := range theirs {
			has, both := taken[n.Name]
			if !both {
				continue
			}
			share := n.Hardware.CPUs
			if o.CoreCount > 0 {
				share = coreShare(o, i, len(theirs))
			}
			if has+share > n.Hardware.CPUs || r.CoreCount == 0 || o.CoreCount == 0 {
				return o
			}
			taken[n.Name] = has + share
		}
	}
	return nil
}

// commonNodes lists the nodes that two reservations have.
func (a *Reservations) commonNodes(r, o *core.AdvanceReservation) string {
	in := a.cluster.Expand(o.Nodes)
	return hostlistOf(slices.DeleteFunc(a.nodesOf(r), func(n *core.Node) bool { return !in[n.Name] }))
}

// forever is later than any job ends.
const forever = core.Time(1<<63 - 1)

// busyUntil tells when the last job on a node ends, by its limit, and which that is; 0 of a node without one.
func (a *Reservations) busyUntil(name core.NodeName) (id core.JobID, until core.Time) {
	for _, j := range a.cluster.JobIDsOn(name) {
		job, _ := a.rec.Job(j)
		end := forever
		if l := job.Spec.TimeLimit; job.State == core.Running && l > 0 && l != core.Forever {
			end = job.Start.Add(l.Duration() + job.PausedFor)
		} else if job.End != 0 {
			end = job.End
		}
		if end > until {
			id, until = j, end
		}
	}
	return id, until
}

// candidate is a node a reservation could have.
type candidate struct {
	node *core.Node
	free core.Time // when its last job ends; 0: it is idle
}

// candidates lists the nodes r could have, those that are free soonest first; not are those it must not
// take.
func (a *Reservations) candidates(r *core.AdvanceReservation, not map[core.NodeName]bool) []candidate {
	taken := map[core.NodeName]bool{}
	for _, o := range a.conflicting(r) {
		for _, n := range a.nodesOf(o) {
			taken[n.Name] = true
		}
	}
	var out []candidate
	for n := range a.rec.Nodes() {
		if !n.Usable() || taken[n.Name] || not[n.Name] || !a.cluster.InPartition(n, r.Partition) ||
			!r.Features.IsMetBy(n) {
			continue
		}
		_, free := a.busyUntil(n.Name)
		if free > max(r.Start, a.rec.Now()) && r.Flags&core.ReserveIgnoreJobs == 0 {
			continue
		}
		out = append(out, candidate{n, free})
	}
	slices.SortStableFunc(out, func(x, y candidate) int {
		return cmp.Or(cmp.Compare(x.free, y.free), cmp.Compare(x.node.Weight, y.node.Weight))
	})
	return out
}

// chooseCountedNodes chooses nodes for a count of them, or of cores.
func (a *Reservations) chooseCountedNodes(r *core.AdvanceReservation) error {
	if r.Partition == "" {
		r.Partition = a.cluster.DefaultPartition()
	}
	var nodes []*core.Node
	var cpus int32
	for _, c := range a.candidates(r, nil) {
		if r.NodeCount > 0 && len(nodes) == int(r.NodeCount) || r.NodeCount == 0 && cpus >= r.CoreCount {
			break
		}
		nodes = append(nodes, c.node)
		cpus += c.node.Hardware.CPUs
	}
	if len(nodes) < int(r.NodeCount) || cpus < r.CoreCount {
		return core.Errorf(core.Conflict,
			"partition %s has %d nodes (%d CPUs) for reservation %s: "+
				"the others are in use by jobs or reservations, down, or not of its features",
			r.Partition, len(nodes), cpus, r.Name).Because("nodes_busy")
	}
	slices.SortFunc(nodes, func(x, y *core.Node) int { return cmp.Compare(x.ID, y.ID) })
	r.Nodes, r.NodeCount = hostlistOf(nodes), int32(len(nodes))
	return a.checkCores(r, nodes)
}

// nodesOf lists the nodes of a reservation in the order of the cluster's.
func (a *Reservations) nodesOf(r *core.AdvanceReservation) []*core.Node {
	if r.Nodes == "" {
		return nil
	}
	names := a.cluster.Expand(r.Nodes)
	out := make([]*core.Node, 0, len(names))
	for name := range names {
		if n, ok := a.rec.Node(name); ok {
			out = append(out, n)
		}
	}
	slices.SortFunc(out, func(x, y *core.Node) int { return cmp.Compare(x.ID, y.ID) })
	return out
}

func hostlistOf(nodes []*core.Node) string {
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = string(n.Name)
	}
	return hostlist.FoldSorted(names)
}
