// Package cluster has what jobs hold of the cluster, derived from settings, nodes and jobs: the ledger of nodes, the
// jobs on each node, licenses in use, started tasks of arrays, and the nodes of partitions. It decides nothing about
// jobs.
package cluster

import (
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/engine/state/conf"
	"bireme.dev/bireme/internal/engine/state/live"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/fit"
	"bireme.dev/bireme/internal/sched/ledger"
)

// Cluster is the nodes with what jobs hold of them. JobChanged and NodeChanged keep it; Reset begins again.
type Cluster struct {
	Ledger        *ledger.Ledger
	Partitions    map[core.PartitionName]*Partition
	LicenseTotals map[string]int64 // licenses that there are
	LicensesUsed  map[string]int64 // that jobs hold

	cfg       *conf.Config
	rec       *live.Records
	hosts     hostlistCache
	onNode    map[core.NodeName]map[core.JobID]struct{}
	tasks     map[core.JobID]map[int32]core.JobID // live started tasks, by array
	occupancy map[core.NodeName]struct{}          // see TakeOccupancyChanges
}

// Partition is a partition with its nodes.
type Partition struct {
	core.Partition
	Nodes  map[core.NodeName]bool // nil: all
	Within fit.NodeSet
	// AdmitCache remembers for requests whether they could ever run here. It is cleared when nodes change.
	AdmitCache map[AdmitKey]*fit.Unsatisfiable
}

// AdmitKey is all that decides whether a request could ever run in a partition.
type AdmitKey struct {
	fit.Key
	UID uint32 // see ledger.Ledger.KeptUser
}

// New makes a cluster without nodes.
func New(cfg *conf.Config, rec *live.Records) *Cluster {
	c := &Cluster{
		cfg: cfg, rec: rec, hosts: hostlistCache{}, LicensesUsed: map[string]int64{},
		onNode: map[core.NodeName]map[core.JobID]struct{}{}, tasks: map[core.JobID]map[int32]core.JobID{},
		occupancy: map[core.NodeName]struct{}{},
	}
	c.Reset()
	return c
}

// Reset derives what the settings alone say. The ledger is empty then: see Refill.
func (c *Cluster) Reset() {
	c.LicenseTotals = map[string]int64{}
	for _, l := range c.cfg.Licenses {
		c.LicenseTotals[l.Name] = l.Total
	}
	c.Ledger = ledger.New()
	c.Ledger.SetRules(ledger.RulesOf(c.cfg.Select, c.cfg.Partitions, c.Expand))
	c.Ledger.SetTopology(c.cfg.Topology)
	c.Partitions = map[core.PartitionName]*Partition{}
	for _, p := range c.cfg.Partitions {
		nodes := alloc.PartitionNodes(&p, c.Expand)
		c.Partitions[p.Name] = &Partition{
			Partition: p, Nodes: nodes, Within: fit.NodeSet{Nodes: nodes},
			AdmitCache: map[AdmitKey]*fit.Unsatisfiable{},
		}
	}
}

// Refill enters all nodes and all that jobs hold into an empty ledger.
func (c *Cluster) Refill() {
	for n := range c.rec.Nodes() {
		c.Ledger.SetNode(n)
	}
	for j := range c.rec.Jobs() {
		if j.Alloc != nil {
			c.Allocate(j)
		}
	}
}

// JobChanged updates what is derived from jobs; old is nil for a new job.
func (c *Cluster) JobChanged(old, j *core.Job) {
	if old != nil && old.Alloc != nil && old.Live() {
		c.CountLicenses(old.Alloc, -1)
		c.Release(old)
		for i := range old.Alloc.Nodes {
			if na := &old.Alloc.Nodes[i]; !na.Done {
				delete(c.onNode[na.Node], old.ID)
				if len(c.onNode[na.Node]) == 0 {
					c.noteOccupancy(na.Node)
				}
			}
		}
	}
	if j.Array != nil && !j.IsArray() {
		c.taskChanged(j)
	}
	if !j.Live() || j.Alloc == nil {
		return
	}
	c.CountLicenses(j.Alloc, 1)
	c.Allocate(j)
	for i := range j.Alloc.Nodes {
		if na := &j.Alloc.Nodes[i]; !na.Done {
			on := c.onNode[na.Node]
			if on == nil {
				on = map[core.JobID]struct{}{}
				c.onNode[na.Node] = on
			}
			if on[j.ID] = struct{}{}; len(on) == 1 {
				c.noteOccupancy(na.Node)
			}
		}
	}
}

func (c *Cluster) taskChanged(j *core.Job) {
	tasks := c.tasks[j.Array.Base]
	if j.Live() {
		if tasks == nil {
			tasks = map[int32]core.JobID{}
			c.tasks[j.Array.Base] = tasks
		}
		tasks[j.Array.Task] = j.ID
	} else if delete(tasks, j.Array.Task); len(tasks) == 0 {
		delete(c.tasks, j.Array.Base)
	}
}

// noteOccupancy notes that the first job came to a node or the last one left it, where something follows from that.
func (c *Cluster) noteOccupancy(name core.NodeName) {
	if c.cfg.Power.SuspendTime > 0 {
		c.occupancy[name] = struct{}{}
	}
}

// OccupancyChanges is the nodes to which a first job came, or which the last job left, since ClearOccupancyChanges. It
// is empty unless nodes are suspended when idle.
func (c *Cluster) OccupancyChanges() map[core.NodeName]struct{} { return c.occupancy }

// ClearOccupancyChanges begins again with OccupancyChanges.
func (c *Cluster) ClearOccupancyChanges() { clear(c.occupancy) }

// NodeChanged takes a node's new record.
func (c *Cluster) NodeChanged(n *core.Node) {
	if c.Ledger.SetNode(n) { // it has begun again: enter what jobs hold there
		for id := range c.onNode[n.Name] {
			j, _ := c.rec.Job(id)
			al, terms := alloc.Occupied(j)
			for i := range al.Nodes {
				if na := &al.Nodes[i]; na.Node == n.Name && !na.Done {
					c.Ledger.ForceAllocate(na, terms)
				}
			}
		}
	}
	c.clearAdmitCaches()
}

// NodeDeleted forgets a node.
func (c *Cluster) NodeDeleted(name core.NodeName) {
	c.Ledger.DropNode(name)
	c.clearAdmitCaches()
}

func (c *Cluster) clearAdmitCaches() {
	for _, p := range c.Partitions {
		clear(p.AdmitCache)
	}
}

// Allocate enters what a job holds into the ledger.
func (c *Cluster) Allocate(j *core.Job) {
	al, terms := alloc.Occupied(j)
	for i := range al.Nodes {
		if na := &al.Nodes[i]; !na.Done {
			c.Ledger.ForceAllocate(na, terms)
		}
	}
}

// Release takes what a job holds out of the ledger.
func (c *Cluster) Release(j *core.Job) {
	al, terms := alloc.Occupied(j)
	for i := range al.Nodes {
		if na := &al.Nodes[i]; !na.Done {
			c.Ledger.Release(na, terms)
		}
	}
}

// CountLicenses counts the licenses of an allocation as used, or with -1 as free again.
func (c *Cluster) CountLicenses(al *core.Alloc, sign int64) {
	for _, l := range al.Licenses() {
		if c.LicensesUsed[l.Name] += sign * l.Total; c.LicensesUsed[l.Name] == 0 {
			delete(c.LicensesUsed, l.Name)
		}
	}
}

// PlacementFree reports whether the nodes of a placement are usable and nothing of it is taken.
func (c *Cluster) PlacementFree(j *core.Job, al *core.Alloc) bool {
	for i := range al.Nodes {
		n, ok := c.rec.Node(al.Nodes[i].Node)
		if !ok || !n.Usable() {
			return false
		}
	}
	terms := alloc.TermsOf(j.Spec, al)
	for i := range al.Nodes {
		if !c.Ledger.Allocate(&al.Nodes[i], terms) {
			for k := range i {
				c.Ledger.Release(&al.Nodes[k], terms)
			}
			return false
		}
	}
	for i := range al.Nodes { // JobChanged enters it for good
		c.Ledger.Release(&al.Nodes[i], terms)
	}
	return true
}

// CanResume reports whether the CPUs of a suspended job are free for it to go on as next.
func (c *Cluster) CanResume(j, next *core.Job) bool {
	c.Release(j)
	defer c.Allocate(j)
	al, terms := alloc.Occupied(next)
	ok := true
	var taken []*core.NodeAlloc
	for i := range al.Nodes {
		if na := &al.Nodes[i]; ok && !na.Done {
			if ok = c.Ledger.Allocate(na, terms); ok {
				taken = append(taken, na)
			}
		}
	}
	for _, na := range taken {
		c.Ledger.Release(na, terms)
	}
	return ok
}

// OnNode is the live jobs that hold something on a node, to read.
func (c *Cluster) OnNode(n core.NodeName) map[core.JobID]struct{} { return c.onNode[n] }

// JobIDsOn lists the live jobs that hold something on a node, ascending.
func (c *Cluster) JobIDsOn(n core.NodeName) []core.JobID {
	ids := make([]core.JobID, 0, len(c.onNode[n]))
	for id := range c.onNode[n] {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// Tasks is the live started tasks of an array, by index, to read.
func (c *Cluster) Tasks(base core.JobID) map[int32]core.JobID { return c.tasks[base] }

// RunningTasks counts the tasks of an array that hold nodes.
func (c *Cluster) RunningTasks(base core.JobID) (n int) {
	for _, id := range c.tasks[base] {
		if j, ok := c.rec.Job(id); ok && j.Alloc != nil {
			n++
		}
	}
	return n
}

// RecordsOf lists the live records of a job or an array, by id.
func (c *Cluster) RecordsOf(id core.JobID) []*core.Job {
	ids := []core.JobID{id}
	for _, task := range c.tasks[id] {
		ids = append(ids, task)
	}
	slices.Sort(ids)
	var out []*core.Job
	for _, id := range slices.Compact(ids) {
		if j, ok := c.rec.Job(id); ok {
			out = append(out, j)
		}
	}
	return out
}

// InPartition reports whether a node is in a partition; every node is in the one without a name.
func (c *Cluster) InPartition(n *core.Node, name core.PartitionName) bool {
	if name == "" {
		return true
	}
	p := c.Partitions[name]
	return p.Nodes == nil || p.Nodes[n.Name]
}

// DefaultPartition is where jobs go that name none; empty: there is no such partition.
func (c *Cluster) DefaultPartition() core.PartitionName {
	for _, p := range c.cfg.Partitions {
		if p.Default {
			return p.Name
		}
	}
	if len(c.cfg.Partitions) == 1 {
		return c.cfg.Partitions[0].Name
	}
	return ""
}

// Expand is the nodes of a hostlist.
func (c *Cluster) Expand(list string) map[core.NodeName]bool { return c.hosts.expand(list) }

// hostlistCache expands hostlists; the few that are in use come again and again.
type hostlistCache map[string]map[core.NodeName]bool

func (c hostlistCache) expand(list string) map[core.NodeName]bool {
	if list == "" {
		return nil
	}
	if set, ok := c[list]; ok {
		return set
	}
	set := map[core.NodeName]bool{}
	if names, err := hostlist.Expand(list, 1<<20); err == nil {
		for _, n := range names {
			set[core.NodeName(n)] = true
		}
	}
	if len(c) > 1000 {
		clear(c)
	}
	c[list] = set
	return set
}

// NewHosts returns an expander of hostlists with a cache of its own, for a planner.
func NewHosts() alloc.HostsFunc { return hostlistCache{}.expand }
