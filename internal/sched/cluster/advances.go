package cluster

import (
	"cmp"
	"slices"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/advance"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/ledger"
)

// Advances is the advance reservations and what they have of nodes.
type Advances struct {
	// List has them by name. It is replaced as a whole: plans keep it.
	List []*advance.Reservation

	nodes          *Nodes
	version        int64 // counts changes of List
	ledgerVersion  int   // versions of the ledger and
	appliedVersion int64 // of List when placeOnNodes last ran
	fingerprint    fingerprint
	partly         []*ledger.Node // nodes of which they have a part
}

// NewAdvances returns an empty list of advance reservations on these nodes.
func NewAdvances(n *Nodes) *Advances { return &Advances{nodes: n} }

// Has reports whether an advance reservation is known with the same values.
func (as *Advances) Has(r *core.AdvanceReservation) bool {
	old := advance.Find(as.List, r.Name)
	if old == nil {
		return false
	}
	o := old.AdvanceReservation
	return o.Start == r.Start && o.End == r.End && o.Created == r.Created && o.Nodes == r.Nodes &&
		o.CoreCount == r.CoreCount && o.Flags == r.Flags && o.MaxDelay == r.MaxDelay &&
		slices.Equal(o.Users, r.Users) && slices.Equal(o.Projects, r.Projects) &&
		slices.Equal(o.Groups, r.Groups) && slices.Equal(o.Licenses, r.Licenses)
}

// With returns the list without those that are gone and with those that are new or changed. It is in order and shares
// nothing with List.
func (as *Advances) With(changed []*core.AdvanceReservation, gone []string, hosts alloc.HostsFunc,
) []*advance.Reservation {
	list := slices.Clone(as.List)
	for _, name := range gone {
		list = slices.DeleteFunc(list, func(r *advance.Reservation) bool { return r.Name == name })
	}
	for _, r := range changed {
		list = slices.DeleteFunc(list, func(o *advance.Reservation) bool { return o.Name == r.Name })
		list = append(list, advance.New(r, hosts))
	}
	slices.SortFunc(list, func(a, b *advance.Reservation) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// Set replaces the list.
func (as *Advances) Set(list []*advance.Reservation) {
	as.List = list
	as.version++
	if len(list) == 0 {
		as.placeOnNodes()
	}
}

// placeOnNodes records on every node what advance reservations have of it.
func (as *Advances) placeOnNodes() {
	order := as.nodes.Ledger.Order
	if as.ledgerVersion == as.nodes.Ledger.Version && as.appliedVersion == as.version {
		return
	}
	as.ledgerVersion, as.appliedVersion = as.nodes.Ledger.Version, as.version
	for _, node := range order {
		node.AdvanceParts, node.PartlyReserved = node.AdvanceParts[:0], false
	}
	as.partly = as.partly[:0]
	for _, r := range as.List {
		var on []*ledger.Node
		for _, node := range order {
			if r.Nodes[node.Record.Name] {
				on = append(on, node)
			}
		}
		slices.SortFunc(on, func(a, b *ledger.Node) int { return cmp.Compare(a.Record.ID, b.Record.ID) })
		for i, node := range on {
			part := ledger.AdvancePart{Reservation: r}
			if r.IsPartial() {
				if part.Cpus = r.CoresOn(i, len(on)) * max(1, node.Record.Hardware.Threads); part.Cpus == 0 {
					part.Cpus = -1
				}
				if !node.PartlyReserved {
					as.partly = append(as.partly, node)
				}
				node.PartlyReserved = true
			}
			node.AdvanceParts = append(node.AdvanceParts, part)
		}
	}
}

// BeginPass updates the windows of the advance reservations, and lists the jobs on nodes of which they have a part. It
// reports whether they set aside something else than in the last pass.
func (as *Advances) BeginPass(now core.Time, zone *time.Location, jobs *Jobs) (changed bool) {
	as.placeOnNodes()
	mark := newFingerprint() // of all windows
	mark.add(uint64(as.version))
	for _, r := range as.List {
		r.UpdateWindows(now, zone)
		mark.add(uint64(r.RecursFrom), uint64(len(r.Windows)))
		for _, w := range r.Windows {
			mark.add(uint64(w.Start), uint64(w.End))
		}
	}
	changed = mark != as.fingerprint
	as.fingerprint = mark
	if len(as.partly) == 0 {
		return changed
	}
	for _, node := range as.partly {
		node.AdvanceJobs = node.AdvanceJobs[:0]
	}
	for _, h := range jobs.Allocs {
		for i, node := range as.nodes.Ledger.NodesOf(h) {
			if na := &h.Alloc.Nodes[i]; node != nil && !na.Done {
				node.AddAdvanceJob(na, h.Alloc.Inside(), max(h.End, now+alloc.OverdueDelay))
			}
		}
	}
	return changed
}

// AddStart records a job that starts and ends at end on nodes of which advance reservations have a part.
func (as *Advances) AddStart(al *core.Alloc, end core.Time) {
	if len(as.partly) == 0 {
		return
	}
	for i := range al.Nodes {
		na := &al.Nodes[i]
		as.nodes.Ledger.Nodes[na.Node].AddAdvanceJob(na, al.Inside(), end)
	}
}

// LastBefore returns the latest time before end at which an advance reservation begins that jobs under a view must
// avoid; 0: none.
func (as *Advances) LastBefore(at *ledger.View, end core.Time) (start core.Time) {
	for _, r := range as.List {
		if !at.MustAvoid(r) {
			continue
		}
		slack := at.AllowedDelay(r)
		if r.IsPartial() {
			slack = 0
		}
		for _, w := range r.Windows {
			if alloc.Overlaps(w.Start+slack, end) {
				start = max(start, w.Start+slack)
			}
		}
		if r.RecursFrom != 0 && alloc.Overlaps(r.RecursFrom, end) {
			start = max(start, r.RecursFrom)
		}
	}
	return start
}

// fingerprint is a hash that shows whether a set of values changed.
type fingerprint uint64

func newFingerprint() fingerprint { return 14695981039346656037 }

// add mixes values into the hash.
func (f *fingerprint) add(values ...uint64) {
	for _, v := range values {
		for v ^= uint64(*f) >> 32; ; v >>= 16 {
			*f = (*f ^ fingerprint(v)) * 1099511628211
			if v == 0 {
				break
			}
		}
	}
}
