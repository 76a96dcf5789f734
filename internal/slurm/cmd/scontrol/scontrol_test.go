package scontrol

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/slurm/slurmtest"
)

func TestMain(m *testing.M) {
	time.Local = time.UTC // the recordings were made in UTC
	os.Exit(m.Run())
}

func lab() *slurmtest.Cluster {
	c := slurmtest.Lab()
	on := slurmtest.On("n001", 1)
	c.Script = "#!/bin/bash\n#SBATCH --job-name=sleeper\n#SBATCH --time=10\nsleep 600\n"
	long := slurmtest.With(func(s *core.Spec) { s.TimeLimit = 3600 })
	c.Jobs = append(c.Jobs,
		slurmtest.Job(78, "fail.sh", "01:14:59", slurmtest.Running("01:14:59", on),
			slurmtest.Ended("01:15:00", core.Failed, core.Exit{Code: 3}), long,
			func(j *client.Job) {
				j.Reason, j.Priority, j.Spec.From.Command = core.ReasonNonZeroExit, 3496, "/tmp/golden/fail.sh"
			}),
		slurmtest.Job(82, "wrap", "01:15:04", slurmtest.Running("01:15:05", on),
			slurmtest.Ended("01:15:10", core.Completed, core.Exit{}), long,
			func(j *client.Job) { j.Priority, j.Spec.From.Command = 3496, "" }))
	return c
}

func TestAgainstRecordings(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		args   string
		at     string
		change func(c *slurmtest.Cluster)
	}{
		"scontrol-ping":                    {args: "ping"},
		"scontrol-show-partition":          {args: "show partition"},
		"scontrol-show-partition-oneliner": {args: "-o show partition main"},
		"scontrol-show-node-idle":          {args: "show node n001"},
		"scontrol-show-node-alloc": {args: "show node n001", change: func(c *slurmtest.Cluster) {
			c.Nodes[0].State, c.Nodes[0].AllocCPUs, c.Nodes[0].AllocMem = "MIXED", 34, 970*core.MiB
			c.Nodes[0].AllocGres = []core.Gres{{Name: "gpu", Type: "a100", Count: 4}}
		}},
		"scontrol-show-hostnames":        {args: "show hostnames n[001-003,007]"},
		"scontrol-show-hostlist":         {args: "show hostlist n001,n002,n003,n007"},
		"scontrol-show-job-running":      {args: "show job 1", at: "01:10:22"},
		"scontrol-show-job-d":            {args: "-d show job 1", at: "01:10:22"},
		"scontrol-show-job-oneliner":     {args: "-o show job 1", at: "01:10:22"},
		"scontrol-show-job-pending":      {args: "show job 13"},
		"scontrol-show-job-array":        {args: "show job 4", at: "01:10:23"},
		"scontrol-show-job-array-task":   {args: "show job 4_2", at: "01:10:23"},
		"scontrol-show-job-gpu":          {args: "show job 14 -d", at: "01:10:23"},
		"scontrol-show-job-dep":          {args: "show job 11"},
		"scontrol-show-job-comment":      {args: "show job 19", at: "01:10:24"},
		"scontrol-show-job-bad":          {args: "show job 999999"},
		"scontrol-show-job-failed":       {args: "show job 78"},
		"scontrol-show-job-completed":    {args: "show job 82"},
		"scontrol-show-reservation-none": {args: "show reservation"},
		"scontrol-show-reservation":      {args: "show reservation", change: reservations},
		"scontrol-create-reservation": {args: "create reservation reservationname=maint starttime=now+60minutes " +
			"duration=120 " +
			"users=root nodes=n[001-002] flags=maint"},
		"scontrol-create-reservation-auto": {
			args: "create reservation starttime=now duration=60 accounts=physics nodecnt=2 flags=ignore_jobs",
		},
		"scontrol-create-reservation-bad": {args: "create reservation starttime=now duration=60 nodes=n001"},
		"scontrol-show-licenses":          {args: "show licenses"},
		"scontrol-show-topology":          {args: "show topology"},
		"scontrol-bad-subcommand":         {args: "frobnicate"},
		"scontrol-update-unknown-key":     {args: "update jobid=1 Foo=bar"},
		"scontrol-update-bad": {args: "update jobid=1 NumNodes=99", change: func(c *slurmtest.Cluster) {
			c.Refuse = core.Errorf(core.Conflict, "job 1 has started").Because("not_supported")
		}},
		"scontrol-update-node-bad": {args: "update nodename=nope state=idle"},
		"scontrol-drain-noreason":  {args: "update nodename=n004 state=drain"},
		"scontrol-write-batch":     {args: "write batch_script 1 -"},
		"scontrol-update-denied": {args: "update jobid=1 TimeLimit=5", change: func(c *slurmtest.Cluster) {
			c.Refuse = core.Errorf(core.Denied, "not yours")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, code := slurmtest.Golden(t, name)
			c := lab()
			if tc.at != "" {
				c.Now = slurmtest.Day(tc.at).Go().UTC()
			}
			if tc.change != nil {
				tc.change(c)
			}
			got := c.Start(t).Run(t, "scontrol", Run, strings.Fields(tc.args))
			if d := cmp.Diff(lines(want), lines(got.Err+got.Out)); d != "" || got.Code != code {
				t.Errorf("code %d, want %d (-want +got)\n%s", got.Code, code, d)
			}
		})
	}
}

// lines blanks what no listing of ours knows: when a scheduler last looked, and which; where backfill plans to start a
// job.
func lines(text string) []string {
	list := slurmtest.Lines(text)
	for i, l := range list {
		if k := strings.Index(l, "LastSchedEval="); k >= 0 {
			rest := ""
			if e := strings.Index(l, " Partition="); e > 0 {
				rest = l[e:]
			}
			list[i] = l[:k] + rest
		}
		list[i] = strings.TrimSuffix(list[i], " SchedNodeList=n[001-008]")
	}
	return list
}

func TestLicenses(t *testing.T) {
	t.Parallel()
	c := lab()
	c.Licenses = []client.License{
		{License: core.License{Name: "ansys", Total: 1}},
		{License: core.License{Name: "matlab", Total: 100}, Used: 2, Reserved: 10},
	}
	s := c.Start(t)
	for args, want := range map[string]string{
		"show licenses": "LicenseName=ansys\n    Total=1 Used=0 Free=1 Reserved=0 " +
			"Remote=no\nLicenseName=matlab\n    Total=100 Used=2 Free=98 Reserved=10 Remote=no\n",
		"-o show licenses matlab": "LicenseName=matlab Total=100 Used=2 Free=98 Reserved=10 Remote=no\n",
	} {
		if got := s.Run(t, "scontrol", Run, strings.Fields(args)); got.Code != 0 || got.Out != want {
			t.Errorf("%s: code %d, %s%s", args, got.Code, got.Out, got.Err)
		}
	}
	for args, want := range map[string]string{
		"update jobid=1 licenses=matlab:2":                      `{"licenses":"matlab:2"}`,
		"update jobid=1 reservationname=":                       `{"reservation":""}`,
		"update jobid=1 starttime=2030-01-02":                   `{"begin":1893542400000000}`,
		"update jobid=1 timemin=30 deadline=2030-01-02":         `{"deadline":1893542400000000,"time_min":1800}`,
		"update jobid=1 mailtype=end,fail mailuser=eve wckey=w": `{"mail_user":"eve","mail_types":"END,FAIL","wckey":"w"}`,
		"update jobid=1 stdout=o workdir=/w":                    `{"stdout":"o","workdir":"/w"}`,
		"update jobid=1 ArrayTaskThrottle=0":                    `{"array_limit":0}`,
		"update jobid=1 requeue=0 account=physics":              `{"may_requeue":false,"project":"physics"}`,
		"update jobid=1 features=ib reqnodelist=n001":           `{"constraint":"ib","nodelist":"n001"}`,
		"update jobid=1 excnodelist= numnodes=2-4":              `{"exclude":"","nodes":{"min":2,"max":4}}`,
		"update jobid=1 numcpus=4 mincpusnode=2":                `{"cpus":4,"min_cpus":2}`,
		"update jobid=1 numtasks=4 taskspernode=2":              `{"tasks":4,"tasks_per_node":2}`,
		"update jobid=1 minmemorynode=2G cpuspertask=3":         `{"cpus_per_task":3,"mem_per_node":2147483648}`,
		"update jobid=1 gres=gpu:a100:2 " +
			"switches=1@5": `{"switches":"1@5","gres":[{"name":"gpu","type":"a100","count":2}]}`,
		"update jobid=1 gres=none prefer=ib": `{"prefer":"ib","gres":[]}`,
		"update jobid=1 minmemorycpu=100":    `{"mem_per_cpu":104857600}`,
	} {
		c.Updates = nil
		if got := s.Run(t, "scontrol", Run, strings.Fields(args)); got.Code != 0 || len(c.Updates) != 1 {
			t.Errorf("%s: code %d, %s", args, got.Code, got.Err)
		} else if b, err := json.Marshal(c.Updates[0]); err != nil || string(b) != want {
			t.Errorf("%s: %s, want %s", args, b, want)
		}
	}
}

func TestBadAsks(t *testing.T) {
	t.Parallel()
	c := lab()
	s := c.Start(t)
	for _, word := range strings.Fields("ArrayTaskThrottle=-1 ArrayTaskThrottle=x Account= " +
		"NumNodes=0 NumNodes=a NumCPUs=0 NumTasks=4.5 " +
		"MinMemoryNode=lots Requeue=2 CPUsPerTask=0 Gres=gpu:x:y") {
		key, value, _ := strings.Cut(word, "=")
		want := fmt.Sprintf("scontrol: error: Invalid %s value: %s\n", key, value)
		if got := s.Run(t, "scontrol", Run, []string{"update", "jobid=1", word}); got.Code != 1 || got.Err != want ||
			c.Updates != nil {
			t.Errorf("%s: code %d, %s", word, got.Code, got.Err)
		}
	}
}

func TestServerAway(t *testing.T) {
	t.Parallel()
	want, code := slurmtest.Golden(t, "down-scontrol-ping")
	got := (*slurmtest.Cluster)(nil).Run(t, "scontrol", Run, []string{"ping"})
	if got.Out != want || got.Code != code {
		t.Errorf("got %d %q, want %d %q", got.Code, got.Out, code, want)
	}
}

func TestStepsOfRunningJobs(t *testing.T) {
	t.Parallel()
	text, _ := slurmtest.Golden(t, "scontrol-show-step")
	first, _, _ := strings.Cut(text, "\n\n")
	got := lab().Start(t).Run(t, "scontrol", Run, []string{"show", "step", "1.batch"})
	if got.Out != first+"\n\n" {
		t.Errorf("got\n%s\nwant\n%s", got.Out, first)
	}
}

func ptr[T any](v T) *T { return &v }

func TestChanges(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		args  string
		jobs  []client.Update
		nodes []client.UpdateNode
		err   string
		code  int
	}{
		{args: "hold 1 2", jobs: []client.Update{{Hold: ptr(true)}, {Hold: ptr(true)}}},
		{args: "uhold 1", jobs: []client.Update{{Hold: ptr(true), UserHold: true}}},
		{args: "release 1", jobs: []client.Update{{Hold: ptr(false)}}},
		{args: "requeue 1,2", jobs: []client.Update{{Requeue: true}, {Requeue: true}}},
		{args: "suspend 1", jobs: []client.Update{{Suspend: ptr(true)}}},
		{args: "resume jobname=sleeper", jobs: []client.Update{{Suspend: ptr(false)}}},
		{
			args: "update jobid=1 TimeLimit=30 Nice=5 Comment=changed",
			jobs: []client.Update{{TimeLimit: ptr(core.Seconds(1800)), Nice: ptr(int32(5)), Comment: ptr("changed")}},
		},
		{args: "update JobId=1 TimeLimit+=5", jobs: []client.Update{{TimeLimit: ptr(core.Seconds(900))}}},
		{args: "update jobid=1 priority=0", jobs: []client.Update{{Hold: ptr(true)}}},
		{
			args:  "update nodename=n[001-002] state=drain reason=x",
			nodes: []client.UpdateNode{{State: "drain", Reason: "x"}, {State: "drain", Reason: "x"}},
		},
		{args: "update nodename=n003 state=resume", nodes: []client.UpdateNode{{State: "resume", Strict: true}}},
		{args: "update nodename=n003 state=fail reason=ecc", nodes: []client.UpdateNode{{State: "fail", Reason: "ecc"}}},
		{args: "update nodename=n003 state=POWER_DOWN_ASAP", nodes: []client.UpdateNode{
			{State: "power_down_asap", Strict: true},
		}},
		{args: "reboot ASAP nextstate=RESUME reason=kernel n[001-002]", nodes: []client.UpdateNode{
			{State: "reboot_asap", Next: "resume", Reason: "kernel"}, {State: "reboot_asap", Next: "resume", Reason: "kernel"},
		}},
		{args: "reboot n003", nodes: []client.UpdateNode{{State: "reboot"}}},
		{args: "cancel_reboot n003", nodes: []client.UpdateNode{{State: "cancel_reboot"}}},
		{args: "power down force n003", nodes: []client.UpdateNode{{State: "power_down_force"}}},
		{args: "hold", err: "too few arguments for keyword:hold\n", code: 1},
		{args: "hold 99999", err: "Invalid job id specified for job 99999\nslurm_suspend error: Invalid job id " +
			"specified\n", code: 1},
		{args: "requeue 99999", err: "Invalid job id specified for job 99999\n", code: 1},
		{args: "update foo=bar", err: "No valid entity in update command\nInput line must include \"NodeName\", " +
			"\"PartitionName\", \"Reservation\", \"JobId\", or \"SlurmctldDebug\"\n", code: 1},
	} {
		c := lab().Start(t)
		got := c.Run(t, "scontrol", Run, strings.Fields(tc.args))
		if d := cmp.Diff(tc.jobs, c.Updates); d != "" {
			t.Errorf("%s: jobs (-want +got)\n%s", tc.args, d)
		}
		if d := cmp.Diff(tc.nodes, c.NodeUps); d != "" {
			t.Errorf("%s: nodes (-want +got)\n%s", tc.args, d)
		}
		if got.Err != tc.err || got.Code != tc.code {
			t.Errorf("%s: got %+v", tc.args, got)
		}
	}
}

func TestFinishedJob(t *testing.T) {
	t.Parallel()
	c := lab()
	c.Refuse = core.Errorf(core.Conflict, "over").Because("job_finished")
	got := c.Start(t).Run(t, "scontrol", Run, []string{"requeue", "69"})
	if got.Err != "Job has already finished for job 69\n" || got.Code != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestPrompt(t *testing.T) {
	t.Parallel()
	got := lab().Start(t).Run(t, "scontrol", Run, nil, func(w *cmd.World) {
		w.In = strings.NewReader("show hostnames a[1-2]\nping\nquit\n")
	})
	if want := "scontrol: a1\na2\nscontrol: Slurmctld(primary) at vm is UP\nscontrol: "; got.Out != want {
		t.Errorf("got %q", got.Out)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	c := lab()
	c.Info.Settings = map[string]string{"SlurmdTimeout": "300"}
	got := c.Start(t).Run(t, "scontrol", Run, []string{"show", "config"})
	for _, want := range []string{"Configuration data as of 2026-11-15T01:10:19\n", "ClusterName             = " +
		"anchor\n", "SlurmdTimeout           = 300 sec\n", "\nSlurmctld(primary) at vm is UP\n"} {
		if !strings.Contains(got.Out, want) {
			t.Errorf("%q is not in\n%s", want, got.Out)
		}
	}
}

// wait_job comes back when the job runs, not before, and says so when there is nothing to wait for.
func TestWaitJob(t *testing.T) {
	t.Parallel()
	c := lab()
	watched := 0
	c.Handle = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/api/v1/watch" {
			return false
		}
		watched++
		for i := range c.Jobs {
			if c.Jobs[i].ID == 13 && watched == 2 { // the first news is of something else about it
				c.Jobs[i].State = core.Running
			}
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "id: %d\nevent: job.updated\ndata: {\"seq\":%d,\"kind\":\"job.updated\",\"job\":13}\n\n",
			watched, watched)
		return true
	}
	c.Start(t)
	if got := c.Run(t, "scontrol", Run, []string{"wait_job", "13"}); got.Code != 0 || watched != 2 {
		t.Errorf("%+v after %d events", got, watched)
	}
	if got := c.Run(t, "scontrol", Run, []string{"wait_job", "1"}); got.Code != 0 || watched != 2 {
		t.Errorf("a job that runs: %+v", got)
	}
	if got := c.Run(t, "scontrol", Run, []string{"wait_job", "78"}); got.Code != 1 ||
		!strings.Contains(got.Err, "already finished") {
		t.Errorf("a job that has ended: %+v", got)
	}
	if got := c.Run(t, "scontrol", Run, []string{"wait_job"}); got.Code != 1 {
		t.Errorf("no job: %+v", got)
	}
}

func TestDerivedExitCode(t *testing.T) {
	t.Parallel()
	c := lab()
	c.Steps = append(c.Steps, core.Step{Job: 82, ID: 0, Exit: core.Exit{Code: 4}},
		core.Step{Job: 82, ID: 1, Exit: core.Exit{Code: 2}})
	got := c.Start(t).Run(t, "scontrol", Run, []string{"-d", "show", "job", "82"})
	if !strings.Contains(got.Out, "DerivedExitCode=4:0") {
		t.Errorf("%+v", got)
	}
	if got := c.Run(t, "scontrol", Run, []string{"--yaml", "show", "job", "82"}); got.Code != 0 ||
		!strings.Contains(got.Out, "\n    job_id: 82\n") {
		t.Errorf("%+v", got)
	}
}

// TestHiddenPartitions: a partition with Hidden=YES is shown to administrators and with --all only, be it named.
func TestHiddenPartitions(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		args  string
		admin bool
		shown bool
		code  int
	}{
		{"show partition", false, false, 0},
		{"show partition debug", false, false, 1},
		{"-a show partition debug", false, true, 0},
		{"show partition", true, true, 0},
	} {
		c := slurmtest.Lab()
		c.Who.Admin = tc.admin
		for i := range c.Info.Partitions {
			c.Info.Partitions[i].Hidden = c.Info.Partitions[i].Name == "debug"
		}
		got := c.Start(t).Run(t, "scontrol", Run, strings.Fields(tc.args))
		if got.Code != tc.code || strings.Contains(got.Out, "PartitionName=debug") != tc.shown {
			t.Errorf("scontrol %s, admin %v: %d %q %q", tc.args, tc.admin, got.Code, got.Out, got.Err)
		}
	}
}
