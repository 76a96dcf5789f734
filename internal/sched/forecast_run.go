package sched

import (
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/sorted"
)

// run does a little of the work and tells how much, and whether it was the last.
func (o *forecastModel) run(f *Forecast) (cost int, over bool) {
	const few = 64
	if !o.released {
		return o.releaseEnded(few), false
	}
	for i := 0; i < few && o.next < len(o.waiting) && o.deadClasses < o.liveClasses && cost < 1000; i++ {
		cost += o.try(f)
	}
	if o.next < len(o.waiting) && o.deadClasses < o.liveClasses {
		return cost, false
	}
	return cost + 1, !o.nextEvent()
}

// releaseEnded frees what has ended.
func (o *forecastModel) releaseEnded(few int) (cost int) {
	for range few {
		e := (&sorted.Cursor[modelEnd, *modelEnd]{List: &o.ends}).Current()
		if e == nil || e.at > o.eventTime+o.minStep/2 { // to the nearest event: on average that is right
			o.released = true
			break
		}
		o.book(e, 1)
		o.release(e.release)
		o.arrays[e.array].running -= e.tasks
		o.ends.Remove(*e)
		cost += 20
	}
	n := 0
	for n < len(o.ineligible) && o.eligibleAt[n] <= o.eventTime {
		o.enqueue(o.ineligible[n])
		n++
	}
	o.ineligible, o.eligibleAt = o.ineligible[n:], o.eligibleAt[n:]
	return cost + 1
}

// nextEvent goes to the next event; false if there is none.
func (o *forecastModel) nextEvent() bool {
	if o.startedCount > len(o.waiting)/4 {
		o.waiting = slices.DeleteFunc(o.waiting, func(j modelJob) bool { return j.class < 0 })
		o.startedCount = 0
	}
	t := alloc.Never
	if e := (&sorted.Cursor[modelEnd, *modelEnd]{List: &o.ends}).Current(); e != nil {
		t = e.at
	}
	if len(o.eligibleAt) > 0 {
		t = min(t, o.eligibleAt[0])
	}
	for len(o.advanceTimes) > 0 && o.advanceTimes[0] <= o.eventTime {
		o.advanceTimes = o.advanceTimes[1:]
	}
	if len(o.advanceTimes) > 0 {
		t = min(t, o.advanceTimes[0])
	}
	if t == alloc.Never || len(o.waiting)+len(o.ineligible) == 0 {
		return false
	}
	o.eventTime = max(t, o.eventTime+o.minStep)
	if o.events++; o.events > exactEvents {
		o.minStep = (o.eventTime - o.now) / stepGrain
	}
	o.released, o.next, o.deadClasses = false, 0, 0
	o.reserved, o.leaves = o.reserved[:0], o.leaves[:0]
	return true
}

// try starts the next job, or as many tasks of an array as can be, if it fits and is in no reserved job's way.
func (o *forecastModel) try(f *Forecast) (cost int) {
	j := &o.waiting[o.next]
	o.next++
	if j.class < 0 {
		return 1
	}
	c := &o.classes[j.class]
	head := &o.heads[c.partition]
	if c.refusedEvent == o.events && j.timeLimit >= c.minRefused || o.fcfs && head.event == o.events {
		return 1
	}
	tight := false
	for tries := 0; ; tries++ {
		if o.isLimited(j, c) && (tries == 16 || !o.allowsStart(j, c)) { // of an array, so many at a time will do
			return cost + 5
		}
		want := int64(1)
		a := &o.arrays[j.array]
		if j.array != 0 {
			if want = a.left; a.throttle > 0 {
				want = min(want, a.throttle-a.running)
			}
			if want <= 0 {
				return cost + 2
			}
			if c.onePerNode || o.isLimited(j, c) {
				want = 1
			}
		}
		var got int64
		var n int
		if got, tight, n = o.fit(c, j.timeLimit, want); got > 0 {
			n += o.start(j, c, got)
			f.recordFirst(j.id, o.eventTime)
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
		c.refusedEvent, c.minRefused = o.events, 0
		o.deadClasses++
	} else if c.refusedEvent != o.events || j.timeLimit < c.minRefused {
		c.refusedEvent, c.minRefused = o.events, max(1, j.timeLimit)
	}
	if head.event != o.events {
		cost += o.reserve(c.partition, c, j.timeLimit)
	}
	return cost
}

// started takes a job that has started whole out of those that wait.
func (o *forecastModel) started(j *modelJob, c *modelClass) {
	j.class = -1
	o.startedCount++
	if c.jobs--; c.jobs == 0 {
		o.liveClasses--
		if c.refusedEvent == o.events && c.minRefused == 0 {
			o.deadClasses--
		}
	}
}

// stepShare is what of its needs, in 1/fraction, a job of a length takes for the step of this event.
func (o *forecastModel) stepShare(length core.Time) int64 {
	if length >= o.minStep {
		return fraction
	}
	return max(1, int64(length)*fraction/int64(o.minStep))
}

// maxTasks is how much room at most there is for a class, by the CPUs that are free; it costs next to nothing.
func (o *forecastModel) maxTasks(c *modelClass, num int64) (tasks int64) {
	for k := range c.pools {
		h := &c.pools[k]
		w := &o.pools[h.pool]
		cpus := max(1, o.uses[h.use]*num/fraction)
		if at := (cpus+fraction-1)/fraction - 1; at < int64(len(w.cpusAbove)) {
			n := int64(w.cpusAbove[at])
			if !c.onePerNode {
				n *= int64(w.sample.Record.Hardware.CPUs) * fraction / cpus
			}
			tasks += n * h.tasks
		}
	}
	return tasks
}

// fit tells how many copies of a job could start; picks has where. If it is what is free that there is too little of,
// not what is left beside reserved jobs, it is tight.
func (o *forecastModel) fit(c *modelClass, length core.Time, want int64) (got int64, tight bool, cost int) {
	num := o.stepShare(length)
	if o.maxTasks(c, num) < c.tasks {
		return 0, true, 2 * len(c.pools)
	}
	o.choices = o.choices[:0]
	tasks, all, spared := int64(0), want*c.tasks, false
	end := alloc.AddTime(o.eventTime, length)
	for k := range c.pools {
		if w := &o.pools[c.pools[k].pool]; len(w.advances) > 0 && !o.advanceAllows(c, w, o.eventTime, end) {
			spared = true // a shorter one may fit
			continue
		}
		found, kept, n := o.choosePool(c, k, num, all-tasks, end)
		tasks += found
		spared = spared || kept
		if cost += n; tasks >= all {
			break
		}
	}
	return min(want, tasks/c.tasks), !spared, cost + 10*len(o.choices)
}

// choosePool finds nodes of a pool for so many tasks that end by a moment, the first that have room, and tells how many
// it found, whether it left out what is kept for others, and how much work that was.
func (o *forecastModel) choosePool(c *modelClass, k int, num, want int64, end core.Time) (tasks int64, kept bool,
	cost int,
) {
	h := &c.pools[k]
	w := &o.pools[h.pool]
	use := o.uses[h.use : int(h.use)+w.width]
	cpus := max(1, use[0]*num/fraction)
	for b := 0; b*poolBlockSize < w.size; b++ {
		cost++
		if timesIn(w.blockMax[b*w.width:(b+1)*w.width], use, 1, num) == 0 {
			continue
		}
		cost += poolBlockSize
		for i := b * poolBlockSize; i < min((b+1)*poolBlockSize, w.size); i++ {
			if w.free[i*w.width] < cpus {
				continue
			}
			most := (want - tasks + h.tasks - 1) / h.tasks
			if c.onePerNode {
				most = 1
			}
			most = timesIn(w.free[i*w.width:(i+1)*w.width], use, most, num)
			if most > 0 && w.event[i] == o.events {
				for q := w.reserved[i]; q != 0; q = o.reserved[q-1].next {
					if x := &o.reserved[q-1]; alloc.Overlaps(o.heads[x.head].at, end) {
						n := timesIn(o.leaves[x.leaves:int(x.leaves)+w.width], use, most, num)
						kept = kept || n < most
						most = n
					}
				}
			}
			if most <= 0 {
				continue
			}
			o.choices = append(o.choices, modelChoice{int32(i), int32(k), most})
			if tasks += most * h.tasks; tasks >= want {
				return want, kept, cost
			}
		}
	}
	return tasks, kept, cost
}

// timesIn is how often a use could be had of an amount, at most so often.
func timesIn(of, use []int64, most, num int64) int64 {
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
func (o *forecastModel) start(j *modelJob, c *modelClass, copies int64) (cost int) {
	left := copies * c.tasks
	end := alloc.AddTime(o.eventTime, j.timeLimit)
	e := modelEnd{
		at: max(end, o.eventTime+o.minStep), array: j.array, tasks: copies, share: o.stepShare(j.timeLimit),
		release: o.bookStart(j, c),
	}
	for _, p := range o.choices {
		h := &c.pools[p.pool]
		if e.times = min(p.times, (left+h.tasks-1)/h.tasks); e.times <= 0 {
			break
		}
		w := &o.pools[h.pool]
		e.node, e.use = w.ids[p.place], h.use
		o.addEnd(&e)
		if w.event[p.place] == o.events {
			for i := w.reserved[p.place]; i != 0; i = o.reserved[i-1].next {
				if x := &o.reserved[i-1]; alloc.Overlaps(o.heads[x.head].at, end) {
					o.add(o.leaves[x.leaves:int(x.leaves)+w.width], &e, -1)
				}
			}
		}
		e.tasks, e.release = 0, nil
		left -= e.times * h.tasks
		cost += 50
	}
	return cost
}

// reserve finds when a job could start if all that runs lasts as long as it may, and keeps nodes for it.
func (o *forecastModel) reserve(lane int32, c *modelClass, length core.Time) (cost int) {
	head := &o.heads[lane]
	head.event, head.at = o.events, alloc.Never-1 // if it waits for what may never end, it is in nobody's way
	have := int64(0)
	o.freeThen = o.freeThen[:0]
	for k := range c.pools {
		h := &c.pools[k]
		w := &o.pools[h.pool]
		if h.closed = len(w.advances) > 0 && !o.advanceAllows(c, w, o.eventTime, alloc.AddTime(o.eventTime,
			length)); h.closed {
			continue
		}
		h.freeThenAt = len(o.freeThen)
		o.freeThen = append(o.freeThen, w.free...)
		for i := range w.size {
			have += o.tasksOn(c, h, w, i)
		}
		cost += 4 * w.size
	}
	for at := (sorted.Cursor[modelEnd, *modelEnd]{List: &o.ends}); have < c.tasks; at.Next() {
		e := at.Current()
		if e == nil || e.at == alloc.Never {
			return cost
		}
		cost += 5
		n := o.nodes[e.node]
		k := slices.IndexFunc(c.pools, func(h classPool) bool { return h.pool == n.pool })
		if k < 0 || c.pools[k].closed {
			continue
		}
		h, w, i := &c.pools[k], &o.pools[n.pool], int(n.place)
		have -= o.tasksOn(c, h, w, i)
		o.add(o.freeThen[h.freeThenAt+i*w.width:h.freeThenAt+(i+1)*w.width], e, 1)
		have += o.tasksOn(c, h, w, i)
		head.at = e.at
	}
	left := c.tasks
	for k := range c.pools {
		h := &c.pools[k]
		if h.closed {
			continue
		}
		w := &o.pools[h.pool]
		for i := 0; i < w.size && left > 0; i++ {
			got := min(left, o.tasksOn(c, h, w, i))
			if cost += 4; got <= 0 {
				continue
			}
			left -= got
			at := int32(len(o.leaves))
			o.leaves = append(o.leaves, o.freeThen[h.freeThenAt+i*w.width:h.freeThenAt+(i+1)*w.width]...)
			o.add(o.leaves[at:], &modelEnd{use: h.use, times: (got + h.tasks - 1) / h.tasks, share: fraction}, -1)
			if w.event[i] != o.events {
				w.event[i], w.reserved[i] = o.events, 0
			}
			o.reserved = append(o.reserved, modelReservation{head: lane, leaves: at, next: w.reserved[i]})
			w.reserved[i] = int32(len(o.reserved))
		}
	}
	return cost
}

// tasksOn is how many tasks of a job a node could take by then.
func (o *forecastModel) tasksOn(c *modelClass, h *classPool, w *nodePool, i int) int64 {
	most := c.tasks
	if c.onePerNode {
		most = 1
	}
	at := h.freeThenAt + i*w.width
	return h.tasks * timesIn(o.freeThen[at:at+w.width], o.uses[h.use:int(h.use)+w.width], most, fraction)
}
