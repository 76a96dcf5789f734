package advance

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/alloc"
)

// Reservation is an advance reservation as the planner keeps it. Jobs that may not use it must have left its nodes
// before it begins; see ledger.Node.FreeBesideAdvance.
type Reservation struct {
	*core.AdvanceReservation
	Nodes      map[core.NodeName]bool // its nodes; nil: it sets none aside
	Windows    []Window               // its occurrences that are not over, soonest first; see UpdateWindows
	RecursFrom core.Time              // if not 0, it recurs from then on, beyond Windows
}

// Window is one occurrence of an advance reservation.
type Window struct{ Start, End core.Time }

// maxWindows is how many windows of a recurring reservation are computed.
const maxWindows = 32

// New returns a reservation without windows; see UpdateWindows.
func New(r *core.AdvanceReservation, names alloc.HostsFunc) *Reservation {
	a := &Reservation{AdvanceReservation: r}
	if r.Nodes != "" {
		a.Nodes = names(r.Nodes)
	}
	return a
}

// UpdateWindows finds the occurrences that are not over at now.
func (r *Reservation) UpdateWindows(now core.Time, zone *time.Location) {
	if r.Flags&core.ReserveTimeFloat != 0 { // it keeps its distance
		from := now + max(0, r.Start-r.Created)
		r.Windows = append(r.Windows[:0], Window{from, alloc.Never})
		return
	}
	if len(r.Windows) > 0 && r.Windows[0].End > now {
		return
	}
	r.Windows, r.RecursFrom = r.Windows[:0], 0
	w := Window{}
	w.Start, w.End = r.Current(now, zone)
	for again := w.End > now; again; w.Start, w.End, again = r.After(w.Start, w.End, zone) {
		if len(r.Windows) == maxWindows {
			r.RecursFrom = w.Start
			return
		}
		r.Windows = append(r.Windows, w)
	}
}

// Overlaps reports whether a job that runs between two times overlaps r. slack is how far it may reach into r.
func (r *Reservation) Overlaps(from, end, slack core.Time) bool {
	for _, w := range r.Windows {
		if w.Start += slack; w.End > from && w.Start < w.End {
			return alloc.Overlaps(w.Start, end) // those after it begin later
		}
	}
	return r.RecursFrom != 0 && alloc.Overlaps(r.RecursFrom, end)
}

// IsActive reports whether r is active at a time.
func (r *Reservation) IsActive(t core.Time) bool {
	for _, w := range r.Windows {
		if w.Start <= t && t < w.End {
			return true
		}
	}
	return r.RecursFrom != 0 && t >= r.RecursFrom
}

// WindowFor returns the window in which a job between two times would run.
func (r *Reservation) WindowFor(from, end core.Time) (Window, bool) {
	for _, w := range r.Windows {
		if w.Start <= from && end <= w.End && end != alloc.Never {
			return w, true
		}
	}
	return Window{}, false
}

// IsPartial reports whether r has only a part of its nodes.
func (r *Reservation) IsPartial() bool { return r.CoreCount > 0 }

// ConfinesNodes reports whether jobs in r may use only its nodes.
func (r *Reservation) ConfinesNodes() bool {
	return r != nil && r.Nodes != nil && r.Flags&core.ReserveFlex == 0
}

// ConfinesTime reports whether jobs in r may run only while it is active.
func (r *Reservation) ConfinesTime() bool { return r != nil && r.Flags&core.ReserveFlex == 0 }

// IsOver reports whether r does not occur again.
func (r *Reservation) IsOver() bool { return r != nil && len(r.Windows) == 0 }

// IsUsable reports whether jobs can run in r at all.
func (r *Reservation) IsUsable() bool { return r.Flags&core.ReserveTimeFloat == 0 }

func (r *Reservation) IsMagnetic() bool {
	return r.Flags&core.ReserveMagnetic != 0 && r.IsUsable()
}

// admits reports whether a job may use r.
func (r *Reservation) admits(s *core.Spec) bool {
	if len(r.Groups) > 0 && s.More().Reservation == "" { // who is in which group is known at submit only
		return false
	}
	return r.IsUsable() && r.Admits(s.User, func(p core.ProjectName) bool { return p == s.Project })
}

func Find(books []*Reservation, name string) *Reservation {
	i, ok := slices.BinarySearchFunc(books, name, func(r *Reservation,
		name string,
	) int {
		return cmp.Compare(r.Name, name)
	})
	if !ok {
		return nil
	}
	return books[i]
}

// Options lists the reservations a job may run in, in the order they are tried, and whether it may run outside of any.
func Options(books []*Reservation, s *core.Spec) (in []*Reservation, out bool) {
	if x := s.Extra; x != nil && x.Reservation != "" {
		for name := range strings.SplitSeq(x.Reservation, ",") {
			if r := Find(books, name); r != nil && r.admits(s) {
				in = append(in, r)
			}
		}
		return in, false
	}
	for _, r := range books {
		if r.IsMagnetic() && r.admits(s) {
			in = append(in, r)
		}
	}
	return in, true
}

// Key says what distinguishes the class of a job as regards advance reservations and licenses; "" for most jobs.
func Key(books []*Reservation, s *core.Spec) string {
	x := s.Extra
	if len(books) == 0 && (x == nil || x.Reservation == "" && x.Licenses.IsZero() && x.Signal == nil && x.Volumes == nil) {
		return ""
	}
	in, out := Options(books, s)
	key := ""
	for _, r := range in {
		key += r.Name + ","
	}
	if !out {
		key += "!"
	}
	if x != nil {
		if x.Signal != nil && x.Signal.Reserve {
			key += "+"
		}
		if !x.Licenses.IsZero() {
			key += "|" + x.Licenses.String()
		}
		for i := range x.Volumes {
			if m := &x.Volumes[i]; m.Single {
				key += "|" + core.VolumeKey{Project: s.Project, Name: m.Name}.String()
			}
		}
	}
	return key
}

// CoresOn returns how many cores a reservation has of the nth of its nodes. They are distributed evenly.
func (r *Reservation) CoresOn(n, of int) int32 {
	each := r.CoreCount / int32(of)
	if int32(n) < r.CoreCount%int32(of) {
		each++
	}
	return each
}
