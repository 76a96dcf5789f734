package state

import (
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
)

// season makes some jobs ask for licenses, reservations, an end by some time, or for less time.
func (c *chaos) season(s *core.Spec) {
	if c.choose(3) > 0 {
		return
	}
	x := *s.More()
	x.Licenses = coretest.Licenses(c.pick("", "", "l", "l:2", "l:3,m", "l:2|m", "m:9"))
	x.Reservation = c.pick("", "", "r1", "r2", "r1,r2")
	if c.choose(4) == 0 {
		x.Deadline = c.now.Add(time.Duration(c.choose(4)) * time.Hour)
	}
	if c.choose(4) == 0 {
		x.TimeMin = core.Seconds(60 * c.choose(30))
	}
	s.Extra = &x
}

// reserve makes, changes and removes advance reservations.
func (c *chaos) reserve() {
	name := c.pick("r1", "r2")
	if c.choose(4) == 0 {
		_, _ = c.do(&DropReservation{By: root, Name: name})
		return
	}
	start := c.now.Add(time.Duration(c.choose(5)) * 20 * time.Minute)
	r := &core.AdvanceReservation{
		Name: name, Start: start, End: start.Add(time.Duration(1+c.choose(8)) * 15 * time.Minute),
		Nodes: c.pick("n1", "n2", "n[1-2]", "ALL", ""),
	}
	if r.Nodes == "" {
		r.Licenses = []core.License{{Name: "l", Total: int64(1 + c.choose(3))}}
	} else if c.choose(4) == 0 {
		r.CoreCount = int32(1 + c.choose(2))
	}
	switch c.choose(3) {
	case 0:
		r.Users = []core.UserName{core.UserName(c.pick("alice", "bob", "-bob"))}
	default:
		r.Projects = []core.ProjectName{core.ProjectName(c.pick("default", "-p1"))}
	}
	for _, f := range []core.ReserveFlag{
		core.ReserveIgnoreJobs, core.ReserveIgnoreJobs, core.ReserveDaily, core.ReserveFlex, core.ReserveMagnetic,
		core.ReserveOverlap, core.ReserveMaint,
		core.ReservePurgeCompleted, core.ReserveReplace, core.ReserveTimeFloat, core.ReserveNoHold,
	} {
		if c.choose(5) == 0 {
			r.Flags |= f
		}
	}
	_, _ = c.do(&PutReservation{By: root, Reservation: r, New: c.choose(2) == 0})
}

// wish changes what a job asks for.
func (c *chaos) wish() {
	text := c.pick("", "l", "m", "r1", "r2")
	in := &UpdateJob{By: root, Job: c.live()}
	switch c.choose(3) {
	case 0:
		in.Wish.Licenses = ptr(coretest.Licenses(text))
	case 1:
		in.Wish.Reservation = &text
	default:
		at := c.now.Add(time.Duration(c.choose(3)) * time.Hour)
		in.Wish.Deadline = &at
	}
	_, _ = c.do(in)
}
