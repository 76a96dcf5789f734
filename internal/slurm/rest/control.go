package rest

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/schema"
)

func listLicenses(c *Call) (*schema.Record, error) {
	list, err := c.api.Client.Licenses(c.Context)
	if err != nil {
		return nil, err
	}
	records := []*schema.Record{}
	for i := range list.Licenses {
		l := &list.Licenses[i]
		records = append(records, schema.New("license").Set("LicenseName", l.Name).Set("Total", l.Total).
			Set("Used", l.Used).Set("Free", l.Free()).Set("Reserved", l.Reserved).Set("LastUpdate", c.api.Now().Unix()))
	}
	return schema.New("openapi_licenses_resp").Set("licenses", records).Set("last_update", c.lastUpdate()), nil
}

func reconfigure(c *Call) (*schema.Record, error) {
	if _, err := c.api.Client.Reconfigure(c.Context, &client.Reconfigure{}); err != nil {
		return nil, err
	}
	return schema.New("openapi_resp"), nil
}

// diagnose shows how the server fares. One pass of the planner does the work of Slurm's main scheduler and of its
// backfill, so that both show the same passes.
func diagnose(c *Call) (*schema.Record, error) {
	d, err := c.api.Client.Diag(c.Context)
	if err != nil {
		return nil, err
	}
	p := &d.Passes
	mean, minute := int64(0), int64(0)
	if p.Count > 0 {
		mean = p.Total / p.Count
	}
	if passed := d.Now.Sub(d.Since).Minutes(); passed > 0 {
		minute = int64(float64(p.Count) / passed)
	}
	s := schema.New("stats_msg").
		Set("parts_packed", 1).Set("req_time", schema.Time(d.Now)).Set("req_time_start", schema.Time(d.Since)).
		Set("server_thread_count", 1+d.Streams).Set("agent_queue_size", d.Waiting).
		Set("schedule_cycle_max", small(p.Longest)).Set("schedule_cycle_last", small(p.Last)).
		Set("schedule_cycle_sum", small(p.Total)).Set("schedule_cycle_total", small(p.Count)).
		Set("schedule_cycle_mean", mean).Set("schedule_cycle_mean_depth", d.Pending).
		Set("schedule_cycle_per_minute", minute).Set("schedule_cycle_depth", small(d.Pending)).
		Set("schedule_queue_length", small(d.Pending)).
		Set("jobs_submitted", small(d.Jobs.Submitted)).Set("jobs_started", small(d.Jobs.Started)).
		Set("jobs_completed", small(d.Jobs.Completed)).Set("jobs_canceled", small(d.Jobs.Canceled)).
		Set("jobs_failed", small(d.Jobs.Failed)).Set("jobs_pending", small(d.Pending)).
		Set("jobs_running", small(d.Running)).Set("job_states_ts", schema.Time(d.Now)).
		Set("bf_backfilled_jobs", small(p.Backfilled)).Set("bf_last_backfilled_jobs", small(p.BackfilledSince)).
		Set("bf_cycle_counter", small(p.Count)).Set("bf_cycle_mean", mean).Set("bf_cycle_sum", p.Total).
		Set("bf_cycle_last", small(p.Last)).Set("bf_cycle_max", small(p.Longest)).
		Set("bf_last_depth", small(d.Pending)).Set("bf_last_depth_try", small(d.Pending)).
		Set("bf_depth_mean", d.Pending).Set("bf_depth_mean_try", d.Pending).Set("bf_queue_len", small(d.Pending)).
		Set("bf_queue_len_mean", d.Pending).Set("bf_when_last_cycle", schema.Time(p.LastAt)).
		Set("rpcs_by_message_type", rpcs(d.Calls, false)).Set("rpcs_by_user", rpcs(d.Users, true))
	return schema.New("openapi_diag_resp").Set("statistics", s), nil
}

// small bounds a count to what clients have for it.
func small(n int64) int64 { return min(n, math.MaxInt32) }

func rpcs(calls []client.CallCount, users bool) []*schema.Record {
	list := make([]*schema.Record, 0, len(calls))
	for i := range calls {
		k := &calls[i]
		r := schema.New("stats_msg_rpc_type").Set("message_type", k.Name).Set("type_id", i)
		if users {
			r = schema.New("stats_msg_rpc_user").Set("user", k.Name).Set("user_id", k.UID)
		}
		list = append(list, r.Set("count", small(k.Count)).Set("total_time", k.Total).
			Set("average_time", schema.Int(k.Total/max(1, k.Count))))
	}
	return list
}

func listShares(c *Call) (*schema.Record, error) {
	list, err := c.api.Client.Shares(c.Context)
	if err != nil {
		return nil, err
	}
	info, err := c.info()
	if err != nil {
		return nil, err
	}
	users, accounts := words(c.Query, "users"), words(c.Query, "accounts")
	records, total := []*schema.Record{}, int64(0)
	for i := range list.Shares {
		s := &list.Shares[i]
		if s.User == "" && s.Parent == "" && s.Shares != core.SharesParent {
			total += s.Shares
		}
		if len(accounts) > 0 && !has(accounts, string(s.Project)) || len(users) > 0 && !has(users, string(s.User)) {
			continue
		}
		name, parent, kind := string(s.Project), string(s.Parent), "ASSOCIATION"
		if s.User != "" {
			name, parent, kind = string(s.User), string(s.Project), "USER"
		} else if parent == "" && name != "root" {
			parent = "root"
		}
		shares := schema.Int(s.Shares)
		if s.Shares == core.SharesParent {
			shares = schema.Infinite
		}
		level := schema.Float(s.Level)
		if s.Level < 0 {
			level = schema.Infinite
		}
		records = append(records, schema.New("assoc_shares_obj_wrap").Set("id", i+1).Set("cluster", info.Name).
			Set("name", name).Set("parent", parent).Set("shares", shares).Set("shares_normalized", schema.Float(s.Norm)).
			Set("effective_usage", schema.Float(s.Effective)).Set("usage_normalized", schema.Float(s.NormUsage)).
			Set("usage", int64(s.Usage)).Set("type", []string{kind}).
			Set("fairshare", schema.New("assoc_shares_fairshare").Set("factor", schema.Float(s.Factor)).
				Set("level", level)).
			Set("tres", schema.New("assoc_shares_tres").Set("run_seconds", shareTRES(s.RunTRES, 60)).
				Set("group_minutes", shareTRES(s.GrpTRESMins, 1)).Set("usage", usageTRES(s.UsageTRES))))
	}
	return schema.New("openapi_shares_resp").Set("shares", schema.New("shares_resp_msg").Set("shares", records).
		Set("total_shares", total)), nil
}

func shareTRES(t core.TRES, times int64) []*schema.Record {
	list := []*schema.Record{}
	for _, a := range t {
		list = append(list, schema.New("shares_uint64_tres").Set("name", a.Name).Set("value", schema.Int(a.Count*times)))
	}
	return list
}

func usageTRES(t core.TRES) []*schema.Record {
	list := []*schema.Record{}
	for _, a := range t {
		list = append(list, schema.New("shares_float128_tres").Set("name", a.Name).
			Set("value", schema.Float(float64(a.Count)*60)))
	}
	return list
}

func listReservations(c *Call) (*schema.Record, error) {
	list, err := c.api.Client.Reservations(c.Context)
	if err != nil {
		return nil, err
	}
	return c.reservations(list.Reservations), nil
}

func showReservation(c *Call) (*schema.Record, error) {
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

func (c *Call) reservations(list []client.Reservation) *schema.Record {
	records := []*schema.Record{}
	for i := range list {
		records = append(records, reservationRecord(&list[i]))
	}
	return schema.New("openapi_reservation_resp").Set("reservations", records).Set("last_update", c.lastUpdate())
}

func reservationRecord(r *client.Reservation) *schema.Record {
	var licenses []string
	for _, l := range r.Licenses {
		licenses = append(licenses, l.Name+":"+strconv.FormatInt(l.Total, 10))
	}
	out := schema.New("reservation_info").
		Set("name", r.Name).Set("start_time", schema.Time(r.Start)).Set("end_time", schema.Time(r.End)).
		Set("node_list", r.Nodes).Set("node_count", r.NodeCount).Set("core_count", r.Cores).
		Set("features", r.Features.String()).Set("partition", string(r.Partition)).Set("groups", strings.Join(r.Groups, ",")).
		Set("users", joined(r.Users)).Set("accounts", joined(r.Projects)).Set("licenses", strings.Join(licenses, ",")).
		Set("flags", reservationWords(r.Flags)).Set("max_start_delay", int64(r.MaxDelay)).Set("watts", schema.Number{})
	if r.PurgeComp > 0 {
		out.Set("purge_completed", schema.New("reservation_info_purge").Set("time", schema.Int(int64(r.PurgeComp))))
	}
	if r.CPUs > 0 {
		out.Set("tres", "cpu="+strconv.Itoa(int(r.CPUs)))
	}
	return out
}

// reservationWords are the flags of a reservation that clients know.
func reservationWords(f core.ReserveFlag) []string {
	list := []string{}
	for _, w := range f.Words() {
		if w == "PURGE_COMP" || schema.Known("reservation_flag", w) {
			list = append(list, w)
		}
	}
	return list
}

func joined[T ~string](list []T) string {
	all := make([]string, len(list))
	for i, w := range list {
		all[i] = string(w)
	}
	return strings.Join(all, ",")
}

func deleteReservation(c *Call) (*schema.Record, error) {
	name := c.Path("reservation_name")
	if err := c.api.Client.DropReservation(c.Context, name); err != nil {
		return nil, badReservation(err, name)
	}
	return schema.New("openapi_resp"), nil
}

// putReservation makes a reservation, or changes the one of its name.
func putReservation(c *Call) (*schema.Record, error) {
	in, err := c.read()
	if err != nil {
		return nil, err
	}
	return c.putReservations([]schema.Input{in})
}

func putReservations(c *Call) (*schema.Record, error) {
	in, err := c.read()
	if err != nil {
		return nil, err
	}
	list := in.Records("reservations")
	if len(list) == 0 {
		return nil, fail(http.StatusBadRequest, slurm.ErrnoParsing, "Failure during parsing", "reservations: there are none")
	}
	return c.putReservations(list)
}

func (c *Call) putReservations(list []schema.Input) (*schema.Record, error) {
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
		Set("users", joined(r.Users)).Set("accounts", joined(r.Projects)).Set("groups", r.Groups).
		Set("partition", string(r.Partition)).Set("features", r.Features.String()).Set("comment", r.Comment).
		Set("flags", reservationWords(r.Flags))
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
			return fail(http.StatusBadRequest, slurm.ErrnoParsing, "Failure during parsing", "flags: "+err.Error())
		}
	}
	return nil
}
