package conf

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/config"
)

func TestScheduler(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		conf         string
		rule         string
		reservations int32
		notes        []string
	}{
		{conf: "SchedulerType=sched/backfill\n", rule: "easy"},
		{conf: "SchedulerType=sched/builtin\n", rule: "fcfs"},
		{conf: "SchedulerType=sched/hold\n", rule: "easy", notes: []string{"sched/hold: " + notYet}},
		{
			conf: "SchedulerParameters=bf_job_part_count_reserve=10,BF_Window=2880,bf_min_prio_reserve=100,bf_continue\n",
			rule: "easy", reservations: 10,
			notes: []string{"BF_Window=2880: " + complete, "bf_min_prio_reserve=100: " + notYet, "bf_continue: " + complete},
		},
		{conf: "SchedulerParameters=bf_interval=-1,bf_job_part_count_reserve=10\n", rule: "fcfs"},
		{conf: "SchedulerParameters=bf_interval=60\n", rule: "easy", notes: []string{"bf_interval=60: " + complete}},
	} {
		c, err := ReadFS(fstest.MapFS{"slurm.conf": {Data: []byte(tc.conf)}}, "slurm.conf")
		if err != nil {
			t.Fatal(err)
		}
		cfg := config.Default()
		notes, err := c.Apply(cfg)
		if s := cfg.Scheduling; err != nil || s.Rule != tc.rule || s.Reservations != tc.reservations {
			t.Errorf("%s: %+v, %v", tc.conf, s, err)
		}
		var got []string
		for _, n := range notes {
			got = append(got, n.Value+": "+n.Why)
		}
		if d := cmp.Diff(tc.notes, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tc.conf, d)
		}
	}
	c, _ := ReadFS(fstest.MapFS{"slurm.conf": {Data: []byte("SchedulerParameters=bf_job_part_count_reserve=many\n")}},
		"slurm.conf")
	if _, err := c.Apply(config.Default()); err == nil {
		t.Error("a count that is none is taken")
	}
}
