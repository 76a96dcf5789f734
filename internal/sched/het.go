package sched

import (
	"cmp"
	"fmt"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/ledger"
)

// hetJob is a het job whose components are pending. The components wait as one: when all of them may start, the first
// one is in its queues for all of them with its own priority, and all components are placed at the same time or none
// is.
type hetJob struct {
	components []*core.Job // by offset; nil: not pending, or not eligible
	present    int
	classes    []*classInfo // by offset; nil until all components are present
	order      []int        // in which they are placed: those with the fewest nodes to choose from first
	eligible   core.Time    // if not 0, the het job waits for this time
	queued     bool
	reason     *Reason // why it is in no queue though all are there
}

// hetJobs is the pending het jobs of a planner.
type hetJobs struct {
	planner *Planner
	byLead  map[core.JobID]*hetJob // by the id of the first component; nil until there is one
}

// maxHetComponents bounds what a record may claim; admission allows fewer.
const maxHetComponents = 1 << 10

// hetRefOf returns the het job that j is a component of, nil if it is of none.
func hetRefOf(j *core.Job) *core.HetRef {
	if x := j.Spec.Extra; x != nil {
		return x.Het
	}
	return nil
}

// hasComponent reports whether ref names a component of this het job. A component whose numbering does not agree with
// the others has no place, and so never starts.
func (set *hetJob) hasComponent(ref *core.HetRef) bool {
	return int(ref.Count) == len(set.components) && ref.Offset >= 0 && ref.Offset < ref.Count
}

// apart reports whether no two components may share a node, as in Slurm.
func (set *hetJob) apart() bool { return set.components[len(set.components)-1].Spec.More().HetApart }

// componentNodes are nodes that components of a het job have got so far; others of that job do not get them.
type componentNodes []*ledger.Node

func (list *componentNodes) add(node *ledger.Node) {
	if !node.OtherComponent {
		node.OtherComponent = true
		*list = append(*list, node)
	}
}

// clear lets all components have the nodes again.
func (list *componentNodes) clear() {
	for _, node := range *list {
		node.OtherComponent = false
	}
	*list = (*list)[:0]
}

// add records a pending component and enqueues its het job once all components are there.
func (h *hetJobs) add(j *core.Job, ref *core.HetRef) {
	h.planner.pending[j.ID] = pendingJob{job: j}
	set := h.byLead[ref.Lead]
	if set == nil {
		if ref.Count < 1 || ref.Count > maxHetComponents || ref.Offset < 0 || ref.Offset >= ref.Count {
			return
		}
		set = &hetJob{components: make([]*core.Job, ref.Count)}
		if h.byLead == nil {
			h.byLead = map[core.JobID]*hetJob{}
		}
		h.byLead[ref.Lead] = set
	}
	if !set.hasComponent(ref) || set.components[ref.Offset] != nil || ref.Offset == 0 && j.ID != ref.Lead {
		return
	}
	set.components[ref.Offset] = j
	if set.present++; set.present == len(set.components) {
		h.enqueueWhenComplete(set)
	}
}

// remove forgets a pending component; its het job leaves the queues.
func (h *hetJobs) remove(j *core.Job, ref *core.HetRef) {
	set := h.byLead[ref.Lead]
	delete(h.planner.pending, j.ID)
	if set == nil || !set.hasComponent(ref) || set.components[ref.Offset] == nil || set.components[ref.Offset].ID != j.ID {
		return
	}
	h.dequeue(set)
	delete(h.planner.pending, j.ID)
	set.components[ref.Offset] = nil
	if set.present--; set.present == 0 {
		delete(h.byLead, ref.Lead)
	}
}

// enqueueWhenComplete enqueues a het job whose components are all pending, or puts it on the list of jobs that wait for
// their begin time.
func (h *hetJobs) enqueueWhenComplete(set *hetJob) {
	if set.present < len(set.components) || set.eligible != 0 || set.classes != nil {
		return
	}
	for _, j := range set.components {
		if j.Eligible > j.Submit {
			set.eligible = max(set.eligible, j.Eligible)
		}
	}
	if set.eligible != 0 {
		h.planner.ineligible.Insert(queueEntry{job: set.components[0], since: set.eligible})
		return
	}
	h.enqueue(set)
}

// enqueue puts an eligible het job into the queues of its first component, unless the nodes that are up could never
// hold it.
func (h *hetJobs) enqueue(set *hetJob) {
	set.eligible, set.reason = 0, nil
	for k, j := range set.components {
		c := h.planner.classes.join(j, 0)
		set.classes = append(set.classes, c)
		h.planner.pending[j.ID] = pendingJob{job: j, class: c}
		if w := c.reason(); w != nil && set.reason == nil {
			set.reason = &Reason{Code: w.Code, Text: fmt.Sprintf("component %d+%d: %s", set.components[0].ID, k, w.Text)}
		}
	}
	if set.reason == nil {
		h.sortComponents(set)
		if !h.fitsIdle(set) {
			set.reason = &Reason{
				Code: core.ReasonBadConstraints,
				Text: "the nodes that are up could hold each of its components, but not all at once",
			}
		}
	}
	if set.reason != nil {
		return
	}
	set.queued = true
	lead := set.classes[0]
	for i := range lead.partitions {
		if s := &lead.partitions[i]; s.reason == nil {
			h.planner.enqueue(s, set.components[0])
		}
	}
}

// dequeue takes a het job out of the queues and its components out of their classes.
func (h *hetJobs) dequeue(set *hetJob) {
	if set.eligible != 0 {
		h.planner.ineligible.Remove(queueEntry{job: set.components[0], since: set.eligible})
		set.eligible = 0
	}
	if set.queued {
		lead := set.classes[0]
		for i := range lead.partitions {
			if s := &lead.partitions[i]; s.reason == nil {
				h.planner.dequeue(s, set.components[0])
			}
		}
		set.queued = false
	}
	for k, c := range set.classes {
		h.planner.classes.leave(c, set.components[k])
		h.planner.pending[set.components[k].ID] = pendingJob{job: set.components[k]}
	}
	set.classes, set.reason = nil, nil
}

// each calls do for every het job, in order of their first components' ids.
func (h *hetJobs) each(do func(*hetJob)) {
	leads := make([]core.JobID, 0, len(h.byLead))
	for id := range h.byLead {
		leads = append(leads, id)
	}
	slices.Sort(leads)
	for _, id := range leads {
		do(h.byLead[id])
	}
}

// sortComponents decides the order in which components are placed: those with the fewest candidate nodes first, and
// among equals the largest first.
func (h *hetJobs) sortComponents(set *hetJob) {
	choice, size := make([]int, len(set.components)), make([]int64, len(set.components))
	set.order = set.order[:0]
	for k, c := range set.classes {
		set.order = append(set.order, k)
		for i := range c.partitions {
			s := &c.partitions[i]
			if s.reason != nil {
				continue
			}
			size[k] = max(size[k], int64(s.req.Tasks)*int64(s.req.CpusPerTask))
			for _, node := range h.planner.nodes.Of(&s.Candidates) {
				if s.req.Accepts(node, &ledger.View{}) && s.req.TasksIn(node, &node.Capacity) > 0 {
					choice[k]++
				}
			}
		}
	}
	slices.SortStableFunc(set.order, func(a, b int) int {
		return cmp.Or(cmp.Compare(choice[a], choice[b]), cmp.Compare(size[b], size[a]))
	})
}

// fitsIdle reports whether the nodes, if nothing ran on them, could hold all components at once.
func (h *hetJobs) fitsIdle(set *hetJob) bool {
	type part struct {
		a   *ledger.Node
		use ledger.Resources
	}
	var taken []part
	var apart componentNodes
	defer func() {
		apart.clear()
		for i := range taken {
			taken[i].a.Capacity.Subtract(taken[i].use.Negated())
		}
	}()
	for _, k := range set.order {
		fits := false
		for i := range set.classes[k].partitions {
			s := &set.classes[k].partitions[i]
			if s.reason != nil {
				continue
			}
			if s.namesAdvance || len(s.options) > 0 { // what reservations leave is not looked at here
				fits = true
				break
			}
			picks := s.req.Choose(ledger.View{Nodes: h.planner.nodes.Of(&s.Candidates), IfIdle: true}, h.planner.buffer.Choices)
			if picks == nil {
				continue
			}
			h.planner.buffer.Choices, fits = picks, true
			for _, choice := range picks {
				if set.apart() {
					apart.add(choice.Node)
				}
				use := s.req.Usage(choice.Node, choice.Tasks, &choice.Node.Capacity)
				choice.Node.Capacity.Subtract(&use)
				taken = append(taken, part{choice.Node, use})
			}
			break
		}
		if !fits {
			return false
		}
	}
	return true
}

// reasons returns why het jobs that are in no queue wait, by their first components' ids.
func (h *hetJobs) reasons() (whys map[core.JobID]Reason) {
	for lead, set := range h.byLead {
		w := set.reason
		if w == nil && set.present < len(set.components) {
			w = &Reason{Text: "it waits for its other components, which may not start"}
		}
		if w != nil {
			if whys == nil {
				whys = map[core.JobID]Reason{}
			}
			whys[lead] = *w
		}
	}
	return whys
}

// hetReason returns why a component waits: for its first component's turn, or for the other components.
func (p *Plan) hetReason(j *core.Job, ref *core.HetRef) (Reason, bool) {
	if w, ok := p.hetReasons[ref.Lead]; ok {
		return w, true
	}
	if ref.Offset == 0 {
		return Reason{}, false
	}
	w := Reason{Code: core.ReasonPriority, Text: fmt.Sprintf("it starts with component %d+0, for whose turn it waits",
		ref.Lead)}
	for _, head := range p.heads {
		if head == ref.Lead {
			w = Reason{
				Code: core.ReasonResources,
				Text: fmt.Sprintf("it starts with component %d+0, which is first in its partition: they wait for "+
					"resources that other jobs hold", ref.Lead),
			}
		}
	}
	w.Expected, w.Estimate, _ = p.Expected(ref.Lead)
	return w, true
}
