package sched

// What a class could do if nothing ran is another matter when nodes go down or come up, but seldom: most classes could
// spare many nodes before they could not start any more. So each is looked at again only when as many went down as it
// could spare, or when one came up and it could not start before.

// watched is which classes must be looked at again, and when.
type watched struct {
	downs int64 // nodes that went down so far
	ups   bool  // some came up just now
	due   dues
	unfit map[*class]bool // that could not start in some of their partitions
	other map[*class]bool // that are not countable: whenever nodes change
}

// due is a class that must be looked at again when so many nodes have gone down.
type due struct {
	downs int64
	class *class
}

// dues is a heap of them. Classes come and go with every job, so it is done by hand, without making anything.
type dues []due

func (d *dues) push(x due) {
	h := append(*d, x)
	for i := len(h) - 1; i > 0 && h[i].downs < h[(i-1)/2].downs; i = (i - 1) / 2 {
		h[i], h[(i-1)/2] = h[(i-1)/2], h[i]
	}
	*d = h
}

// pop takes out the first.
func (d *dues) pop() due {
	h := *d
	first, k := h[0], len(h)-1
	h[0], h[k] = h[k], due{}
	*d = h[:k]
	d.sink(0)
	return first
}

func (d dues) sink(i int) {
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

// watch notes when a class must be looked at again. It has just been.
func (p *Planner) watch(c *class) {
	w := &p.watched
	spare := int32(-1)
	for i := range c.slots {
		s := &c.slots[i]
		if s.why != nil {
			add(&w.unfit, c)
		}
		if !s.countable() {
			add(&w.other, c)
		} else if s.why == nil {
			if _, n := p.counts(s); spare < 0 || n < spare {
				spare = n
			}
		}
	}
	if at := w.downs + int64(spare) + 1; spare >= 0 && (c.due == 0 || at < c.due) {
		c.due = at
		w.due.push(due{at, c})
	}
}

func add(set *map[*class]bool, c *class) {
	if *set == nil {
		*set = map[*class]bool{}
	}
	(*set)[c] = true
}

// unwatch forgets a class whose last job left.
func (p *Planner) unwatch(c *class) {
	c.due = 0
	delete(p.watched.unfit, c)
	delete(p.watched.other, c)
	if w := &p.watched; len(w.due) > 64 && len(w.due) > 2*len(p.classes) {
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

// turned notes that a node came up or went down.
func (w *watched) turned(up bool) {
	if up {
		w.ups = true
	} else {
		w.downs++
	}
}

// reassess looks at classes again after nodes changed and moves the jobs of those whose answer is another one now.
func (p *Planner) reassess(how altered) {
	w := &p.watched
	again := map[*class]bool{}
	if how == another {
		for _, c := range p.classes {
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
		if w.ups {
			for c := range w.unfit {
				again[c] = true
			}
		}
	}
	w.ups = false
	any := false
	for c := range again {
		c.moved = false
		for i := range c.slots {
			s := &c.slots[i]
			why := p.assessAgain(s, how)
			if s.moved = false; why == s.why {
				continue
			}
			s.moved = (s.why == nil) != (why == nil)
			c.moved = c.moved || s.moved
			p.stale = p.stale || s.why != nil || why != nil
			if s.why = why; s.moved {
				s.refusal = refusal{}
				for w := range s.ways {
					s.ways[w].refusal = refusal{}
				}
			}
		}
		delete(w.unfit, c)
		p.watch(c)
		any = any || c.moved
	}
	if !any {
		return
	}
	for _, w := range p.pending {
		if w.class == nil || !w.class.moved {
			continue
		}
		for i := range w.class.slots {
			switch s := &w.class.slots[i]; {
			case !s.moved:
			case s.why == nil:
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
func (p *Planner) assessAgain(s *slot, how altered) *Why {
	if s.countable() {
		switch could, _ := p.counts(s); {
		case could && s.why == nil:
			return nil
		case !could && s.why != nil && how == upOrDown: // for the same reason, whatever it is
			return s.why
		}
	}
	return p.assess(s)
}
