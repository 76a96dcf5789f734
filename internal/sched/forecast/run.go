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
		slot := &c.pools[k]
		pool := &m.pools[slot.pool]
		cpus := max(1, m.uses[slot.use]*num/fraction)
		if at := (cpus+fraction-1)/fraction - 1; at < int64(len(pool.cpusAbove)) {
			n := int64(pool.cpusAbove[at])
			if !c.onePerNode {
				n *= int64(pool.sample.Record.Hardware.CPUs) * fraction / cpus
			}
			tasks += n * slot.tasks
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
		if pool := &m.pools[c.pools[k].pool]; len(pool.advances) > 0 && !m.advanceAllows(c, pool, m.eventTime, end) {
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
	slot := &c.pools[k]
	pool := &m.pools[slot.pool]
	use := m.uses[slot.use : int(slot.use)+pool.width]
	cpus := max(1, use[0]*num/fraction)
	for b := 0; b*poolBlockSize < pool.size; b++ {
		cost++
		if timesIn(pool.blockMax[b*pool.width:(b+1)*pool.width], use, 1, num) == 0 {
			continue
		}
		cost += poolBlockSize
		for i := b * poolBlockSize; i < min((b+1)*poolBlockSize, pool.size); i++ {
			if pool.free[i*pool.width] < cpus {
				continue
			}
			most := (want - tasks + slot.tasks - 1) / slot.tasks
			if c.onePerNode {
				most = 1
			}
			most = timesIn(pool.free[i*pool.width:(i+1)*pool.width], use, most, num)
			if most > 0 && pool.event[i] == m.events {
				for q := pool.reserved[i]; q != 0; q = m.reserved[q-1].next {
					if x := &m.reserved[q-1]; alloc.Overlaps(m.heads[x.head].at, end) {
						n := timesIn(m.leaves[x.leaves:int(x.leaves)+pool.width], use, most, num)
						kept = kept || n < most
						most = n
					}
				}
			}
			if most <= 0 {
				continue
			}
			m.choices = append(m.choices, modelChoice{int32(i), int32(k), most})
			if tasks += most * slot.tasks; tasks >= want {
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
		slot := &c.pools[p.pool]
		if e.times = min(p.times, (left+slot.tasks-1)/slot.tasks); e.times <= 0 {
			break
		}
		pool := &m.pools[slot.pool]
		e.node, e.use = pool.ids[p.place], slot.use
		m.addEnd(&e)
		if pool.event[p.place] == m.events {
			for i := pool.reserved[p.place]; i != 0; i = m.reserved[i-1].next {
				if x := &m.reserved[i-1]; alloc.Overlaps(m.heads[x.head].at, end) {
					m.add(m.leaves[x.leaves:int(x.leaves)+pool.width], &e, -1)
				}
			}
		}
		e.tasks, e.release = 0, nil
		left -= e.times * slot.tasks
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
		slot := &c.pools[k]
		pool := &m.pools[slot.pool]
		if slot.closed = len(pool.advances) > 0 && !m.advanceAllows(c, pool, m.eventTime, alloc.AddTime(m.eventTime,
			length)); slot.closed {
			continue
		}
		slot.freeThenAt = len(m.freeThen)
		m.freeThen = append(m.freeThen, pool.free...)
		for i := range pool.size {
			have += m.tasksOn(c, slot, pool, i)
		}
		cost += 4 * pool.size
	}
	for at := (sorted.Cursor[modelEnd, *modelEnd]{List: &m.ends}); have < c.tasks; at.Next() {
		e := at.Current()
		if e == nil || e.at == alloc.Never {
			return cost
		}
		cost += 5
		n := m.nodes[e.node]
		k := slices.IndexFunc(c.pools, func(slot classPool) bool { return slot.pool == n.pool })
		if k < 0 || c.pools[k].closed {
			continue
		}
		slot, pool, i := &c.pools[k], &m.pools[n.pool], int(n.place)
		have -= m.tasksOn(c, slot, pool, i)
		m.add(m.freeThen[slot.freeThenAt+i*pool.width:slot.freeThenAt+(i+1)*pool.width], e, 1)
		have += m.tasksOn(c, slot, pool, i)
		head.at = e.at
	}
	left := c.tasks
	for k := range c.pools {
		slot := &c.pools[k]
		if slot.closed {
			continue
		}
		pool := &m.pools[slot.pool]
		for i := 0; i < pool.size && left > 0; i++ {
			got := min(left, m.tasksOn(c, slot, pool, i))
			if cost += 4; got <= 0 {
				continue
			}
			left -= got
			at := int32(len(m.leaves))
			m.leaves = append(m.leaves, m.freeThen[slot.freeThenAt+i*pool.width:slot.freeThenAt+(i+1)*pool.width]...)
			m.add(m.leaves[at:], &modelEnd{use: slot.use, times: (got + slot.tasks - 1) / slot.tasks, share: fraction}, -1)
			if pool.event[i] != m.events {
				pool.event[i], pool.reserved[i] = m.events, 0
			}
			m.reserved = append(m.reserved, modelReservation{head: partition, leaves: at, next: pool.reserved[i]})
			pool.reserved[i] = int32(len(m.reserved))
		}
	}
	return cost
}

// tasksOn returns how many tasks of a job a node could take with what it has in m.freeThen.
func (m *Model) tasksOn(c *modelClass, slot *classPool, pool *nodePool, i int) int64 {
	most := c.tasks
	if c.onePerNode {
		most = 1
	}
	at := slot.freeThenAt + i*pool.width
	return slot.tasks * timesIn(m.freeThen[at:at+pool.width], m.uses[slot.use:int(slot.use)+pool.width], most, fraction)
}
