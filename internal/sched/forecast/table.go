package forecast

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/alloc"
)

// Table says when jobs will start. It is a hash table with 8 bytes per job: there may be 100,000 of them.
type Table struct {
	now   core.Time
	base  core.JobID // keys are relative to it
	slots []slot
	used  int
}

type slot struct {
	key uint32 // of the job; 0: the slot is free
	at  uint32 // seconds from Table.now
}

// NewTable returns a table for so many jobs.
func NewTable(now core.Time, jobs int) Table { return Table{now: now, slots: make([]slot, jobs*9/8+8)} }

// Len returns the number of jobs in the table.
func (t *Table) Len() int { return t.used }

// At returns when a job will start, about, and false if the table does not know it.
func (t *Table) At(id core.JobID) (core.Time, bool) {
	if t.used == 0 {
		return 0, false
	}
	s, _ := t.find(id)
	if s == nil || s.key == 0 {
		return 0, false
	}
	return t.now + core.Time(s.at)*1e6, true
}

// find returns a job's key and its slot: its own, or the free one it would take; nil for an id out of range.
func (t *Table) find(id core.JobID) (*slot, uint32) {
	off := int64(id-t.base) + 1<<31
	if off <= 0 || off >= 1<<32 {
		return nil, 0
	}
	key, n := uint32(off), uint64(len(t.slots))
	for i := uint64(key) * 0x9E3779B97F4A7C15 >> 32 * n >> 32; ; i++ {
		if i == n {
			i = 0
		}
		if s := &t.slots[i]; s.key == key || s.key == 0 {
			return s, key
		}
	}
}

// record records when a job will start.
func (t *Table) record(id core.JobID, at core.Time) {
	if t.used == 0 {
		t.base = id
	}
	s, key := t.find(id)
	switch {
	case s == nil, at == alloc.Never:
		return
	case s.key == 0 && t.used == len(t.slots)-1: // one slot stays free: find ends there
		return
	case s.key == 0:
		s.key = key
		t.used++
	}
	s.at = uint32(min((max(0, int64(at-t.now))+999_999)/1e6, 1<<32-1))
}

// RecordFirst records when a job, or the first task of an array, will start. The first call for a job counts.
func (t *Table) RecordFirst(id core.JobID, at core.Time) {
	if s, _ := t.find(id); t.used == 0 || s != nil && s.key == 0 {
		t.record(id, at)
	}
}
