package rest

import (
	"math"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
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
