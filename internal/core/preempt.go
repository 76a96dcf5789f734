package core

import (
	"slices"
	"strings"
)

// PreemptType says who may push whom aside.
type PreemptType string

// The types.
const (
	PreemptNobody PreemptType = ""
	PreemptByQOS  PreemptType = "qos"            // a QOS those it lists
	PreemptByTier PreemptType = "partition_prio" // a partition those of lower priority tiers
)

// PreemptOrder says which of several jobs that may be preempted goes first, among those of one QOS or tier.
type PreemptOrder string

// The orders.
const (
	LeastLost PreemptOrder = ""         // the one that loses the least work
	Youngest  PreemptOrder = "youngest" // the one that started last
	Smallest  PreemptOrder = "smallest" // the one with the fewest CPUs
)

// Preemption says how jobs are preempted by others, where neither QOS nor partition says otherwise. It comes from the
// config file.
type Preemption struct {
	Type   PreemptType  `json:"type,omitempty"`
	Mode   PreemptMode  `json:"mode,omitempty"`
	Grace  Seconds      `json:"grace,omitempty"`  // between the word and KILL; 0: as when a job is canceled
	Exempt Seconds      `json:"exempt,omitempty"` // a job runs so long before it may be preempted
	Order  PreemptOrder `json:"order,omitempty"`
}

// Modifiers of a mode, which may follow it after a comma; PreemptWithin is another.
const (
	PreemptPriority PreemptMode = "priority" // only by a job of a higher priority
	// with suspend: it goes on by itself when those it made room for have ended, which it always does
	PreemptGang PreemptMode = "gang"
)

// How is a mode without its modifiers; empty if it has nothing else.
func (m PreemptMode) How() PreemptMode {
	if !strings.Contains(string(m), ",") && m != PreemptWithin && m != PreemptPriority && m != PreemptGang {
		return m // as nearly all are
	}
	for word := range strings.SplitSeq(string(m), ",") {
		if w := PreemptMode(word); w != PreemptWithin && w != PreemptPriority && w != PreemptGang {
			return w
		}
	}
	return PreemptDefault
}

// Says reports whether a mode has a modifier.
func (m PreemptMode) Says(modifier PreemptMode) bool {
	return m == modifier || strings.Contains(","+string(m)+",", ","+string(modifier)+",")
}

// Valid reports whether a mode is one of the modes, with any of the modifiers.
func (m PreemptMode) Valid() bool {
	if m == PreemptDefault {
		return true
	}
	hows := 0
	for word := range strings.SplitSeq(string(m), ",") {
		switch PreemptMode(word) {
		case PreemptOff, PreemptCancel, PreemptRequeue, PreemptSuspend:
			hows++
		case PreemptWithin, PreemptPriority, PreemptGang:
		default:
			return false
		}
	}
	return hows <= 1
}

// Pushed tells that a job was preempted.
type Pushed struct {
	For   JobID       `json:"for"` // who got the room, the last time
	At    Time        `json:"at"`
	Until Time        `json:"until,omitempty"` // when its processes are killed, while it ends
	Mode  PreemptMode `json:"mode"`
	Times int32       `json:"times"`          // so far
	Lent  []Lent      `json:"lent,omitempty"` // while it is suspended: what of its CPUs others use
}

// Room tells that others were preempted for a job, which has not started yet: it stands before all others, so that what
// they leave is its own.
type Room struct {
	Seq    int64      `json:"seq"`    // grows: who came first starts first
	Starts int32      `json:"starts"` // of an array, so many tasks
	By     Time       `json:"by"`     // when they are gone at the latest
	Nodes  []NodeName `json:"nodes"`  // it is to start on
}

// Lent is CPUs of a suspended job that another one uses.
type Lent struct {
	To    JobID    `json:"to"`
	Node  NodeName `json:"node"`
	CPUs  int32    `json:"cpus"`
	Cores []int32  `json:"cores,omitempty"`
	// when they come back at the latest, as seen when they were lent; 0: nobody knows
	Until Time `json:"until,omitempty"`
}

// Parked reports whether a job is suspended because others use its CPUs.
func (j *Job) Parked() bool { return j.Pushed != nil && len(j.Pushed.Lent) > 0 }

// Lends reports whether some of a job's CPUs, or all, are not its own for now.
func (j *Job) Lends() bool { return j.Parked() || j.Flags.Has(Shelved) }

// Booked is what a job keeps others from having: its allocation, of which a parked job has lent some, and one that an
// administrator suspended keeps all but the CPUs.
func (j *Job) Booked() *Alloc {
	if !j.Lends() || j.Alloc == nil {
		return j.Alloc
	}
	c := *j.Alloc
	c.Nodes = slices.Clone(c.Nodes)
	for i := range c.Nodes {
		if j.Flags.Has(Shelved) {
			c.Nodes[i].CPUs, c.Nodes[i].Cores = 0, nil
			continue
		}
		for k := range j.Pushed.Lent {
			if l := &j.Pushed.Lent[k]; l.Node == c.Nodes[i].Node {
				c.Nodes[i].Lend(l.CPUs, l.Cores)
			}
		}
	}
	return &c
}

// Lend takes CPUs out of a job's part of a node. The part must be the caller's to change.
func (na *NodeAlloc) Lend(cpus int32, cores []int32) {
	na.CPUs -= cpus
	if len(cores) > 0 {
		na.Cores = slices.DeleteFunc(slices.Clone(na.Cores), func(c int32) bool { return slices.Contains(cores, c) })
	}
}
