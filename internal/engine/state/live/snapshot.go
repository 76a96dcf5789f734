package live

import (
	"iter"
	"maps"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/trie"
	"bireme.dev/bireme/internal/engine/state/credentials"
	"bireme.dev/bireme/internal/engine/state/fleets"
	"bireme.dev/bireme/internal/engine/state/named"
	"bireme.dev/bireme/internal/engine/state/people"
	"bireme.dev/bireme/internal/engine/state/usage"
	"bireme.dev/bireme/internal/engine/state/volumes"
)

// VolumeTable is the network volumes.
type VolumeTable = volumes.Table

// Snapshot is the live state at one moment. It is immutable: any number of readers may keep it.
type Snapshot struct {
	seq      int64
	now      core.Time
	nextJob  core.JobID
	nextNode int64

	jobs    trie.Map[*core.Job]
	steps   trie.Map[*stepList] // by job
	nodes   trie.Map[*core.Node]
	nodeIDs map[core.NodeName]int64

	people.Tables
	runs map[runKey]*core.Run

	qos          map[core.QOSName]*core.QOS
	reservations map[string]*core.AdvanceReservation
	fleets.Table
	credentials.Set
	VolumeTable

	partitions     []core.Partition
	licenseTotals  map[string]int64 // that there are; never changed
	defaultProject core.ProjectName

	ranking   *Ranking // nil: first come, first served
	runWeight int64
	usage     usage.Table
}

// Seq is the number of the last event in the snapshot.
func (v *Snapshot) Seq() int64 { return v.seq }

// NextJob is the first number that no job has had.
func (v *Snapshot) NextJob() core.JobID { return v.nextJob }

// Now is the time of the last batch.
func (v *Snapshot) Now() core.Time { return v.now }

// Job finds a live job.
func (v *Snapshot) Job(id core.JobID) (*core.Job, bool) { return v.jobs.Get(int64(id)) }

// Jobs goes through live jobs by ascending id.
func (v *Snapshot) Jobs() iter.Seq[*core.Job] {
	return func(yield func(*core.Job) bool) {
		for _, j := range v.jobs.All() {
			if !yield(j) {
				return
			}
		}
	}
}

// JobsFrom gives the live jobs from an id on, by ascending id.
func (v *Snapshot) JobsFrom(id core.JobID) iter.Seq[*core.Job] {
	return func(yield func(*core.Job) bool) {
		for _, j := range v.jobs.From(int64(id)) {
			if !yield(j) {
				return
			}
		}
	}
}

// NumJobs counts live records.
func (v *Snapshot) NumJobs() int { return v.jobs.Len() }

// Tasks finds the live started tasks of an array, by id. It reads all live jobs.
func (v *Snapshot) Tasks(base core.JobID) []*core.Job {
	var out []*core.Job
	for _, j := range v.jobs.All() {
		if j.Array != nil && j.Array.Base == base && !j.IsArray() {
			out = append(out, j)
		}
	}
	return out
}

// OnNode finds the live jobs that hold something on a node. It reads all live jobs.
func (v *Snapshot) OnNode(name core.NodeName) []*core.Job {
	var out []*core.Job
	for _, j := range v.jobs.All() {
		if j.Alloc == nil {
			continue
		}
		for i := range j.Alloc.Nodes {
			if na := &j.Alloc.Nodes[i]; na.Node == name && !na.Done {
				out = append(out, j)
				break
			}
		}
	}
	return out
}

// NodeUse is what jobs hold on a node.
type NodeUse struct {
	CPUs  int32
	Mem   core.Bytes
	Gres  []core.Gres
	Units []core.GresAlloc // which they are, in the order of Gres
	Jobs  []core.JobID

	shared map[int32]bool // CPUs of jobs that share theirs: each counts once
}

// addShared counts the CPUs of a job that shares them.
func (u *NodeUse) addShared(na *core.NodeAlloc) {
	if u.shared == nil {
		u.shared = map[int32]bool{}
	}
	for _, c := range na.Cores {
		if !u.shared[c] {
			u.shared[c] = true
			u.CPUs++
		}
	}
}

// Uses works out what jobs hold on every node, in one reading of the live jobs.
func (v *Snapshot) Uses() map[core.NodeName]*NodeUse {
	out := make(map[core.NodeName]*NodeUse, v.nodes.Len())
	for _, j := range v.jobs.All() {
		if j.Alloc == nil {
			continue
		}
		al := j.Booked()
		for i := range al.Nodes {
			na := &al.Nodes[i]
			if na.Done {
				continue
			}
			u := out[na.Node]
			if u == nil {
				u = &NodeUse{}
				out[na.Node] = u
			}
			if j.Alloc.More != nil && j.Alloc.More.Share > 1 {
				u.addShared(na)
			} else {
				u.CPUs += na.CPUs
			}
			u.Mem += na.Mem
			u.Jobs = append(u.Jobs, j.ID)
			for _, g := range na.Gres {
				u.addGres(g)
			}
		}
	}
	return out
}

func (u *NodeUse) addGres(g core.GresAlloc) {
	for i := range u.Gres {
		if u.Gres[i].Name == g.Name && u.Gres[i].Type == g.Type {
			u.Gres[i].Count += int64(len(g.Units))
			u.Units[i].Units = append(u.Units[i].Units, g.Units...)
			return
		}
	}
	u.Gres = append(u.Gres, core.Gres{Name: g.Name, Type: g.Type, Count: int64(len(g.Units))})
	g.Units = slices.Clone(g.Units)
	u.Units = append(u.Units, g)
}

// NumNodes counts nodes.
func (v *Snapshot) NumNodes() int { return v.nodes.Len() }

// Node finds a node.
func (v *Snapshot) Node(name core.NodeName) (*core.Node, bool) {
	id, ok := v.nodeIDs[name]
	if !ok {
		return nil, false
	}
	return v.nodes.Get(id)
}

// Nodes goes through all nodes in the order they joined.
func (v *Snapshot) Nodes() iter.Seq[*core.Node] {
	return func(yield func(*core.Node) bool) {
		for _, n := range v.nodes.All() {
			if !yield(n) {
				return
			}
		}
	}
}

// QOS finds a quality of service.
func (v *Snapshot) QOS(name core.QOSName) (*core.QOS, bool) { q, ok := v.qos[name]; return q, ok }

// AllQOS lists them, by name.
func (v *Snapshot) AllQOS() []*core.QOS { return named.Sorted(v.qos) }

// Policy is every QOS and the tree of projects.
func (v *Snapshot) Policy() *core.Policy {
	p := &core.Policy{
		Defaults: core.PolicyDefaults{Project: v.defaultProject}, QOS: []core.QOS{},
		Projects: []core.Project{},
	}
	for _, q := range v.AllQOS() {
		p.QOS = append(p.QOS, *q)
	}
	for _, x := range v.Projects() {
		p.Projects = append(p.Projects, *x)
	}
	return p
}

// Reservation finds an advance reservation.
func (v *Snapshot) Reservation(name string) (*core.AdvanceReservation, bool) {
	r, ok := v.reservations[name]
	return r, ok
}

// Reservations lists them, by name.
func (v *Snapshot) Reservations() []*core.AdvanceReservation { return named.Sorted(v.reservations) }

// Run finds an open run.
func (v *Snapshot) Run(project core.ProjectName, name string) (*core.Run, bool) {
	r, ok := v.runs[runKey{project, name}]
	return r, ok
}

// Runs lists open runs by creation.
func (v *Snapshot) Runs() []*core.Run {
	return slices.SortedFunc(maps.Values(v.runs), func(a, b *core.Run) int {
		if a.Created != b.Created {
			return int(min(1, max(-1, a.Created-b.Created)))
		}
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
}

// runKey names an open run.
type runKey struct {
	project core.ProjectName
	name    string
}

// Usage is the table of meters.
func (v *Snapshot) Usage() *usage.Table { return &v.usage }

// Partitions lists partitions in config order.
func (v *Snapshot) Partitions() []core.Partition { return v.partitions }

// LicenseUse is a license and what has become of it.
type LicenseUse struct {
	core.License
	Used     int64 `json:"used"`
	Reserved int64 `json:"reserved"` // by advance reservations that go on
}

// Licenses tells what there is of each license and what jobs hold, by name. It reads all live jobs.
func (v *Snapshot) Licenses() []LicenseUse {
	if len(v.licenseTotals) == 0 {
		return nil
	}
	used, reserved := map[string]int64{}, map[string]int64{}
	for _, j := range v.jobs.All() {
		for _, l := range j.Alloc.Licenses() {
			used[l.Name] += l.Total
		}
	}
	for _, r := range v.reservations {
		if r.Start <= v.now && v.now < r.End {
			for _, l := range r.Licenses {
				reserved[l.Name] += l.Total
			}
		}
	}
	out := make([]LicenseUse, 0, len(v.licenseTotals))
	for _, name := range slices.Sorted(maps.Keys(v.licenseTotals)) {
		out = append(out, LicenseUse{core.License{Name: name, Total: v.licenseTotals[name]}, used[name], reserved[name]})
	}
	return out
}
