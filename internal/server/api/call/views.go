package call

import (
	"errors"
	"regexp"

	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/api/view"
)

// Viewer returns a caller's view of the present state; nil is a stranger, who sees what is public.
func (a *Base) Viewer(who *Caller) (*view.Viewer, error) {
	snap, err := a.Snapshot()
	if err != nil {
		return nil, err
	}
	return a.ViewOf(who, snap), nil
}

func (a *Base) ViewOf(who *Caller, snap *state.Snapshot) *view.Viewer {
	v := &view.Viewer{Snap: snap, Visibility: view.Visibility{Private: a.Settings().Private()}}
	if who == nil {
		return v
	}
	v.User, v.Admin = who.User, who.Admin
	if v.Admin || v.Private == 0 { // nothing is hidden: nothing is asked
		return v
	}
	roles := map[core.ProjectName]core.Role{} // one look a project, however many jobs it has
	v.Role = func(p core.ProjectName) core.Role {
		r, known := roles[p]
		if !known {
			r = snap.Role(who.User, p)
			roles[p] = r
		}
		return r
	}
	v.Groups = func() []string { return GroupNames(who.UID) }
	return v
}

var closedReservation = regexp.MustCompile(`^reservation (\S+) is not for `)

// Mask keeps a refusal from telling what the caller is not to know: the ids of jobs that are hidden, and that a
// reservation is there which is not for them.
func (a *Base) Mask(who *Caller, err error) error {
	var e *core.Error
	if err == nil || who == nil || who.UserRecord == nil || who.Admin || a.Settings().Private() == 0 ||
		!errors.As(err, &e) {
		return err
	}
	v, verr := a.Viewer(who)
	if verr != nil {
		return verr
	}
	told := *e
	if e.Code == core.Conflict || e.Code == core.Denied {
		told.Message = v.Sentence(e.Message, 0)
	}
	if m := closedReservation.FindStringSubmatch(e.Message); m != nil && v.Hides(config.PrivateReservations) {
		told = *core.Errorf(core.Invalid, "there is no reservation %q that jobs can run in", m[1]).
			Because("invalid_reservation")
	}
	return &told
}
