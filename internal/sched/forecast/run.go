package forecast

import (
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/sorted"
)

// Run does a little of the work, records the starts it finds in t, and returns its cost and whether all is done.
func (m *Model) Run(t *Table) (cost int, done bool) {
	const few = 64
	if !m.released {
		return m.releaseEnded(few), false
	}
	for i := 0; i < few && m.next < len(m.waiting) && m.deadClasses < m.liveClasses && cost < 1000; i++ {
		cost += m.try(t)
	}
	if m.next < len(m.waiting) && m.deadClasses < m.liveClasses {
		return cost, false
	}
	return cost + 1, !m.nextEvent()
}

// releaseEnded frees what has ended.
func (m *Model) releaseEnded(few int) (cost int) {
	for range few {
		e := (&sorted.Cursor[modelEnd, *modelEnd]{List: &m.ends}).Current()
		if e == nil || e.at > m.eventTime+m.minStep/2 { // rounded to the nearest event
			m.released = true
			break
		}
		m.book(e, 1)
		m.release(e.release)
		m.arrays[e.array].running -= e.tasks
		m.ends.Remove(*e)
		cost += 20
	}
	n := 0
	for n < len(m.ineligible) && m.eligibleAt[n] <= m.eventTime {
		m.enqueue(m.ineligible[n])
		n++
	}
	m.ineligible, m.eligibleAt = m.ineligible[n:], m.eligibleAt[n:]
	return cost + 1
}

// nextEvent goes to the next event and returns false if there is none.
func (m *Model) nextEvent() bool {
	if m.startedCount > len(m.waiting)/4 {
		m.waiting = slices.DeleteFunc(m.waiting, func(j modelJob) bool { return j.class < 0 })
		m.startedCount = 0
	}
	t := alloc.Never
	if e := (&sorted.Cursor[modelEnd, *modelEnd]{List: &m.ends}).Current(); e != nil {
		t = e.at
	}
	if len(m.eligibleAt) > 0 {
		t = min(t, m.eligibleAt[0])
	}
	for len(m.advanceTimes) > 0 && m.advanceTimes[0] <= m.eventTime {
		m.advanceTimes = m.advanceTimes[1:]
	}
	if len(m.advanceTimes) > 0 {
		t = min(t, m.advanceTimes[0])
	}
	if t == alloc.Never || len(m.waiting)+len(m.ineligible) == 0 {
		return false
	}
	m.eventTime = max(t, m.eventTime+m.minStep)
	if m.events++; m.events > exactEvents {
		m.minStep = (m.eventTime - m.now) / stepGrain
	}
	m.released, m.next, m.deadClasses = false, 0, 0
	m.reserved, m.leaves = m.reserved[:0], m.leaves[:0]
	return true
}

// try starts the next job, or as many tasks of an array as fit, if that delays no reservation.
func (m *Model) try(t *Table) (cost int) {
	j := &m.waiting[m.next]
	m.next++
	if j.class < 0 {
		return 1
	}
	c := &m.classes[j.class]
	head := &m.heads[c.partition]
	if c.refusedEvent == m.events && j.timeLimit >= c.minRefused || m.FCFS && head.event == m.events {
		return 1
	}
	tight := false
	for tries := 0; ; tries++ {
		if m.isLimited(j, c) && (tries == 16 || !m.allowsStart(j, c)) { // of an array, so many at a time
			return cost + 5
		}
		want := int64(1)
		a := &m.arrays[j.array]
		if j.array != 0 {
			if want = a.left; a.throttle > 0 {
				want = min(want, a.throttle-a.running)
			}
			if want <= 0 {
				return cost + 2
			}
			if c.onePerNode || m.isLimited(j, c) {
				want = 1
			}
		}
		var got int64
		var n int
		if got, tight, n = m.fit(c, j.timeLimit, want); got > 0 {
			n += m.start(j, c, got)
			t.RecordFirst(j.id, m.eventTime)
			a.left -= got
			a.running += got
			if j.array == 0 || a.left <= 0 {
				m.started(j, c)
				return cost + n
			}
		}
		if cost += n; got < want {
			break
		}
	}
	if tight {
		c.refusedEvent, c.minRefused = m.events, 0
		m.deadClasses++
	} else if c.refusedEvent != m.events || j.timeLimit < c.minRefused {
		c.refusedEvent, c.minRefused = m.events, max(1, j.timeLimit)
	}
	if head.event != m.events {
		cost += m.reserve(c.partition, c, j.timeLimit)
	}
	return cost
}

// started removes a job of which all has started from those that wait.
func (m *Model) started(j *modelJob, c *modelClass) {
	j.class = -1
	m.startedCount++
	if c.jobs--; c.jobs == 0 {
		m.liveClasses--
		if c.refusedEvent == m.events && c.minRefused == 0 {
			m.deadClasses--
		}
	}
}

// stepShare returns the part of its use, in 1/fraction, that a job of a length takes for the step of this event.
func (m *Model) stepShare(length core.Time) int64 {
	if length >= m.minStep {
		return fraction
	}
	return max(1, int64(length)*fraction/int64(m.minStep))
}

// maxTasks returns an upper bound of the tasks of a class that fit, by the number of free CPUs. It costs little.
func (m *Model) maxTasks(c *modelClass, num int64) (tasks int64) {
	for k := range c.pools {
		h := &c.pools[k]
		w := &m.pools[h.pool]
		cpus := max(1, m.uses[h.use]*num/fraction)
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

// fit returns how many copies of a job could start, and sets m.choices to where. tight says that too little is free,
// whatever is reserved.
func (m *Model) fit(c *modelClass, length core.Time, want int64) (got int64, tight bool, cost int) {
	num := m.stepShare(length)
	if m.maxTasks(c, num) < c.tasks {
		return 0, true, 2 * len(c.pools)
	}
	m.choices = m.choices[:0]
	tasks, all, spared := int64(0), want*c.tasks, false
	end := alloc.AddTime(m.eventTime, length)
	for k := range c.pools {
		if w := &m.pools[c.pools[k].pool]; len(w.advances) > 0 && !m.advanceAllows(c, w, m.eventTime, end) {
			spared = true // a shorter job may fit
			continue
		}
		found, kept, n := m.choosePool(c, k, num, all-tasks, end)
		tasks += found
		spared = spared || kept
		if cost += n; tasks >= all {
			break
		}
	}
	return min(want, tasks/c.tasks), !spared, cost + 10*len(m.choices)
}

// choosePool chooses the first nodes of a pool that have room for so many tasks. It returns how many tasks fit, whether
// reservations left it less, and the cost.
func (m *Model) choosePool(c *modelClass, k int, num, want int64, end core.Time) (tasks int64, kept bool,
	cost int,
) {
	h := &c.pools[k]
	w := &m.pools[h.pool]
	use := m.uses[h.use : int(h.use)+w.width]
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
			if most > 0 && w.event[i] == m.events {
				for q := w.reserved[i]; q != 0; q = m.reserved[q-1].next {
					if x := &m.reserved[q-1]; alloc.Overlaps(m.heads[x.head].at, end) {
						n := timesIn(m.leaves[x.leaves:int(x.leaves)+w.width], use, most, num)
						kept = kept || n < most
						most = n
					}
				}
			}
			if most <= 0 {
				continue
			}
			m.choices = append(m.choices, modelChoice{int32(i), int32(k), most})
			if tasks += most * h.tasks; tasks >= want {
				return want, kept, cost
			}
		}
	}
	return tasks, kept, cost
}

// timesIn returns how often a use fits into an amount, at most so often.
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

// start books the nodes that fit chose, for so many copies of a job.
func (m *Model) start(j *modelJob, c *modelClass, copies int64) (cost int) {
	left := copies * c.tasks
	end := alloc.AddTime(m.eventTime, j.timeLimit)
	e := modelEnd{
		at: max(end, m.eventTime+m.minStep), array: j.array, tasks: copies, share: m.stepShare(j.timeLimit),
		release: m.bookStart(j, c),
	}
	for _, p := range m.choices {
		h := &c.pools[p.pool]
		if e.times = min(p.times, (left+h.tasks-1)/h.tasks); e.times <= 0 {
			break
		}
		w := &m.pools[h.pool]
		e.node, e.use = w.ids[p.place], h.use
		m.addEnd(&e)
		if w.event[p.place] == m.events {
			for i := w.reserved[p.place]; i != 0; i = m.reserved[i-1].next {
				if x := &m.reserved[i-1]; alloc.Overlaps(m.heads[x.head].at, end) {
					m.add(m.leaves[x.leaves:int(x.leaves)+w.width], &e, -1)
				}
			}
		}
		e.tasks, e.release = 0, nil
		left -= e.times * h.tasks
		cost += 50
	}
	return cost
}

// reserve finds when a job could start if all running jobs use their time limit, and reserves nodes for it.
func (m *Model) reserve(partition int32, c *modelClass, length core.Time) (cost int) {
	head := &m.heads[partition]
	head.event, head.at = m.events, alloc.Never-1 // if it waits for a job without a time limit, it blocks nobody
	have := int64(0)
	m.freeThen = m.freeThen[:0]
	for k := range c.pools {
		h := &c.pools[k]
		w := &m.pools[h.pool]
		if h.closed = len(w.advances) > 0 && !m.advanceAllows(c, w, m.eventTime, alloc.AddTime(m.eventTime,
			length)); h.closed {
			continue
		}
		h.freeThenAt = len(m.freeThen)
		m.freeThen = append(m.freeThen, w.free...)
		for i := range w.size {
			have += m.tasksOn(c, h, w, i)
		}
		cost += 4 * w.size
	}
	for at := (sorted.Cursor[modelEnd, *modelEnd]{List: &m.ends}); have < c.tasks; at.Next() {
		e := at.Current()
		if e == nil || e.at == alloc.Never {
			return cost
		}
		cost += 5
		n := m.nodes[e.node]
		k := slices.IndexFunc(c.pools, func(h classPool) bool { return h.pool == n.pool })
		if k < 0 || c.pools[k].closed {
			continue
		}
		h, w, i := &c.pools[k], &m.pools[n.pool], int(n.place)
		have -= m.tasksOn(c, h, w, i)
		m.add(m.freeThen[h.freeThenAt+i*w.width:h.freeThenAt+(i+1)*w.width], e, 1)
		have += m.tasksOn(c, h, w, i)
		head.at = e.at
	}
	left := c.tasks
	for k := range c.pools {
		h := &c.pools[k]
		if h.closed {
			continue
		}
		w := &m.pools[h.pool]
		for i := 0; i < w.size && left > 0; i++ {
			got := min(left, m.tasksOn(c, h, w, i))
			if cost += 4; got <= 0 {
				continue
			}
			left -= got
			at := int32(len(m.leaves))
			m.leaves = append(m.leaves, m.freeThen[h.freeThenAt+i*w.width:h.freeThenAt+(i+1)*w.width]...)
			m.add(m.leaves[at:], &modelEnd{use: h.use, times: (got + h.tasks - 1) / h.tasks, share: fraction}, -1)
			if w.event[i] != m.events {
				w.event[i], w.reserved[i] = m.events, 0
			}
			m.reserved = append(m.reserved, modelReservation{head: partition, leaves: at, next: w.reserved[i]})
			w.reserved[i] = int32(len(m.reserved))
		}
	}
	return cost
}

// tasksOn returns how many tasks of a job a node could take with what it has in m.freeThen.
func (m *Model) tasksOn(c *modelClass, h *classPool, w *nodePool, i int) int64 {
	most := c.tasks
	if c.onePerNode {
		most = 1
	}
	at := h.freeThenAt + i*w.width
	return h.tasks * timesIn(m.freeThen[at:at+w.width], m.uses[h.use:int(h.use)+w.width], most, fraction)
}
