package cluster

import (
	"cmp"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/ledger"
	"bireme.dev/bireme/internal/sched/preempt"
	"bireme.dev/bireme/internal/sched/sorted"
)

// Jobs is the running jobs: what they hold, when they end, and who may be preempted.
type Jobs struct {
	Allocs     map[core.JobID]*ledger.Allocation
	Ends       ledger.Ends          // of allocations, and during a pass of its starts
	ArrayTasks map[core.JobID]int32 // running tasks by array

	nodes      *Nodes
	preemption *preempt.Rules             // nil: no preemption
	borrowed   map[core.JobID][]core.Lent // CPUs that jobs use of suspended jobs, by user of the CPUs
	exemptions sorted.List[exemption, *exemption]
	onNode     [][]ledger.JobOnNode // see On; filled while preemption is not nil and the nodes are numbered
}

// exemption is a time from which on a job may be preempted.
type exemption struct {
	at core.Time
	id core.JobID
}

func (e *exemption) Compare(f *exemption) int {
	return cmp.Or(cmp.Compare(e.at, f.at), cmp.Compare(e.id, f.id))
}

// NewJobs returns an empty list of jobs on these nodes.
func NewJobs(n *Nodes) *Jobs {
	return &Jobs{
		nodes: n, Allocs: map[core.JobID]*ledger.Allocation{}, ArrayTasks: map[core.JobID]int32{},
	}
}

// Add adds the allocation of a running job.
func (js *Jobs) Add(h *ledger.Allocation, j *core.Job) {
	if j.Array != nil {
		h.ArrayBase = j.Array.Base
		js.ArrayTasks[h.ArrayBase]++
	}
	for i := range h.Alloc.Nodes {
		if na := &h.Alloc.Nodes[i]; !na.Done {
			js.nodes.Ledger.ForceAllocate(na, h.Terms)
			if node := js.nodes.Ledger.Nodes[na.Node]; node != nil {
				js.nodes.NoteChanged(node)
			}
		}
	}
	js.AddEnds(h, h.End)
	js.Allocs[j.ID] = h
	js.addCandidate(h, j)
	js.Ends.Insert(ledger.AllocEnd{At: h.End, Id: j.ID, Alloc: h})
}

// Remove removes the allocation of a job. The caller releases it.
func (js *Jobs) Remove(id core.JobID) *ledger.Allocation {
	h := js.Allocs[id]
	if h == nil {
		return nil
	}
	js.Ends.Remove(ledger.AllocEnd{At: h.End, Id: id})
	js.removeCandidate(h)
	delete(js.Allocs, id)
	return h
}

// Release returns what an allocation holds to its nodes.
func (js *Jobs) Release(h *ledger.Allocation) {
	for i := range h.Alloc.Nodes {
		if na := &h.Alloc.Nodes[i]; !na.Done {
			js.nodes.Ledger.Release(na, h.Terms)
			if node := js.nodes.Ledger.Nodes[na.Node]; node != nil {
				node.RemoveEnd(h)
				js.nodes.NoteFreed(node)
			}
		}
	}
	if h.ArrayBase != 0 {
		if js.ArrayTasks[h.ArrayBase]--; js.ArrayTasks[h.ArrayBase] == 0 {
			delete(js.ArrayTasks, h.ArrayBase)
		}
	}
}

// BookOn books on a node that is new, or has new hardware, what jobs hold there.
func (js *Jobs) BookOn(node *ledger.Node) {
	for _, h := range js.Allocs {
		for i := range h.Alloc.Nodes {
			if na := &h.Alloc.Nodes[i]; na.Node == node.Record.Name && !na.Done {
				js.nodes.Ledger.ForceAllocate(na, h.Terms)
				if js.nodes.Tracking {
					node.AddEnd(ledger.End{At: h.End, Alloc: h, Index: int32(i)})
				}
			}
		}
	}
}

// AddAllEnds records on all nodes when their jobs end, after tracking was switched on.
func (js *Jobs) AddAllEnds() {
	for _, h := range js.Allocs {
		js.AddEnds(h, h.End)
	}
}

// AddEnds records on a job's nodes when it ends.
func (js *Jobs) AddEnds(h *ledger.Allocation, end core.Time) {
	if !js.nodes.Tracking {
		return
	}
	for i := range h.Alloc.Nodes {
		if na := &h.Alloc.Nodes[i]; !na.Done {
			if node := js.nodes.Ledger.Nodes[na.Node]; node != nil {
				node.AddEnd(ledger.End{At: end, Alloc: h, Index: int32(i)})
			}
		}
	}
}

// RemoveEnds undoes AddEnds.
func (js *Jobs) RemoveEnds(h *ledger.Allocation) {
	for _, node := range js.nodes.Ledger.NodesOf(h) {
		if node != nil {
			node.RemoveEnd(h)
			js.nodes.NoteChanged(node)
		}
	}
}

// MoveCPUs returns a job's CPUs to the ledger, or takes them again. The job keeps memory and GRES.
func (js *Jobs) MoveCPUs(h *ledger.Allocation, back bool) {
	for i := range h.Alloc.Nodes {
		na := &h.Alloc.Nodes[i]
		if na.Done {
			continue
		}
		part := core.NodeAlloc{Node: na.Node, CPUs: na.CPUs, Cores: na.Cores}
		if back {
			js.nodes.Ledger.Release(&part, h.Terms)
		} else {
			js.nodes.Ledger.ForceAllocate(&part, h.Terms)
		}
		if node := js.nodes.Ledger.Nodes[na.Node]; node != nil {
			js.nodes.NoteChanged(node)
		}
	}
}

// SetPreemption changes the preemption rules; nil: no preemption.
func (js *Jobs) SetPreemption(rules *preempt.Rules) {
	for _, h := range js.Allocs {
		js.removeCandidate(h)
	}
	js.preemption, js.exemptions, js.onNode = rules, sorted.List[exemption, *exemption]{}, nil
	if rules != nil {
		js.onNode = make([][]ledger.JobOnNode, len(js.nodes.Ledger.Order))
	}
	for _, h := range js.Allocs {
		js.addCandidate(h, h.Job)
	}
}

// addCandidate records an allocation as a possible victim.
func (js *Jobs) addCandidate(h *ledger.Allocation, j *core.Job) {
	h.Id, h.Borrowed = j.ID, js.borrowed[j.ID]
	if h.Ended = alloc.IsOver(j); j.Parked() && !h.Ended {
		h.Lent = j.Pushed.Lent
		js.addLent(h.Lent)
	}
	if js.preemption == nil {
		return
	}
	if h.Victim = js.preemption.Candidate(j); h.Victim != nil && h.Victim.ExemptUntil > 0 {
		js.exemptions.Insert(exemption{h.Victim.ExemptUntil, h.Id})
	}
	for i := range h.Alloc.Nodes {
		if !h.Alloc.Nodes[i].Done {
			js.addOnNode(h, i)
		}
	}
}

// removeCandidate undoes addCandidate.
func (js *Jobs) removeCandidate(h *ledger.Allocation) {
	js.removeLent(h.Lent)
	h.Lent = nil
	if h.Victim != nil && h.Victim.ExemptUntil > 0 {
		js.exemptions.Remove(exemption{h.Victim.ExemptUntil, h.Id})
	}
	h.Victim = nil
	if js.preemption == nil {
		return
	}
	if !js.nodes.areNumbered() { // Renumber lists all jobs again
		return
	}
	for i := range h.Alloc.Nodes {
		if node := js.nodes.Ledger.Nodes[h.Alloc.Nodes[i].Node]; node != nil {
			on := &js.onNode[node.Index]
			*on = slices.DeleteFunc(*on, func(o ledger.JobOnNode) bool { return o.Alloc == h })
		}
	}
}

// On lists the jobs that hold something of a node, if there is preemption. The nodes are numbered.
func (js *Jobs) On(node *ledger.Node) []ledger.JobOnNode {
	if int(node.Index) >= len(js.onNode) {
		return nil
	}
	return js.onNode[node.Index]
}

func (js *Jobs) addOnNode(h *ledger.Allocation, i int) {
	if js.preemption == nil || !js.nodes.areNumbered() {
		return
	}
	if node := js.nodes.Ledger.Nodes[h.Alloc.Nodes[i].Node]; node != nil {
		js.onNode[node.Index] = append(js.onNode[node.Index], ledger.JobOnNode{Alloc: h, Index: i})
	}
}

// Renumber lists the jobs of each node again after the nodes were numbered.
func (js *Jobs) Renumber() {
	if js.onNode = nil; js.preemption == nil {
		return
	}
	js.onNode = make([][]ledger.JobOnNode, len(js.nodes.Ledger.Order))
	for _, h := range js.Allocs {
		for i := range h.Alloc.Nodes {
			if !h.Alloc.Nodes[i].Done {
				js.addOnNode(h, i)
			}
		}
	}
}

func (js *Jobs) addLent(lent []core.Lent) {
	for _, l := range lent {
		if js.borrowed == nil {
			js.borrowed = map[core.JobID][]core.Lent{}
		}
		js.setBorrowed(l.To, append(slices.Clip(js.borrowed[l.To]), l))
	}
}

func (js *Jobs) setBorrowed(id core.JobID, list []core.Lent) {
	if js.borrowed[id] = list; len(list) == 0 {
		delete(js.borrowed, id)
		list = nil
	}
	if h := js.Allocs[id]; h != nil {
		h.Borrowed = list
	}
}

func (js *Jobs) removeLent(lent []core.Lent) {
	for _, l := range lent {
		same := func(o core.Lent) bool { return o.Node == l.Node && o.CPUs == l.CPUs && slices.Equal(o.Cores, l.Cores) }
		list := slices.Clone(js.borrowed[l.To])
		if i := slices.IndexFunc(list, same); i >= 0 {
			list = slices.Delete(list, i, i+1)
		}
		js.setBorrowed(l.To, list)
	}
}

// NextVictimTime returns when time alone may let a job find victims; 0: never.
func (js *Jobs) NextVictimTime(now core.Time) core.Time {
	at := js.NextExemption(now)
	if chunk, i, _ := js.Ends.Find(&ledger.AllocEnd{At: now + alloc.OverdueDelay + 1}); chunk < len(js.Ends.Chunks) {
		if end := js.Ends.Chunks[chunk][i].At; end < alloc.Never && (at == 0 || end-alloc.OverdueDelay < at) {
			at = end - alloc.OverdueDelay
		}
	}
	return at
}

// NextExemption returns when the next exempt job may be preempted; 0: there is none.
func (js *Jobs) NextExemption(now core.Time) core.Time {
	chunk, at, _ := js.exemptions.Find(&exemption{at: now + 1})
	if chunk == len(js.exemptions.Chunks) {
		return 0
	}
	return js.exemptions.Chunks[chunk][at].at
}
