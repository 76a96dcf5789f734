package sched

import "bireme.dev/bireme/internal/core"

// Classes that could start nothing sleep until something comes free that one of them could use: a dive does not look at
// them. They lie in a list with the least that a node must have free, so that nearly all of them are passed over without
// being looked at when something did.

// sleeper is a class that sleeps.
type sleeper struct {
	slot *slot
	cpus int32
	mem  core.Bytes
}

// roused lists the classes of a partition that a dive must look at, some of them twice, with the dive since which the
// others sleep. The list may be written over while it is read.
func (ps *pass) roused(part *partition) (slots []*slot, since int64) {
	p := ps.p
	if part.asleep == 0 || ps.made != allMade || part.quiet < p.gains.from {
		for _, s := range part.slots {
			s.bed = 0
		}
		clear(part.sleepers)
		part.sleepers = part.sleepers[:0]
		return append(part.awake[:0], part.slots...), p.dives
	}
	slots = part.awake
	var best bestGain
	for i := part.quiet; i < p.gains.next(); i++ {
		if a := p.gains.at(i); a.gained == i && part.has(a) && a.open() {
			best.add(a)
		}
	}
	if best.nodes == 0 {
		return slots, part.asleep
	}
	for i := 0; i < len(part.sleepers); {
		if e := &part.sleepers[i]; e.cpus > best.cpus || e.mem > best.mem {
			i++
			continue
		}
		s := part.sleepers[i].slot
		part.rise(s)
		slots = append(slots, s)
	}
	return slots, part.asleep
}

// lull lets a class sleep.
func (part *partition) lull(s *slot, since int64) {
	s.slept = since
	e := sleeper{slot: s}
	if n := &s.need; n.more == nil {
		e.cpus, e.mem = max(n.cpusPerTask, n.minCPUs), n.memNode
	}
	part.sleepers = append(part.sleepers, e)
	s.bed = len(part.sleepers)
}

// rise takes a class out of the list.
func (part *partition) rise(s *slot) {
	if s.bed == 0 {
		return
	}
	k := len(part.sleepers) - 1
	last := part.sleepers[k]
	part.sleepers[s.bed-1], last.slot.bed = last, s.bed
	part.sleepers[k] = sleeper{}
	part.sleepers, s.bed = part.sleepers[:k], 0
}

// wake lets a class be looked at again: it has got a job that may start where others may not.
func (s *slot) wake() {
	s.catchUp()
	s.slept = 0
	s.part.rise(s)
	s.part.awake = append(s.part.awake, s)
}

// catchUp brings a class that sleeps up to date.
func (s *slot) catchUp() {
	if s.slept != 0 && s.slept == s.part.asleep {
		s.refusal.seen = max(s.refusal.seen, s.part.quiet)
	}
}
