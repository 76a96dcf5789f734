package server_test

import (
	"strings"
	"testing"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/servertest"
)

// TestReservationsByTheAPI: they are made, shown, changed and removed, survive a restart, and show on their nodes.
func TestReservationsByTheAPI(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t, "licenses=matlab:4")
	ann, _, _, _ := people(s)
	now := core.At(time.Now())
	hour := core.Time(time.Hour / time.Microsecond)
	body := func(f func(*client.NewReservation)) *client.NewReservation {
		r := &client.NewReservation{}
		r.Name, r.Nodes, r.Users, r.Duration = "maint", "idle", []core.UserName{"ann"}, 7200
		r.Start = now + hour
		f(r)
		return r
	}
	var made client.Reservation
	s.Must("POST", "/api/v1/reservations", body(func(r *client.NewReservation) {
		r.Flags = core.ReserveMaint | core.ReserveDaily
	}), &made)
	if made.State != "INACTIVE" || made.Cores != 4 || made.NodeCount != 1 || made.End != made.Start+2*hour ||
		made.Flags&core.ReserveSpecNodes == 0 {
		t.Errorf("made: %+v", made)
	}
	// An account of this host that never came is let in; the reservation is named after it.
	s.Must("POST", "/api/v1/reservations", body(func(r *client.NewReservation) {
		r.Name, r.Start, r.Users, r.Flags = "", 0, []core.UserName{"bin"}, core.ReserveOverlap
	}), &made)
	if made.Name != "bin_2" || made.State != "ACTIVE" {
		t.Errorf("made: %+v", made)
	}
	if st := nodeState(s, "idle"); st != "UNKNOWN+RESERVED" {
		t.Errorf("the node is %s", st)
	}
	s.Stop()
	s.Start()
	var list client.ReservationList
	if _, err := s.Call("GET", "/api/v1/reservations", ann, nil, &list); err != nil || len(list.Reservations) != 2 ||
		list.Reservations[0].Name != "maint" {
		t.Fatalf("after a restart: %+v %v", list, err)
	}
	s.Must("PATCH", "/api/v1/reservations/maint", map[string]any{"start": now, "duration": 600}, &made)
	if made.State != "ACTIVE" || made.End != now+hour/6 || made.Flags&core.ReserveDaily == 0 {
		t.Errorf("changed: %+v", made)
	}
	if st := nodeState(s, "idle"); st != "UNKNOWN+MAINTENANCE+RESERVED" {
		t.Errorf("the node is %s", st)
	}
	calls := []struct {
		what, method, path, token string
		body                      any
		status                    int
		reason, text              string
	}{
		{"ann makes one", "POST", "", ann, body(func(r *client.NewReservation) { r.Name = "x" }), 403, "access_denied", ""},
		{"ann removes one", "DELETE", "/maint", ann, nil, 403, "access_denied", ""},
		{"one that is there", "POST", "", "", body(func(*client.NewReservation) {}), 409, "reservation_exists", ""},
		{
			"one in the way", "POST", "", "", body(func(r *client.NewReservation) { r.Name, r.Start = "x", now+24*hour }),
			409, "reservation_overlap", "maint on idle",
		},
		{
			"one for nobody", "POST", "", "", body(func(r *client.NewReservation) { r.Name, r.Users = "x", nil }), 400,
			"reservation_empty", "",
		},
		{"one for a stranger", "POST", "", "", body(func(r *client.NewReservation) {
			r.Name, r.Users = "x", []core.UserName{"no-such"}
		}), 400, "invalid_user", "no-such"},
		{"one for a group that is none", "POST", "", "", body(func(r *client.NewReservation) {
			r.Name, r.Groups = "x", []string{"no-such-group"}
		}), 400, "invalid_group", "no-such-group"},
		{"of a node that is not there", "POST", "", "", body(func(r *client.NewReservation) {
			r.Name, r.Nodes = "x", "n77"
		}), 400, "invalid_node", "n77"},
		{"of too many licenses", "POST", "", "", body(func(r *client.NewReservation) {
			r.Name, r.Licenses = "x", []core.License{{Name: "matlab", Total: 5}}
		}), 409, "invalid_license", "matlab"},
		{"for more users than may be", "POST", "", "", body(func(r *client.NewReservation) {
			r.Name, r.Users = "x", make([]core.UserName, 5000)
		}), 400, "invalid_field", "users: 5000 entries; the limit is 4096"},
		{"a long comment", "POST", "", "", body(func(r *client.NewReservation) {
			r.Name, r.Comment = "x", strings.Repeat("x", 5000)
		}), 413, "field_too_long", "comment has 5000 bytes; the limit is 4096"},
		{
			"a comment made long", "PATCH", "/maint", "",
			map[string]any{"comment": strings.Repeat("x", 5000)},
			413,
			"field_too_long", "comment has 5000 bytes; the limit is 4096",
		},
		{"a flag that is none", "POST", "", "", `{"name":"x","flags":["DIALY"]}`, 400, "bad_json", "did you mean DAILY?"},
		{
			"a key that is none", "POST", "", "", `{"name":"x","nods":"n1"}`, 400, "bad_json",
			"nods: there is no such key; did you mean nodes?",
		},
		{
			"an end and a duration", "POST", "", "", body(func(r *client.NewReservation) { r.End = now + hour }), 400,
			"invalid_time_value", "",
		},
		{"none of that name", "GET", "/zz", "", nil, 404, "invalid_reservation", "zz"},
		{"change of none", "PATCH", "/mint", "", map[string]any{}, 404, "invalid_reservation", "did you mean maint?"},
		{"removal of none", "DELETE", "/zz", "", nil, 404, "invalid_reservation", ""},
	}
	for _, c := range calls {
		status, err := s.Call(c.method, "/api/v1/reservations"+c.path, c.token, c.body, nil)
		if err == nil || status != c.status || err.Reason != c.reason || !strings.Contains(err.Message, c.text) {
			t.Errorf("%s: %d %+v, want %d %s %q", c.what, status, err, c.status, c.reason, c.text)
		}
	}
	s.Must("DELETE", "/api/v1/reservations/maint", nil, nil)
	s.Must("DELETE", "/api/v1/reservations/bin_2", nil, nil)
	s.Must("GET", "/api/v1/reservations", nil, &list)
	if st := nodeState(s, "idle"); len(list.Reservations) != 0 || st != "UNKNOWN" {
		t.Errorf("left over: %+v, the node is %s", list, st)
	}
}
