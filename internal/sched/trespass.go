package sched

import (
	"fmt"
	"time"

	"bireme.dev/bireme/internal/core"
)

// Trespass tells, in words, how a job that starts now would be where or when advance reservations do not let it; "" if it
// would not. The plan has seen to that; it is asked again in case a reservation came since. The second that may have gone
// by since the plan was made is not held against it.
func Trespass(books []*core.AdvanceReservation, spec *core.Spec, al *core.Alloc, now core.Time, names Names, zone *time.Location) string {
	end := after(now, length(spec))
	if end != never {
		end = max(now, end-overdue)
	}
	at := look{reach: spec.Extra != nil && spec.Extra.Signal != nil && spec.Extra.Signal.Reserve}
	list := make([]*advance, 0, len(books))
	for _, b := range books {
		r := newAdvance(b, names)
		r.roll(now, zone)
		list = append(list, r)
		if b.Name == al.Inside() {
			at.own = r
		}
	}
	switch own := at.own; {
	case own == nil && al.Inside() != "":
		return fmt.Sprintf("reservation %s is gone", al.Inside())
	case own.over():
		return fmt.Sprintf("reservation %s is over", own.Name)
	case own.timed():
		if _, ok := own.fits(now, end); !ok {
			return fmt.Sprintf("reservation %s does not last that long", own.Name)
		}
	}
	for i := range al.Nodes {
		name := al.Nodes[i].Node
		if at.own.confines() && !at.own.on[name] {
			return fmt.Sprintf("node %s is not in reservation %s", name, at.own.Name)
		}
		for _, r := range list {
			if r.on[name] && !r.shared() && at.bars(r) && r.meets(now, end, at.slack(r)) {
				return fmt.Sprintf("reservation %s has node %s before the job ends", r.Name, name)
			}
		}
	}
	return ""
}
