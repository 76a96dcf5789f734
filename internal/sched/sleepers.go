package sched

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/cluster"
)

// Refused classes sleep until a node with enough free CPUs and memory for a task appears: a walk by class skips them.
// The list has what each needs, so that most are skipped without looking at the class when something came free.

// sleepingClass is a class that sleeps, with the least free CPUs and memory of a node that wake it.
type sleepingClass struct {
	class *partitionClass
	cpus  int32
	mem   core.Bytes
}

// classesToVisit lists the classes that a walk by class must visit, some of them twice, and returns the walk since
// which the others sleep. The list may be overwritten while it is read.
func (part *partition) classesToVisit(p *Planner) (slots []*partitionClass, since int64) {
	if part.sleepWalk == 0 || p.reserved.Known != cluster.AllReservations || part.sleepFreedSeq < p.nodes.Freed.First {
		for _, s := range part.classes {
			s.sleeperIndex = 0
		}
		clear(part.sleepers)
		part.sleepers = part.sleepers[:0]
		return append(part.awakeClasses[:0], part.classes...), p.classWalks
	}
	slots = part.awakeClasses
	best := p.nodes.MaxFreedSince(part.nodes, part.sleepFreedSeq)
	if best.Nodes == 0 {
		return slots, part.sleepWalk
	}
	for i := 0; i < len(part.sleepers); {
		if e := &part.sleepers[i]; e.cpus > best.CPUs || e.mem > best.Mem {
			i++
			continue
		}
		s := part.sleepers[i].class
		part.removeSleeper(s)
		slots = append(slots, s)
	}
	return slots, part.sleepWalk
}

// putToSleep makes a walk by class skip the class.
func (part *partition) putToSleep(s *partitionClass, since int64) {
	s.sleepWalk = since
	e := sleepingClass{class: s}
	if req := &s.req; req.Detail == nil {
		e.cpus, e.mem = max(req.CpusPerTask, req.MinCPUs), req.MemPerNode
	}
	part.sleepers = append(part.sleepers, e)
	s.sleeperIndex = len(part.sleepers)
}

// removeSleeper removes a class from the list of sleepers.
func (part *partition) removeSleeper(s *partitionClass) {
	if s.sleeperIndex == 0 {
		return
	}
	k := len(part.sleepers) - 1
	last := part.sleepers[k]
	part.sleepers[s.sleeperIndex-1], last.class.sleeperIndex = last, s.sleeperIndex
	part.sleepers[k] = sleepingClass{}
	part.sleepers, s.sleeperIndex = part.sleepers[:k], 0
}

// wake makes walks visit a class again: it has a new job that may start where others may not.
func (s *partitionClass) wake() {
	s.catchUp()
	s.sleepWalk = 0
	s.part.removeSleeper(s)
	s.part.awakeClasses = append(s.part.awakeClasses, s)
}

// catchUp updates the refusal of a sleeping class: it has seen what its partition has seen.
func (s *partitionClass) catchUp() {
	if s.sleepWalk != 0 && s.sleepWalk == s.part.sleepWalk {
		s.refusal.freedSeq = max(s.refusal.freedSeq, s.part.sleepFreedSeq)
	}
}
