package sched

import (
	"bireme.dev/bireme/internal/sched/cluster"
	"bireme.dev/bireme/internal/sched/sorted"
)

// Whether idle nodes could hold a class may change when nodes go down or come up, but seldom does: most classes can
// spare many nodes. So a class is assessed again only when as many nodes went down as it can spare, or when one came up
// and the class could not start before.

// classWatch records which classes must be assessed again, and when.
type classWatch struct {
	downs  int64                   // nodes that went down so far
	cameUp bool                    // some came up just now
	due    sorted.Heap[*classInfo] // by the value of downs at which they are assessed again
	unfit  map[*classInfo]bool     // classes that could not start in some of their partitions
	other  map[*classInfo]bool     // classes that are not countable: assessed whenever nodes change
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
		w.due.Push(at, c)
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
		w.due.Keep(func(x sorted.HeapItem[*classInfo]) bool { return x.Key == x.Value.due })
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
		for len(w.due) > 0 && w.due[0].Key <= w.downs {
			if x := w.due.Pop(); x.Key == x.Value.due {
				x.Value.due = 0
				again[x.Value] = true
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
