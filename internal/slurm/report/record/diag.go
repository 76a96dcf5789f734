package record

import (
	"math"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/slurm/schema"
)

// Diag shows how the server fares. One pass of the planner does the work of Slurm's main scheduler and of its
// backfill, so that both show the same passes.
func Diag(d *client.Diag) *schema.Record {
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
	return schema.New("openapi_diag_resp").Set("statistics", s)
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
