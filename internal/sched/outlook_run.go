package sched

import (
	"slices"

	"bireme.dev/bireme/internal/core"
)

// run does a little of the work and tells how much, and whether it was the last.
func (o *outlook) run(f *Forecast) (cost int, over bool) {
	const few = 64
	if !o.settled {
		return o.settle(few), false
	}
	for i := 0; i < few && o.next < len(o.waiting) && o.dead < o.live && cost < 1000; i++ {
		cost += o.try(f)
	}
	if o.next < len(o.waiting) && o.dead < o.live {
		return cost, false
	}
	return cost + 1, !o.advance()
}

// settle frees what has ended.
func (o *outlook) settle(few int) (cost int) {
	for range few {
		e := (&walk[outlookEnd, *outlookEnd]{q: &o.ends}).head()
		if e == nil || e.at > o.at+o.span/2 { // to the nearest event: on average that is right
			o.settled = true
			break
		}
		o.book(e, 1)
		o.giveBack(e.back)
		o.arrays[e.array].running -= e.tasks
		o.ends.remove(*e)
		cost += 20
	}
	n := 0
	for n < len(o.later) && o.laterAt[n] <= o.at {
		o.ripe(o.later[n])
		n++
	}
	o.later, o.laterAt = o.later[n:], o.laterAt[n:]
	return cost + 1
}

// advance goes to the next event; false if there is none.
func (o *outlook) advance() bool {
	if o.gone > len(o.waiting)/4 {
		o.waiting = slices.DeleteFunc(o.waiting, func(j outlookJob) bool { return j.class < 0 })
		o.gone = 0
	}
	t := never
	if e := (&walk[outlookEnd, *outlookEnd]{q: &o.ends}).head(); e != nil {
		t = e.at
	}
	if len(o.laterAt) > 0 {
		t = min(t, o.laterAt[0])
	}
	for len(o.edges) > 0 && o.edges[0] <= o.at {
		o.edges = o.edges[1:]
	}
	if len(o.edges) > 0 {
		t = min(t, o.edges[0])
	}
	if t == never || len(o.waiting)+len(o.later) == 0 {
		return false
	}
	o.at = max(t, o.at+o.span)
	if o.events++; o.events > outlookExact {
		o.span = (o.at - o.now) / outlookGrain
	}
	o.settled, o.next, o.dead = false, 0, 0
	o.claims, o.lefts = o.claims[:0], o.lefts[:0]
	return true
}

// try starts the next job, or as many tasks of an array as can be, if it fits and is in no reserved job's way.
func (o *outlook) try(f *Forecast) (cost int) {
	j := &o.waiting[o.next]
	o.next++
	if j.class < 0 {
		return 1
	}
	c := &o.classes[j.class]
	head := &o.heads[c.lane]
	if c.event == o.events && j.length >= c.least || o.fcfs && head.event == o.events {
		return 1
	}
	tight := false
	for tries := 0; ; tries++ {
		if o.bound(j, c) && (tries == 16 || !o.allows(j, c)) { // of an array, so many at a time will do
			return cost + 5
		}
		want := int64(1)
		a := &o.arrays[j.array]
		if j.array != 0 {
			if want = a.left; a.most > 0 {
				want = min(want, a.most-a.running)
			}
			if want <= 0 {
				return cost + 2
			}
			if c.wide || o.bound(j, c) {
				want = 1
			}
		}
		var got int64
		var n int
		if got, tight, n = o.fit(c, j.length, want); got > 0 {
			n += o.start(j, c, got)
			f.tellFirst(j.id, o.at)
			a.left -= got
			a.running += got
			if j.array == 0 || a.left <= 0 {
				o.started(j, c)
				return cost + n
			}
		}
		if cost += n; got < want {
			break
		}
	}
	if tight {
		c.event, c.least = o.events, 0
		o.dead++
	} else if c.event != o.events || j.length < c.least {
		c.event, c.least = o.events, max(1, j.length)
	}
	if head.event != o.events {
		cost += o.reserve(c.lane, c, j.length)
	}
	return cost
}

// started takes a job that has started whole out of those that wait.
func (o *outlook) started(j *outlookJob, c *outlookClass) {
	j.class = -1
	o.gone++
	if c.jobs--; c.jobs == 0 {
		o.live--
		if c.event == o.events && c.least == 0 {
			o.dead--
		}
	}
}

// part is what of its needs, in 1/fraction, a job of a length takes for the step of this event.
func (o *outlook) part(length core.Time) int64 {
	if length >= o.span {
		return fraction
	}
	return max(1, int64(length)*fraction/int64(o.span))
}

// upTo is how much room at most there is for a class, by the CPUs that are free; it costs next to nothing.
func (o *outlook) upTo(c *outlookClass, num int64) (tasks int64) {
	for k := range c.holds {
		h := &c.holds[k]
		w := &o.pools[h.pool]
		cpus := max(1, o.uses[h.use]*num/fraction)
		if at := (cpus+fraction-1)/fraction - 1; at < int64(len(w.above)) {
			n := int64(w.above[at])
			if !c.wide {
				n *= int64(w.rep.node.Hardware.CPUs) * fraction / cpus
			}
			tasks += n * h.tasks
		}
	}
	return tasks
}

// fit tells how many copies of a job could start; picks has where. If it is what is free that there is too little of, not
// what is left beside reserved jobs, it is tight.
func (o *outlook) fit(c *outlookClass, length core.Time, want int64) (got int64, tight bool, cost int) {
	num := o.part(length)
	if o.upTo(c, num) < c.tasks {
		return 0, true, 2 * len(c.holds)
	}
	o.picks = o.picks[:0]
	tasks, all, spared := int64(0), want*c.tasks, false
	end := after(o.at, length)
	for k := range c.holds {
		if w := &o.pools[c.holds[k].pool]; len(w.books) > 0 && !o.open(c, w, o.at, end) {
			spared = true // a shorter one may fit
			continue
		}
		found, kept, n := o.pick(c, k, num, all-tasks, end)
		tasks += found
		spared = spared || kept
		if cost += n; tasks >= all {
			break
		}
	}
	return min(want, tasks/c.tasks), !spared, cost + 10*len(o.picks)
}

// pick finds nodes of a pool for so many tasks that end by a moment, the first that have room, and tells how many it
// found, whether it left out what is kept for others, and how much work that was.
func (o *outlook) pick(c *outlookClass, k int, num, want int64, end core.Time) (tasks int64, kept bool, cost int) {
	h := &c.holds[k]
	w := &o.pools[h.pool]
	use := o.uses[h.use : int(h.use)+w.width]
	cpus := max(1, use[0]*num/fraction)
	for b := 0; b*poolBlock < w.size; b++ {
		cost++
		if room(w.most[b*w.width:(b+1)*w.width], use, 1, num) == 0 {
			continue
		}
		cost += poolBlock
		for i := b * poolBlock; i < min((b+1)*poolBlock, w.size); i++ {
			if w.free[i*w.width] < cpus {
				continue
			}
			most := (want - tasks + h.tasks - 1) / h.tasks
			if c.wide {
				most = 1
			}
			most = room(w.free[i*w.width:(i+1)*w.width], use, most, num)
			if most > 0 && w.event[i] == o.events {
				for q := w.claim[i]; q != 0; q = o.claims[q-1].next {
					if x := &o.claims[q-1]; hits(o.heads[x.head].at, end) {
						n := room(o.lefts[x.left:int(x.left)+w.width], use, most, num)
						kept = kept || n < most
						most = n
					}
				}
			}
			if most <= 0 {
				continue
			}
			o.picks = append(o.picks, outlookPick{int32(i), int32(k), most})
			if tasks += most * h.tasks; tasks >= want {
				return want, kept, cost
			}
		}
	}
	return tasks, kept, cost
}

// room is how often a use could be had of an amount, at most so often.
func room(of, use []int64, most, num int64) int64 {
	for i, u := range use {
		if u == 0 {
			continue
		}
		if u = max(1, u*num/fraction); of[i] < u {
			return 0
		}
		if of[i] < u*most {
			most = of[i] / u
		}
	}
	return most
}

// start takes what fit found, for so many copies.
func (o *outlook) start(j *outlookJob, c *outlookClass, copies int64) (cost int) {
	left := copies * c.tasks
	end := after(o.at, j.length)
	e := outlookEnd{at: max(end, o.at+o.span), array: j.array, tasks: copies, num: o.part(j.length), back: o.taken(j, c)}
	for _, p := range o.picks {
		h := &c.holds[p.hold]
		if e.times = min(p.times, (left+h.tasks-1)/h.tasks); e.times <= 0 {
			break
		}
		w := &o.pools[h.pool]
		e.node, e.use = w.ids[p.place], h.use
		o.take(&e)
		if w.event[p.place] == o.events {
			for i := w.claim[p.place]; i != 0; i = o.claims[i-1].next {
				if x := &o.claims[i-1]; hits(o.heads[x.head].at, end) {
					o.add(o.lefts[x.left:int(x.left)+w.width], &e, -1)
				}
			}
		}
		e.tasks, e.back = 0, nil
		left -= e.times * h.tasks
		cost += 50
	}
	return cost
}

// reserve finds when a job could start if all that runs lasts as long as it may, and keeps nodes for it.
func (o *outlook) reserve(lane int32, c *outlookClass, length core.Time) (cost int) {
	head := &o.heads[lane]
	head.event, head.at = o.events, never-1 // if it waits for what may never end, it is in nobody's way
	have := int64(0)
	o.then = o.then[:0]
	for k := range c.holds {
		h := &c.holds[k]
		w := &o.pools[h.pool]
		if h.shut = len(w.books) > 0 && !o.open(c, w, o.at, after(o.at, length)); h.shut {
			continue
		}
		h.then = len(o.then)
		o.then = append(o.then, w.free...)
		for i := range w.size {
			have += o.measure(c, h, w, i)
		}
		cost += 4 * w.size
	}
	for at := (walk[outlookEnd, *outlookEnd]{q: &o.ends}); have < c.tasks; at.next() {
		e := at.head()
		if e == nil || e.at == never {
			return cost
		}
		cost += 5
		n := o.nodes[e.node]
		k := slices.IndexFunc(c.holds, func(h foothold) bool { return h.pool == n.pool })
		if k < 0 || c.holds[k].shut {
			continue
		}
		h, w, i := &c.holds[k], &o.pools[n.pool], int(n.place)
		have -= o.measure(c, h, w, i)
		o.add(o.then[h.then+i*w.width:h.then+(i+1)*w.width], e, 1)
		have += o.measure(c, h, w, i)
		head.at = e.at
	}
	left := c.tasks
	for k := range c.holds {
		h := &c.holds[k]
		if h.shut {
			continue
		}
		w := &o.pools[h.pool]
		for i := 0; i < w.size && left > 0; i++ {
			got := min(left, o.measure(c, h, w, i))
			if cost += 4; got <= 0 {
				continue
			}
			left -= got
			at := int32(len(o.lefts))
			o.lefts = append(o.lefts, o.then[h.then+i*w.width:h.then+(i+1)*w.width]...)
			o.add(o.lefts[at:], &outlookEnd{use: h.use, times: (got + h.tasks - 1) / h.tasks, num: fraction}, -1)
			if w.event[i] != o.events {
				w.event[i], w.claim[i] = o.events, 0
			}
			o.claims = append(o.claims, outlookClaim{head: lane, left: at, next: w.claim[i]})
			w.claim[i] = int32(len(o.claims))
		}
	}
	return cost
}

// measure is how many tasks of a job a node could take by then.
func (o *outlook) measure(c *outlookClass, h *foothold, w *pool, i int) int64 {
	most := c.tasks
	if c.wide {
		most = 1
	}
	at := h.then + i*w.width
	return h.tasks * room(o.then[at:at+w.width], o.uses[h.use:int(h.use)+w.width], most, fraction)
}
