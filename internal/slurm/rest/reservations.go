package rest

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/slurm/errno"
	"bireme.dev/bireme/internal/slurm/report/record"
	"bireme.dev/bireme/internal/slurm/schema"
)

// reserving is a call about advance reservations.
type reserving struct{ *Call }

func reserve(h func(reserving) (*schema.Record, error)) func(*Call) (*schema.Record, error) {
	return func(c *Call) (*schema.Record, error) { return h(reserving{c}) }
}

func listReservations(c reserving) (*schema.Record, error) {
	list, err := c.api.Client.Reservations(c.Context)
	if err != nil {
		return nil, err
	}
	return c.reservations(list.Reservations), nil
}

func showReservation(c reserving) (*schema.Record, error) {
	r, err := c.api.Client.Reservation(c.Context, c.Path("reservation_name"))
	if err != nil {
		return nil, badReservation(err, c.Path("reservation_name"))
	}
	return c.reservations([]client.Reservation{*r}), nil
}

func badReservation(err error, name string) error {
	if core.CodeOf(err) != core.NotFound {
		return err
	}
	return fail(http.StatusNotFound, 2053, "Requested reservation is invalid",
		"there is no reservation "+strconv.Quote(name))
}

func (c reserving) reservations(list []client.Reservation) *schema.Record {
	return record.Reservations(list, c.api.Now())
}

func deleteReservation(c reserving) (*schema.Record, error) {
	name := c.Path("reservation_name")
	if err := c.api.Client.DropReservation(c.Context, name); err != nil {
		return nil, badReservation(err, name)
	}
	return schema.New("openapi_resp"), nil
}

// putReservation makes a reservation, or changes the one of its name.
func putReservation(c reserving) (*schema.Record, error) {
	in, err := c.read()
	if err != nil {
		return nil, err
	}
	return c.putReservations([]schema.Input{in})
}

func putReservations(c reserving) (*schema.Record, error) {
	in, err := c.read()
	if err != nil {
		return nil, err
	}
	list := in.Records("reservations")
	if len(list) == 0 {
		return nil, fail(http.StatusBadRequest, errno.Parsing, "Failure during parsing", "reservations: there are none")
	}
	return c.putReservations(list)
}

func (c reserving) putReservations(list []schema.Input) (*schema.Record, error) {
	var done []*schema.Record
	for _, in := range list {
		change, err := reservationChange(in)
		if err != nil {
			return nil, err
		}
		name := in.Text("name")
		var made *client.Reservation
		if _, err = c.api.Client.Reservation(c.Context, name); name != "" && err == nil {
			made, err = c.api.Client.UpdateReservation(c.Context, name, change)
		} else {
			r := &client.NewReservation{AdvanceReservation: core.AdvanceReservation{Name: name}}
			change.Apply(&r.AdvanceReservation)
			if change.Duration != nil {
				r.Duration = *change.Duration
				r.End = 0
			}
			made, err = c.api.Client.NewReservation(c.Context, r)
		}
		if err != nil {
			return nil, err
		}
		done = append(done, madeRecord(made))
	}
	return schema.New(c.Endpoint.Reply).Set("reservations", done), nil
}

// madeRecord is a reservation as the answer to a change shows it.
func madeRecord(r *client.Reservation) *schema.Record {
	return schema.New("reservation_desc_msg").Set("name", r.Name).Set("start_time", schema.Time(r.Start)).
		Set("end_time", schema.Time(r.End)).Set("duration", schema.Int(int64(r.End.Sub(r.Start)/time.Minute))).
		Set("node_list", r.Nodes).Set("node_count", schema.Int(r.NodeCount)).Set("core_count", schema.Positive(r.CoreCount)).
		Set("users", record.Joined(r.Users)).Set("accounts", record.Joined(r.Projects)).Set("groups", r.Groups).
		Set("partition", string(r.Partition)).Set("features", r.Features.String()).Set("comment", r.Comment).
		Set("flags", record.ReservationWords(r.Flags))
}

func reservationChange(in schema.Input) (*core.ReservationChange, error) {
	ch := &core.ReservationChange{}
	stamp := func(name string, to **core.Time) {
		if n := in.Number(name); n.IsSet() && n.Whole() > 0 {
			t := core.At(time.Unix(n.Whole(), 0))
			*to = &t
		}
	}
	stamp("start_time", &ch.Start)
	stamp("end_time", &ch.End)
	if n := in.Number("duration"); n.IsInfinite() {
		forever := core.Seconds(365 * 24 * 3600)
		ch.Duration = &forever
	} else if n.IsSet() {
		d := core.Seconds(n.Whole() * 60)
		ch.Duration = &d
	}
	if list := in.List("node_list"); len(list) > 0 {
		hosts := strings.Join(list, ",")
		ch.Nodes = &hosts
	}
	for name, to := range map[string]**int32{"node_count": &ch.NodeCount, "core_count": &ch.CoreCount} {
		if n := in.Number(name); n.IsSet() {
			v := int32(n.Whole())
			if int64(v) != n.Whole() || v < 0 {
				return nil, badField(name, strconv.FormatInt(n.Whole(), 10))
			}
			*to = &v
		}
	}
	if s := in.Text("partition"); s != "" {
		p := core.PartitionName(s)
		ch.Partition = &p
	}
	if s := in.Text("features"); s != "" {
		ch.Features = new(core.Constraint)
		_ = ch.Features.UnmarshalText([]byte(s)) // what does not parse is kept: the server refuses it
	}
	if list := in.List("users"); len(list) > 0 {
		ch.Users = named[core.UserName](list)
	}
	if list := in.List("accounts"); len(list) > 0 {
		ch.Projects = named[core.ProjectName](list)
	}
	if list := in.List("groups"); len(list) > 0 {
		ch.Groups = &list
	}
	if s := in.Text("comment"); s != "" {
		ch.Comment = &s
	}
	if text := strings.Join(in.List("licenses"), ","); text != "" {
		list, _, err := grammar.ParseLicenses(text)
		if err != nil {
			return nil, badField("licenses", text)
		}
		licenses := []core.License{}
		for _, l := range list {
			licenses = append(licenses, core.License{Name: l.Name, Total: l.Count})
		}
		ch.Licenses = &licenses
	}
	for name, to := range map[string]**core.Seconds{
		"max_start_delay": &ch.MaxDelay, "purge_completed.time": &ch.PurgeComp,
	} {
		if n := in.Number(name); n.IsSet() {
			v := core.Seconds(n.Whole())
			if n.IsInfinite() || v < 0 {
				return nil, badField(name, strconv.FormatInt(n.Whole(), 10))
			}
			*to = &v
		}
	}
	if in.Text("burst_buffer") != "" || len(in.Records("tres")) > 0 {
		return nil, fail(http.StatusBadRequest, 2036, "Requested operation not supported on this system",
			"burst_buffer and tres of a reservation are not supported; name node_count, core_count or licenses")
	}
	return ch, reservationFlags(in.List("flags"), ch)
}

func named[T ~string](list []string) *[]T {
	out := make([]T, len(list))
	for i, w := range list {
		out[i] = T(w)
	}
	return &out
}

// reservationFlags reads flags: NO_X takes X away. SPEC_NODES only says that nodes are named.
func reservationFlags(list []string, ch *core.ReservationChange) error {
	set, drop := []string{}, []string{}
	for _, w := range list {
		w = strings.ToUpper(w)
		switch rest, no := strings.CutPrefix(w, "NO_"); {
		case w == "SPEC_NODES" || w == "PART_NODES":
		case no && w != "NO_HOLD_JOBS_AFTER_END":
			drop = append(drop, rest)
		default:
			set = append(set, w)
		}
	}
	for _, f := range []struct {
		words []string
		to    *core.ReserveFlag
	}{{set, &ch.SetFlags}, {drop, &ch.DropFlags}} {
		text, err := json.Marshal(f.words)
		if err == nil {
			err = f.to.UnmarshalJSON(text)
		}
		if err != nil {
			return fail(http.StatusBadRequest, errno.Parsing, "Failure during parsing", "flags: "+err.Error())
		}
	}
	return nil
}
