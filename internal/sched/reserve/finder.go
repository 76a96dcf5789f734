package reserve

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/cluster"
	"bireme.dev/bireme/internal/sched/fit"
	"bireme.dev/bireme/internal/sched/ledger"
	"bireme.dev/bireme/internal/sched/license"
)

// Finder finds the earliest start of jobs. It lasts as long as its planner and owns the memory of its searches.
type Finder struct {
	nodes    *cluster.Nodes
	jobs     *cluster.Jobs
	reserved *cluster.Reservations
	advances *cluster.Advances
	licenses *license.Licenses
	now      core.Time // of the pass
	request  Request   // of the current search
	caches   map[*cluster.Set][]*cache

	later ledger.Later
	scans []nodeScan // by the nodes' numbers
	// scratch
	free                    ledger.Resources
	buffer                  *fit.Buffer
	rooms, nodeRooms        []int32
	changedNodes, roomNodes []*ledger.Node
	changed                 ledger.Bitset
	newMarks, marks         []roomMark
	times                   []core.Time
}

// nodeScan is what a search knows of a node.
type nodeScan struct {
	followed int64 // the scan that tracks what is free on it
	ignored  int64 // the scan that cannot use it
	listed   int64 // the scan that lists it among changed nodes
	room     int32 // how many tasks it could take at the time the search has reached
}

// New returns a finder.
func New(n *cluster.Nodes, js *cluster.Jobs, rs *cluster.Reservations, as *cluster.Advances, ls *license.Licenses,
	buffer *fit.Buffer,
) *Finder {
	return &Finder{
		nodes: n, jobs: js, reserved: rs, advances: as, licenses: ls, buffer: buffer, caches: map[*cluster.Set][]*cache{},
	}
}

// BeginPass prepares for a pass at time now. The nodes are numbered.
func (f *Finder) BeginPass(now core.Time) {
	f.now = now
	if len(f.scans) < len(f.nodes.Ledger.Order) {
		f.scans = make([]nodeScan, len(f.nodes.Ledger.Order))
	}
}

// Later is what the last search computed: what nodes have free at the start it found.
func (f *Finder) Later() *ledger.Later { return &f.later }

// Find returns a reservation for a job at its earliest start, or nil if it can never start. If jobs were preempted for
// it, it gets the nodes that they leave.
func (f *Finder) Find(r Request) *ledger.Reservation {
	f.request = r
	s := f.newSearch()
	if choices := s.vacated(); choices != nil {
		return s.reservation(choices)
	}
	if r.From == 0 && f.canCache(&r) {
		return f.cacheOf(&r).find(&s)
	}
	if choices := s.earliest(); choices != nil {
		return s.reservation(choices)
	}
	return nil
}

// FindVacated returns a reservation of the nodes that preempted jobs leave to a job, or nil if they do not suffice.
func (f *Finder) FindVacated(r Request) *ledger.Reservation {
	f.request = r
	s := f.newSearch()
	if choices := s.vacated(); choices != nil {
		return s.reservation(choices)
	}
	return nil
}

// Start returns the earliest start of a job, and false if it can never start.
func (f *Finder) Start(r Request) (core.Time, bool) {
	f.request = r
	s := f.newSearch()
	ok := s.earliest() != nil
	return s.view.At, ok
}
