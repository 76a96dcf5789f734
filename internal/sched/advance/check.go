package advance

import (
	"fmt"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/alloc"
)

// Conflict says how a job that starts now would run where or when advance reservations do not allow it; "" if it would
// not. The plan respected them; this checks again in case a reservation came since. A second that may have passed since
// the plan was made does not count.
func Conflict(reservations []*core.AdvanceReservation, spec *core.Spec, al *core.Alloc, now core.Time,
	names alloc.HostsFunc, zone *time.Location,
) string {
	end := alloc.AddTime(now, alloc.TimeLimit(spec))
	if end != alloc.Never {
		end = max(now, end-alloc.OverdueDelay)
	}
	mayDelay := spec.Extra != nil && spec.Extra.Signal != nil && spec.Extra.Signal.Reserve
	list := make([]*Reservation, 0, len(reservations))
	var own *Reservation // the one the job runs in
	for _, b := range reservations {
		r := New(b, names)
		r.UpdateWindows(now, zone)
		list = append(list, r)
		if b.Name == al.Inside() {
			own = r
		}
	}
	switch {
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
		if own.ConfinesNodes() && !own.Nodes[name] {
			return fmt.Sprintf("node %s is not in reservation %s", name, own.Name)
		}
		for _, r := range list {
			if r.Nodes[name] && !r.IsPartial() && own.MustAvoid(r) && r.Overlaps(now, end, r.AllowedDelay(mayDelay)) {
				return fmt.Sprintf("reservation %s has node %s before the job ends", r.Name, name)
			}
		}
	}
	return ""
}
