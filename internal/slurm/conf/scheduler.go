package conf

import (
	"strings"
	"time"

	"bireme.dev/bireme/internal/config"
)

// schedulerType takes what may start behind a job that waits: nothing, or what does not delay it.
func schedulerType(v *converter, s Setting) error {
	switch strings.ToLower(s.Value) {
	case "sched/builtin":
		v.cfg.Scheduling.Rule = "fcfs"
	case "sched/backfill":
	default:
		v.note(s.Where, s.Key, s.Value, notYet)
	}
	return nil
}

// complete are the parameters that bound how much of the queue Slurm looks at, how often and how far ahead.
const complete = "plans look at every job, at once and without a horizon"

var completes = map[string]bool{
	"default_queue_depth": true, "partition_job_depth": true, "sched_interval": true, "sched_min_interval": true,
	"max_sched_time":      true,
	"sched_max_job_start": true, "batch_sched_delay": true, "max_rpc_cnt": true, "defer": true, "defer_batch": true,
	"build_queue_timeout": true,
	"bf_continue":         true, "bf_interval": true, "bf_licenses": true, "bf_max_job_array_resv": true,
	"bf_max_job_start": true,
	"bf_max_job_test":  true, "bf_max_time": true, "bf_node_space_size": true, "bf_resolution": true, "bf_window": true,
	"bf_window_linear":  true,
	"bf_yield_interval": true, "bf_yield_rpc_cnt": true, "bf_yield_sleep": true,
}

// schedulerParameters takes what we know of SchedulerParameters.
func schedulerParameters(v *converter, s Setting) error {
	for word := range strings.SplitSeq(s.Value, ",") {
		name, value, _ := strings.Cut(word, "=")
		switch name = strings.ToLower(name); {
		case name == "max_switch_wait":
			n, err := integer(value, 1<<31)
			if err != nil {
				return err
			}
			v.cfg.Topology.MaxSwitchWait = config.Duration(max(1, time.Duration(n)) * time.Second)
		case name == "bf_job_part_count_reserve":
			n, err := integer(value, 1<<31-1)
			if err != nil {
				return err
			}
			v.cfg.Scheduling.Reservations = int32(n)
		case name == "bf_interval" && value == "-1": // as Slurm: no backfill
			v.cfg.Scheduling.Rule = "fcfs"
		case completes[name]:
			v.note(s.Where, s.Key, word, complete)
		default:
			v.note(s.Where, s.Key, word, notYet)
		}
	}
	return nil
}

// scheduling leaves out what the rule has no use for.
func (v *converter) scheduling() {
	if v.cfg.Scheduling.Rule == "fcfs" {
		v.cfg.Scheduling.Reservations = 0
	}
}
