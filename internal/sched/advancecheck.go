package sched

import (
	"fmt"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/advance"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/ledger"
)

// ReservationConflict tells, in words, how a job that starts now would be where or when advance reservations do not let
// it; "" if it would not. The plan has seen to that; it is asked again in case a reservation came since. The second
// that may have gone by since the plan was made is not held against it.
func ReservationConflict(books []*core.AdvanceReservation, spec *core.Spec, al *core.Alloc, now core.Time,
	names alloc.HostsFunc, zone *time.Location,
) string {
	end := alloc.AddTime(now, alloc.TimeLimit(spec))
	if end != alloc.Never {
		end = max(now, end-alloc.OverdueDelay)
	}
	at := ledger.View{MayDelayAdvance: spec.Extra != nil && spec.Extra.Signal != nil && spec.Extra.Signal.Reserve}
	list := make([]*advance.Reservation, 0, len(books))
	for _, b := range books {
		r := advance.New(b, names)
		r.UpdateWindows(now, zone)
		list = append(list, r)
		if b.Name == al.Inside() {
			at.Advance = r
		}
	}
	switch own := at.Advance; {
	case own == nil && al.Inside() != "":
		return fmt.Sprintf("reservation %s is gone", al.Inside())
	case own.IsOver():
		return fmt.Sprintf("reservation %s is over", own.Name)
	case own.ConfinesTime():
		if _, ok := own.WindowFor(now, end); !ok {
			return fmt.Sprintf("reservation %s does not last that long", own.Name)
		}
	}
	for i := range al.Nodes {
		name := al.Nodes[i].Node
		if at.Advance.ConfinesNodes() && !at.Advance.Nodes[name] {
			return fmt.Sprintf("node %s is not in reservation %s", name, at.Advance.Name)
		}
		for _, r := range list {
			if r.Nodes[name] && !r.IsPartial() && at.MustAvoid(r) && r.Overlaps(now, end, at.AllowedDelay(r)) {
				return fmt.Sprintf("reservation %s has node %s before the job ends", r.Name, name)
			}
		}
	}
	return ""
}
