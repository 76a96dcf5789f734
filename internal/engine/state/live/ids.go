package live

import "bireme.dev/bireme/internal/core"

// LastIDs gives out ids for records that can be deleted: none is given twice.
type LastIDs struct {
	last  core.LastIDs
	given bool // since the last batch ended
}

// The ids that Slurm gives without a record: QOS normal, account root and user root in it.
const (
	normalQOS          = "normal"
	normalQOSID        = 1
	reservedProjectIDs = 2
)

func newLastIDs(stored core.LastIDs) LastIDs {
	stored.QOS, stored.Project = max(stored.QOS, normalQOSID), max(stored.Project, reservedProjectIDs)
	return LastIDs{last: stored}
}

// NextReservationID is an id that no reservation has had. It is given once a reservation with it is stored.
func (l *LastIDs) NextReservationID() int64 { return l.last.Reservation + 1 }

// TakeProjectID gives out an id that no project and no member of one has had.
func (l *LastIDs) TakeProjectID() int64 {
	l.give(&l.last.Project, l.last.Project+1)
	return l.last.Project
}

// LoadProjectID notes an id that is in the store already. Where the store does not know it as given, as of an earlier
// build, the next batch says so: its record may be deleted in it.
func (l *LastIDs) LoadProjectID(id int64) { l.give(&l.last.Project, id) }

// qosID is the id that a QOS has, or one that none has had.
func (l *LastIDs) qosID(name core.QOSName, old *core.QOS) int64 {
	if old != nil && old.ID != 0 {
		return old.ID
	}
	if name == normalQOS {
		return normalQOSID
	}
	return l.last.QOS + 1
}

// give notes that a new record has an id. last is a field of l.last.
func (l *LastIDs) give(last *int64, id int64) {
	if id > *last {
		*last, l.given = id, true
	}
}

// takeGiven returns the last ids for the store, nil if none was given since it was asked before.
func (l *LastIDs) takeGiven() *core.LastIDs {
	if !l.given {
		return nil
	}
	l.given = false
	last := l.last
	return &last
}
