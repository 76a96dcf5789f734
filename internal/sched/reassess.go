package sched

import "bireme.dev/bireme/internal/sched/cluster"

// Whether idle nodes could hold a class may change when nodes go down or come up, but seldom does: most classes can
// spare many nodes. So a class is assessed again only when as many nodes went down as it can spare, or when one came up
// and the class could not start before.

// classWatch records which classes must be assessed again, and when.
type classWatch struct {
	downs  int64 // nodes that went down so far
	cameUp bool  // some came up just now
	due    dueHeap
	unfit  map[*classInfo]bool // classes that could not start in some of their partitions
	other  map[*classInfo]bool // classes that are not countable: assessed whenever nodes change
}

// classDue is a class to assess again when so many nodes have gone down.
type classDue struct {
	downs int64
	class *classInfo
}

// dueHeap is a heap by downs. Classes come and go with every job, so it is written without interfaces, which allocate.
type dueHeap []classDue

func (d *dueHeap) push(x classDue) {
	h := append(*d, x)
	for i := len(h) - 1; i > 0 && h[i].downs < h[(i-1)/2].downs; i = (i - 1) / 2 {
		h[i], h[(i-1)/2] = h[(i-1)/2], h[i]
	}
	*d = h
}

// pop takes out the first.
func (d *dueHeap) pop() classDue {
	h := *d
	first, k := h[0], len(h)-1
	h[0], h[k] = h[k], classDue{}
	*d = h[:k]
	d.sink(0)
	return first
}

func (d dueHeap) sink(i int) {
	for {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(d); c++ {
			if d[c].downs < d[least].downs {
				least = c
			}
		}
		if least == i {
			return
		}
		d[i], d[least] = d[least], d[i]
		i = least
	}
}

// watchClass records when a class that was just assessed must be assessed again.
func (cs *classSet) watchClass(c *classInfo) {
	w := &cs.watch
	spare := int32(-1)
	for i := range c.partitions {
		s := &c.partitions[i]
		if s.reason != nil {
			addToSet(&w.unfit, c)
		}
		if !s.isCountable() {
			addToSet(&w.other, c)
		} else if s.reason == nil {
			if _, n := cs.nodes.KindsCouldHold(s.Set, &s.req); spare < 0 || n < spare {
				spare = n
			}
		}
	}
	if at := w.downs + int64(spare) + 1; spare >= 0 && (c.due == 0 || at < c.due) {
		c.due = at
		w.due.push(classDue{at, c})
	}
}

func addToSet(set *map[*classInfo]bool, c *classInfo) {
	if *set == nil {
		*set = map[*classInfo]bool{}
	}
	(*set)[c] = true
}

// unwatchClass removes a class whose last job left.
func (cs *classSet) unwatchClass(c *classInfo) {
	c.due = 0
	delete(cs.watch.unfit, c)
	delete(cs.watch.other, c)
	if w := &cs.watch; len(w.due) > 64 && len(w.due) > 2*len(cs.byKey) {
		kept := w.due[:0]
		for _, d := range w.due {
			if d.downs == d.class.due {
				kept = append(kept, d)
			}
		}
		clear(w.due[len(kept):])
		w.due = kept
		for i := len(kept)/2 - 1; i >= 0; i-- {
			w.due.sink(i)
		}
	}
}

// noteUpDown records that a node came up or went down.
func (w *classWatch) noteUpDown(up bool) {
	if up {
		w.cameUp = true
	} else {
		w.downs++
	}
}

// reassess assesses classes again after nodes changed, and enqueues or dequeues the jobs of those whose result changed.
func (p *Planner) reassess(how cluster.NodeChange) {
	w := &p.classes.watch
	again := map[*classInfo]bool{}
	if how == cluster.HardwareOrNew {
		for _, c := range p.classes.byKey {
			again[c], c.due = true, 0
		}
		w.due, w.unfit, w.other = w.due[:0], nil, nil
	} else {
		for len(w.due) > 0 && w.due[0].downs <= w.downs {
			if d := w.due.pop(); d.downs == d.class.due {
				d.class.due = 0
				again[d.class] = true
			}
		}
		for c := range w.other {
			again[c] = true
		}
		if w.cameUp {
			for c := range w.unfit {
				again[c] = true
			}
		}
	}
	w.cameUp = false
	any := false
	for c := range again {
		c.moved = false
		for i := range c.partitions {
			s := &c.partitions[i]
			why := p.classes.assessAgain(s, how)
			if s.moved = false; why == s.reason {
				continue
			}
			s.moved = (s.reason == nil) != (why == nil)
			c.moved = c.moved || s.moved
			p.classes.reasonsStale = p.classes.reasonsStale || s.reason != nil || why != nil
			if s.reason = why; s.moved {
				s.refusal = refusal{}
				for w := range s.options {
					s.options[w].refusal = refusal{}
				}
			}
		}
		delete(w.unfit, c)
		p.classes.watchClass(c)
		any = any || c.moved
	}
	if !any {
		return
	}
	for _, w := range p.pending {
		if w.class == nil || !w.class.moved {
			continue
		}
		for i := range w.class.partitions {
			switch s := &w.class.partitions[i]; {
			case !s.moved:
			case s.reason == nil:
				p.enqueue(s, w.job)
			default:
				p.dequeue(s, w.job)
			}
		}
	}
	for c := range again {
		c.moved = false
	}
}

// assessAgain is assess for a class of which only nodes changed.
func (cs *classSet) assessAgain(s *partitionClass, how cluster.NodeChange) *Reason {
	if s.isCountable() {
		switch could, _ := cs.nodes.KindsCouldHold(s.Set, &s.req); {
		case could && s.reason == nil:
			return nil
		case !could && s.reason != nil && how == cluster.UpOrDown: // for the same reason, whatever it is
			return s.reason
		}
	}
	return cs.assess(s)
}

// isCountable reports whether the number of nodes of each kind decides whether the class could run.
func (s *partitionClass) isCountable() bool {
	return cluster.IsCountable(&s.req) && s.Advance == nil && len(s.options) == 0 && !s.namesAdvance
}
