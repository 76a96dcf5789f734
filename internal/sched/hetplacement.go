package sched

import (
	"cmp"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/advance"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/ledger"
)

// hetPlacement places the components of het jobs in a pass: all at the same time, or none.
type hetPlacement struct{ ps *pass }

// classesOf returns the partition classes in which component k may be placed. For the first component it is the one
// whose queue is being walked.
func (set *hetJob) classesOf(k int, class *partitionClass) []*partitionClass {
	if k == 0 {
		return []*partitionClass{class}
	}
	var out []*partitionClass
	for i := range set.classes[k].partitions {
		if s := &set.classes[k].partitions[i]; s.reason == nil {
			out = append(out, s)
		}
	}
	return out
}

// tryStart starts all components of a het job or none. Like pass.tryStart it returns false if the jobs behind it in the
// queue must wait for it.
func (h hetPlacement) tryStart(class *partitionClass, lead *core.Job) bool {
	set := h.ps.p.hets.byLead[lead.ID]
	if h.ps.startedTasks[lead.ID] > 0 {
		return true
	}
	slots := make([][]*partitionClass, len(set.components))
	for k, j := range set.components {
		slots[k] = set.classesOf(k, class)
		if h.ps.isLimitedNow(slots[k][0], j) {
			return true
		}
	}
	for _, k := range set.order { // cheaper than placing some and undoing it
		if !h.couldStartAlone(slots[k], set.components[k]) {
			return false
		}
	}
	var found []savedRefusal
	for _, list := range slots {
		for _, s := range list {
			if slices.ContainsFunc(found, func(v savedRefusal) bool { return v.class == s }) {
				continue
			}
			found = append(found, savedRefusal{s, s.refusedEpoch, s.refusedFrom, s.refusal})
			for i := range s.options {
				w := &s.options[i]
				found = append(found, savedRefusal{w, w.refusedEpoch, w.refusedFrom, w.refusal})
			}
		}
	}
	taken, starts := len(h.ps.started), len(h.ps.plan.Starts)
	h.ps.placingHet = true
	var apart componentNodes
	defer func() {
		apart.clear()
		h.ps.placingHet = false
	}()
	for _, k := range set.order {
		ok, over := false, false
		for _, s := range slots[k] {
			if ok = h.ps.place(s, set.components[k], 0); ok {
				break
			}
			over = over || h.ps.overLimit
		}
		if !ok {
			h.rollback(taken)
			for i := range found {
				h.restoreRefusal(&found[i])
			}
			h.ps.plan.Starts, h.ps.overLimit = h.ps.plan.Starts[:starts], over
			return over
		}
		if set.apart() {
			placed := h.ps.started[len(h.ps.started)-1].Alloc
			for _, node := range h.ps.p.ledger.NodesOf(placed) {
				apart.add(node)
			}
		}
	}
	if len(apart) > 0 { // a refusal may be due to nodes of other components
		for i := range found {
			h.restoreRefusal(&found[i])
		}
	}
	h.ps.plan.Starts = append(h.ps.plan.Starts[:starts], joinStarts(h.ps.plan.Starts[starts:], lead.ID))
	if len(h.ps.p.partitions) > 1 || h.ps.p.cfg.Rule == core.RuleEASYSJBF {
		for _, j := range set.components {
			h.ps.dropReservationsOf(j.ID)
		}
	}
	return true
}

// joinStarts merges the components' starts into one: the first component's, with the others in Rest, by id.
func joinStarts(parts []Start, lead core.JobID) Start {
	rest := slices.SortedFunc(slices.Values(parts), func(a, b Start) int { return cmp.Compare(a.Job, b.Job) })
	at := slices.IndexFunc(rest, func(s Start) bool { return s.Job == lead })
	first := rest[at]
	first.Rest = slices.Delete(rest, at, at+1)
	return first
}

// couldStartAlone reports whether a component could start if the others took nothing.
func (h hetPlacement) couldStartAlone(slots []*partitionClass, j *core.Job) bool {
	for _, s := range slots {
		if len(s.options) > 0 {
			return true // it is looked at when it is given a place
		}
		end, least, ok := advance.EndTimes(j.Spec, s.Advance, h.ps.plan.Now)
		if !ok || h.ps.p.refusals.isRefused(s, least) ||
			s.licenses != nil && h.ps.licensesFor(s, h.ps.plan.Now, least) == nil {
			continue
		}
		picks, _, few := h.ps.chooseNow(s, end, least)
		switch {
		case picks != nil:
			h.ps.p.buffer.Choices = picks
			return true
		case few:
			h.ps.p.refusals.recordOnFreed(s, least)
		default:
			h.ps.p.refusals.record(s, least)
		}
	}
	return false
}

// savedRefusal is the refusal of a class as it was before the components of a het job were placed.
type savedRefusal struct {
	class   *partitionClass
	epoch   int64
	from    core.Time
	refusal refusal
}

// restoreRefusal undoes refusals that were found only because other components of the het job held resources.
func (h hetPlacement) restoreRefusal(v *savedRefusal) {
	s, now := v.class, h.ps.p.refusals.epoch
	if s.refusedEpoch == now && s.refusedFrom == 0 && (v.epoch != now || v.from != 0) && s.members.Len > 0 {
		s.part.deadClasses--
	}
	s.refusedEpoch, s.refusedFrom, s.refusal = v.epoch, v.from, v.refusal
}

// maxHetTries is how many start times are tried for a het job before the one at which everything that runs has ended.
const maxHetTries = 100

// reserve finds the earliest time at which all components can start together and reserves their nodes from then on.
// Components are reserved in order; when one can start only later than those before it, the search begins again at that
// later time.
func (h hetPlacement) reserve(class *partitionClass, lead *core.Job, promise bool) {
	set := h.ps.p.hets.byLead[lead.ID]
	n, from := len(h.ps.p.reserved.List), h.ps.plan.Now
	var apart componentNodes
	defer func() {
		apart.clear()
		h.ps.notBefore = 0
	}()
	for try := 0; ; try++ {
		at, all := from, true
		apart.clear()
		for i, k := range set.order {
			h.ps.notBefore = at
			r := h.reserveComponent(set.classesOf(k, class), set.components[k])
			if r == nil {
				h.ps.p.reserved.Cut(n)
				return
			}
			if all = i == 0 || r.Start == at; !all {
				from = r.Start
				break
			}
			at = r.Start
			if set.apart() {
				for _, node := range r.Nodes {
					apart.add(node)
				}
			}
		}
		if all {
			break
		}
		h.ps.p.reserved.Cut(n)
		switch {
		case try == maxHetTries:
			from = max(from, h.lastEnd())
		case try > maxHetTries:
			return
		}
	}
	if promise {
		for i := n; i < len(h.ps.p.reserved.List); i++ {
			h.ps.plan.addReservation(h.ps.p.reserved.List[i])
		}
	}
}

// reserveComponent reserves nodes for one component in the partition where it can start first.
func (h hetPlacement) reserveComponent(slots []*partitionClass, j *core.Job) *ledger.Reservation {
	best := slots[0]
	if len(slots) > 1 {
		first := alloc.Never
		for _, s := range slots {
			if len(s.options) > 0 {
				if s = h.ps.earliestOption(s, j); s == nil {
					continue
				}
			}
			req := h.ps.startRequest(s, j)
			if at, ok := h.ps.p.finder.Start(req); ok && at < first {
				best, first = s, at
			}
		}
	}
	return h.ps.reserveOne(best, j)
}

// rollback releases what the pass placed last, down to the first n starts.
func (h hetPlacement) rollback(n int) {
	p := h.ps.p
	if len(h.ps.started) == n {
		return
	}
	for i := len(h.ps.started) - 1; i >= n; i-- {
		e := h.ps.started[i]
		p.reserved.Raise(e.Alloc, e.At)
		for k := range e.Alloc.Alloc.Nodes {
			if node := p.ledger.Nodes[e.Alloc.Alloc.Nodes[k].Node]; node != nil && node.PartlyReserved {
				node.AdvanceJobs = node.AdvanceJobs[:len(node.AdvanceJobs)-1]
			}
		}
		p.jobs.Ends.Remove(e)
		p.release(e.Alloc)
		delete(h.ps.startedTasks, e.Id)
	}
	h.ps.started = h.ps.started[:n]
	p.licenses.ForgetHolders()
}

// lastEnd returns when everything that runs or is reserved, and ever ends, has ended.
func (h hetPlacement) lastEnd() (t core.Time) {
	for w := (ledger.EndCursor{List: &h.ps.p.jobs.Ends}); w.Current() != nil; w.Next() {
		if e := w.Current(); e.At < alloc.Never {
			t = max(t, e.At)
		}
	}
	for i := range h.ps.p.reserved.List {
		if r := h.ps.p.reserved.List[i]; r.End < alloc.Never {
			t = max(t, r.End)
		}
	}
	return max(t, h.ps.plan.Now+alloc.OverdueDelay)
}
