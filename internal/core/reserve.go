package core

import "time"

// purgeDefault is how long a reservation with PurgeCompleted stands idle before it goes, as Slurm.
const purgeDefault Seconds = 300

// Repeats reports whether the reservation comes again.
func (r *AdvanceReservation) Repeats() bool { return r.Flags&ReserveRepeats != 0 }

// Active reports whether the reservation goes on at now.
func (r *AdvanceReservation) Active(now Time, zone *time.Location) bool {
	if r.Flags&ReserveTimeFloat != 0 {
		return false // its start is always ahead, or it is no reservation of a time
	}
	start, end := r.Current(now, zone)
	return start <= now && now < end
}

// IdleFor is how long the reservation may stand idle before it goes.
func (r *AdvanceReservation) IdleFor() Seconds {
	if r.PurgeComp > 0 {
		return r.PurgeComp
	}
	return purgeDefault
}

// Meets reports whether two reservations go on at the same time at some moment from now on.
func (r *AdvanceReservation) Meets(o *AdvanceReservation, now Time, zone *time.Location) bool {
	if r.Flags&ReserveTimeFloat != 0 {
		return o.Flags&ReserveTimeFloat != 0 || o.Repeats() || o.End > now+r.Start-r.Created
	}
	if o.Flags&ReserveTimeFloat != 0 {
		return o.Meets(r, now, zone)
	}
	start, end := r.Current(now, zone)
	from, to := o.Current(now, zone)
	// What both do comes again after a week; the longest pause between two occurrences is a week too.
	until := max(start, from) + Time(15*24*time.Hour/time.Microsecond)
	for end > now && to > now && (start < until || from < until) {
		if start < to && from < end {
			return true
		}
		again := false
		if end <= to {
			start, end, again = r.After(start, end, zone)
		} else {
			from, to, again = o.After(from, to, zone)
		}
		if !again {
			return false
		}
	}
	return false
}

// ReservationChange is what is to change of an advance reservation. Nil fields stay.
type ReservationChange struct {
	Start     *Time          `json:"start,omitempty"`
	End       *Time          `json:"end,omitempty"`
	Duration  *Seconds       `json:"duration,omitempty"` // instead of End
	Nodes     *string        `json:"nodes,omitempty"`    // hostlist, or ALL
	NodeCount *int32         `json:"node_count,omitempty"`
	CoreCount *int32         `json:"core_count,omitempty"`
	Partition *PartitionName `json:"partition,omitempty"`
	Features  *Constraint    `json:"features,omitempty"`
	Users     *[]UserName    `json:"users,omitempty"`
	Projects  *[]ProjectName `json:"accounts,omitempty"`
	Groups    *[]string      `json:"groups,omitempty"`
	Licenses  *[]License     `json:"licenses,omitempty"`
	SetFlags  ReserveFlag    `json:"set_flags,omitempty"`
	DropFlags ReserveFlag    `json:"drop_flags,omitempty"`
	PurgeComp *Seconds       `json:"purge_comp,omitempty"`
	MaxDelay  *Seconds       `json:"max_start_delay,omitempty"`
	Comment   *string        `json:"comment,omitempty"`
}

// Apply changes r. What was chosen for it is chosen again where the change asks for something else.
func (c *ReservationChange) Apply(r *AdvanceReservation) {
	length := r.End - r.Start
	if c.Start != nil {
		r.Start = *c.Start
		r.End = r.Start + length
	}
	if c.End != nil {
		r.End = *c.End
	}
	if c.Duration != nil {
		r.End = r.Start.Add(c.Duration.Duration())
	}
	anew := false
	if c.Partition != nil {
		r.Partition, anew = *c.Partition, true
	}
	if c.Features != nil {
		r.Features, anew = *c.Features, true
	}
	if c.NodeCount != nil {
		anew = anew || *c.NodeCount != r.NodeCount
		r.NodeCount = *c.NodeCount
		r.Flags &^= ReserveSpecNodes | ReserveAllNodes
	}
	if c.CoreCount != nil {
		r.CoreCount, anew = *c.CoreCount, true
	}
	if anew && r.Flags&ReserveSpecNodes == 0 {
		r.Nodes = ""
	}
	if c.Nodes != nil {
		r.Nodes, r.NodeCount = *c.Nodes, 0
	}
	set(&r.Users, c.Users)
	set(&r.Projects, c.Projects)
	set(&r.Groups, c.Groups)
	set(&r.Licenses, c.Licenses)
	set(&r.PurgeComp, c.PurgeComp)
	set(&r.MaxDelay, c.MaxDelay)
	set(&r.Comment, c.Comment)
	if c.SetFlags&ReserveRepeats != 0 { // the other way to come again takes the place of the one it had
		r.Flags &^= ReserveRepeats
	}
	r.Flags = r.Flags&^c.DropFlags | c.SetFlags
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}
