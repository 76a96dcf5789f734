package nodes

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"bireme.dev/bireme/internal/account"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/engine/state/speccheck"
	"bireme.dev/bireme/internal/server/api/call"
)

// Reservations shows and changes advance reservations.
type Reservations struct{ *call.Base }

func (a *Reservations) List(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	page, err := call.ParsePage(r.URL.Query())
	if err != nil {
		return nil, err
	}
	after, err := page.AfterNumber()
	if err != nil {
		return nil, err
	}
	v, err := a.Viewer(who)
	if err != nil {
		return nil, err
	}
	list := slices.Clone(v.Reservations())
	slices.SortFunc(list, func(x, y *core.AdvanceReservation) int { return cmp.Compare(x.ID, y.ID) })
	out := &client.ReservationList{Reservations: []client.Reservation{}, Now: a.Now(v.Snap)}
	for _, r := range list {
		if int64(r.ID) > after && len(out.Reservations) <= page.Limit {
			out.Reservations = append(out.Reservations, a.showReservation(v.Snap, r))
		}
	}
	out.Reservations, out.Page = call.Cut(page, out.Reservations, func(r *client.Reservation) string {
		return strconv.FormatInt(int64(r.ID), 10)
	})
	return out, nil
}

func (a *Reservations) Show(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	v, err := a.Viewer(who)
	if err != nil {
		return nil, err
	}
	found, err := v.Reservation(r.PathValue("name"))
	if err != nil {
		return nil, err
	}
	return a.showReservation(v.Snap, found), nil
}

// showReservation sets the current times of a reservation.
func (a *Reservations) showReservation(snap *state.Snapshot, r *core.AdvanceReservation) client.Reservation {
	now := a.Now(snap)
	out := client.Reservation{AdvanceReservation: *r, State: "INACTIVE", Cores: r.CoreCount, CPUs: r.CoreCount}
	if r.Flags&core.ReserveTimeFloat != 0 {
		ahead := now - r.Created
		out.Start, out.End = r.Start+ahead, r.End+ahead
	} else {
		out.Start, out.End = r.Current(now, time.Local)
	}
	if r.Active(now, time.Local) {
		out.State = "ACTIVE"
	}
	if r.CoreCount == 0 {
		for _, n := range reserved(r) {
			if n, ok := snap.Node(n); ok {
				out.Cores += coresOf(n)
				out.CPUs += n.Hardware.CPUs
			}
		}
	}
	return out
}

// coresOf counts a node's cores, as against its threads.
func coresOf(n *core.Node) int32 { return n.Hardware.CPUs / max(1, n.Hardware.Threads) }

func reserved(r *core.AdvanceReservation) []core.NodeName {
	if r.Nodes == "" {
		return nil
	}
	names, err := hostlist.Expand(r.Nodes, 1<<20)
	core.Assert(err == nil, "reservation %s was checked: %v", r.Name, err)
	out := make([]core.NodeName, len(names))
	for i, n := range names {
		out[i] = core.NodeName(n)
	}
	return out
}

func (a *Reservations) Create(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	var in client.NewReservation
	if err := call.Decode(r, &in); err != nil {
		return nil, err
	}
	v := in.AdvanceReservation
	if err := speccheck.ReservationTexts(&v); err != nil { // each user and group is looked up below
		return nil, err
	}
	if v.Start == 0 {
		v.Start = core.At(time.Now())
	}
	switch {
	case in.Duration != 0 && v.End != 0:
		return nil, core.Errorf(core.Invalid, "a reservation cannot have both an end and a duration").
			Because("invalid_time_value")
	case in.Duration != 0:
		v.End = v.Start.Add(in.Duration.Duration())
	}
	if err := a.meet(r, who, v.Users); err != nil {
		return nil, err
	}
	if err := knownGroups(v.Groups); err != nil {
		return nil, err
	}
	who.About("reservation", v.Name)
	reply, err := engine.Do(r.Context(), a.Engine, &state.PutReservation{By: who.Identity, Reservation: &v, New: true})
	if err != nil {
		return nil, err
	}
	return a.showReservation(a.Engine.Snapshot(), reply), nil
}

func (a *Reservations) Update(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	var in core.ReservationChange
	if err := call.Decode(r, &in); err != nil {
		return nil, err
	}
	var said core.AdvanceReservation
	in.Apply(&said)
	if err := speccheck.ReservationTexts(&said); err != nil { // each user and group is looked up below
		return nil, err
	}
	if in.Users != nil {
		if err := a.meet(r, who, *in.Users); err != nil {
			return nil, err
		}
	}
	if in.Groups != nil {
		if err := knownGroups(*in.Groups); err != nil {
			return nil, err
		}
	}
	reply, err := engine.Do(r.Context(), a.Engine,
		&state.UpdateReservation{By: who.Identity, Name: r.PathValue("name"), Change: in})
	if err != nil {
		return nil, err
	}
	return a.showReservation(a.Engine.Snapshot(), reply), nil
}

func (a *Reservations) Delete(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	if _, err := engine.Do(r.Context(), a.Engine,
		&state.DropReservation{By: who.Identity, Name: r.PathValue("name")}); err != nil {
		return nil, err
	}
	return call.OK{}, nil
}

// meet makes accounts of this host known to the cluster before their first visit: a reservation may be made for them.
// Where accounts are enforced, and for names that are no account, it is left to the engine to refuse them.
func (a *Reservations) meet(r *http.Request, who *call.Caller, users []core.UserName) error {
	snap, err := a.Snapshot()
	if err != nil || !who.Admin || a.Enforced().Associations {
		return err
	}
	for _, u := range users {
		name := strings.TrimPrefix(string(u), "-")
		if _, known := snap.User(core.UserName(name)); known {
			continue
		}
		if acc, err := call.AccountOf(name, nil); err == nil {
			if _, err := engine.Do(r.Context(), a.Engine, &state.EnsureUser{UID: acc.UID, UnixName: acc.Name}); err != nil {
				return err
			}
		}
	}
	return nil
}

// knownGroups refuses groups that this host does not know.
func knownGroups(list []string) error {
	for _, name := range list {
		if _, err := account.GroupByName(name); err != nil {
			return core.Errorf(core.Invalid, "there is no group %q on this host", name).Because("invalid_group")
		}
	}
	return nil
}

// setAside returns which nodes are in an active reservation, and whether for maintenance.
func (a *Reservations) setAside(snap *state.Snapshot) map[core.NodeName]*aside {
	out := map[core.NodeName]*aside{}
	for _, r := range snap.Reservations() {
		if !r.Active(a.Now(snap), time.Local) || r.CoreCount > 0 {
			continue
		}
		for _, n := range reserved(r) {
			at := out[n]
			if at == nil {
				at = &aside{name: r.Name}
				out[n] = at
			}
			at.maint = at.maint || r.Flags&core.ReserveMaint != 0
		}
	}
	return out
}

// aside is what a reservation makes of a node.
type aside struct {
	name  string // of the first reservation, by name
	maint bool
}
