package client

import (
	"context"
	"net/url"

	"bireme.dev/bireme/internal/core"
)

// Reservation is an advance reservation as the API shows it: its times are those of the occurrence that is active or
// comes next.
type Reservation struct {
	core.AdvanceReservation
	State string `json:"state"` // "ACTIVE", "INACTIVE"
	Cores int32  `json:"cores"` // of all its nodes, or as many as it has of them
	CPUs  int32  `json:"cpus"`
}

// ReservationList answers GET /api/v1/reservations.
type ReservationList struct {
	Reservations []Reservation `json:"reservations"` // in the order they were made
	Now          core.Time     `json:"now"`
	Page
}

// NewReservation is the body of POST /api/v1/reservations. Without a name it gets one; without a start it starts now.
type NewReservation struct {
	core.AdvanceReservation
	Duration core.Seconds `json:"duration,omitempty"` // instead of End
}

// Reservations lists advance reservations.
func (c *ReservationClient) Reservations(ctx context.Context) (*ReservationList, error) {
	read := func(q url.Values) (*ReservationList, error) {
		return get[ReservationList](ctx, c, api+"/reservations", q)
	}
	return everyPage(read, func(to, from *ReservationList) {
		to.Reservations = append(to.Reservations, from.Reservations...)
	})
}

// Reservation returns one.
func (c *ReservationClient) Reservation(ctx context.Context, name string) (*Reservation, error) {
	return get[Reservation](ctx, c, api+"/reservations/"+url.PathEscape(name), nil)
}

// NewReservation makes one.
func (c *ReservationClient) NewReservation(ctx context.Context, r *NewReservation) (*Reservation, error) {
	out := new(Reservation)
	if err := c.do(ctx, call{method: "POST", path: api + "/reservations", body: r}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// UpdateReservation changes one.
func (c *ReservationClient) UpdateReservation(ctx context.Context, name string,
	r *core.ReservationChange,
) (*Reservation, error) {
	out := new(Reservation)
	if err := c.do(ctx, call{
		method: "PATCH", path: api + "/reservations/" + url.PathEscape(name), body: r,
		again: always,
	}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// DropReservation removes one.
func (c *ReservationClient) DropReservation(ctx context.Context, name string) error {
	return c.do(ctx, call{method: "DELETE", path: api + "/reservations/" + url.PathEscape(name)}, nil)
}
