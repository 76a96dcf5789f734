package sacct

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/taskset"
	"bireme.dev/bireme/internal/slurm/report"
	"bireme.dev/bireme/internal/slurm/slurmtest"
)

func TestMain(m *testing.M) {
	time.Local = time.UTC // the recordings were made in UTC
	os.Exit(m.Run())
}

// history is the end of the lab's day.
func history() *slurmtest.Cluster {
	on := slurmtest.On("n001", 1)
	task := func(id core.JobID, index int32) client.Job {
		return slurmtest.Job(id, "aenv.sh", "01:14:34", slurmtest.Running("01:14:36", on),
			slurmtest.Ended("01:14:37", core.Completed, core.Exit{}),
			func(j *client.Job) {
				j.Array = &core.ArrayRef{Base: 73, Task: index, Count: 3, Min: 2, Max: 10, Step: 4}
			})
	}
	c := slurmtest.Lab()
	c.Now = slurmtest.Day("01:20:00").Go().UTC()
	c.Jobs = append(c.Jobs,
		slurmtest.Job(78, "fail.sh", "01:14:59", slurmtest.Running("01:14:59", on),
			slurmtest.Ended("01:15:00", core.Failed, core.Exit{Code: 3})),
		slurmtest.Job(82, "wrap", "01:15:04", slurmtest.Running("01:15:05", on),
			slurmtest.Ended("01:15:10", core.Completed, core.Exit{}),
			func(j *client.Job) { j.Steps, j.Spec.TimeLimit = 2, 3600 }),
		slurmtest.Job(81, "wrap", "01:15:04", slurmtest.Running("01:15:05", on),
			slurmtest.Ended("01:15:18", core.Cancelled, core.Exit{Signal: 15}),
			func(j *client.Job) { j.Stop = &core.Stop{By: "root", As: core.Cancelled} }),
		slurmtest.Job(84, "never", "01:15:05", slurmtest.Ended("01:15:18", core.Cancelled, core.Exit{}),
			func(j *client.Job) { j.Stop = &core.Stop{By: "games", UID: 5, As: core.Cancelled} }),
		task(73, 10), task(74, 2), task(75, 6),
		slurmtest.Job(90, "arr", "01:16:00", slurmtest.Ended("01:16:30", core.Cancelled, core.Exit{}), func(j *client.Job) {
			j.Array, j.Spec.Throttle = &core.ArrayRef{Base: 90, Count: 5, Max: 4, Step: 1, Tasks: taskset.Of(4)}, 2
		}))
	c.Steps = []core.Step{
		{
			Job: 82, ID: 1, Attempt: 1, Name: "sleep", State: core.Completed, Nodes: []core.NodeName{"n001"},
			Tasks: []int32{1}, CPUs: 1, Start: slurmtest.Day("01:15:06"), End: slurmtest.Day("01:15:10"),
		},
		{Job: 82, ID: 0, Attempt: 1, Name: "false", State: core.Failed, Nodes: []core.NodeName{"n001"}, Tasks: []int32{
			1,
		}, CPUs: 1, Start: slurmtest.Day("01:15:05"), End: slurmtest.Day("01:15:06"), Exit: core.Exit{Code: 1}},
	}
	return c
}

func TestAgainstRecordings(t *testing.T) {
	t.Parallel()
	for name, args := range map[string]string{
		"sacct-failed":      "-j 78",
		"sacct-steps":       "-j 82",
		"sacct-parsable2":   "-P -j 82",
		"sacct-brief":       "-b -j 82",
		"sacct-running":     "-j 1",
		"sacct-array":       "-X -j 73",
		"sacct-bad-job":     "-j 999999",
		"sacct-bad-format":  "--format=Nope",
		"sacct-format-list": "-e",
		"timeout-sacct":     "-j 81",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, code := slurmtest.Golden(t, name)
			got := history().Start(t).Run(t, "sacct", Run, strings.Fields(args))
			if d := cmp.Diff(want, got.Err+got.Out); d != "" || got.Code != code {
				t.Errorf("code %d, want %d (-want +got)\n%s", got.Code, code, d)
			}
		})
	}
}

func TestFields(t *testing.T) {
	t.Parallel()
	c := history().Start(t)
	for _, tc := range []struct{ args, want string }{
		{
			"-X -n -P -j 82 -o " +
				"jobidraw,user,elapsed,timelimit,nnodes,reqmem,reqtres,alloctres,nodelist,derived,start,end,cluster",
			"82|root|00:00:05|01:00:00|1|10M|billing=1,cpu=1,mem=10M,node=1|billing=1,cpu=1,mem=10M," +
				"node=1|n001|1:0|2026-11-15T01:15:05|2026-11-15T01:15:10|anchor\n",
		},
		{
			"-X -n -P -j 84 -o jobid,state,start,end,nodelist,alloctres,ncpus,elapsed",
			"84|CANCELLED by 5|None|2026-11-15T01:15:18|None assigned||1|00:00:00\n",
		},
		{"-X -n -P -j 13 -o jobid,state,start,nodelist,nnodes", "13|PENDING|Unknown|None assigned|8\n"},
		{"-X -n -P -j 90 -o jobid,state", "90_4|CANCELLED\n"},
		{"-n -p -j 82.0 -o jobid,jobname,ntasks,cputimeraw", "82.0|false|1|1|\n"},
		{"-X -n -j 82 -o jobname%3,jobname%-6,jobid%2", "wr+ wrap   82 \n"},
	} {
		got := c.Run(t, "sacct", Run, strings.Fields(tc.args))
		if d := cmp.Diff(tc.want, got.Out); d != "" || got.Code != 0 {
			t.Errorf("%s: %s(-want +got)\n%s", tc.args, got.Err, d)
		}
	}
}

// -D shows the attempts that went back to the queue before the last one, each with its steps.
func TestDuplicates(t *testing.T) {
	t.Parallel()
	on := slurmtest.On("n001", 1)
	lab := history()
	again := slurmtest.Job(95, "again", "01:17:00", slurmtest.Running("01:17:01", on), func(j *client.Job) {
		j.End, j.Steps, j.Exit = slurmtest.Day("01:17:05"), 2, core.Exit{Signal: 15}
		j.Remember()
		j.Attempt, j.Submit, j.Start, j.End, j.Reason = 2, slurmtest.Day("01:17:05"), slurmtest.Day("01:17:06"),
			slurmtest.Day("01:17:16"), core.ReasonNodeDown
		j.Remember()
		j.State, j.Alloc, j.Submit, j.Start, j.End, j.Exit, j.Reason = core.Pending, nil, slurmtest.Day("01:17:16"), 0,
			0, core.Exit{}, ""
	})
	lab.Jobs = append(lab.Jobs, again)
	lab.Steps = append(lab.Steps,
		core.Step{
			Job: 95, ID: 0, Attempt: 1, Name: "one", State: core.Cancelled, Nodes: []core.NodeName{"n001"},
			Tasks: []int32{1}, CPUs: 1, Start: slurmtest.Day("01:17:01"), End: slurmtest.Day("01:17:05"),
		},
		core.Step{
			Job: 95, ID: 1, Attempt: 2, Name: "two", State: core.NodeFail, Nodes: []core.NodeName{"n001"},
			Tasks: []int32{1}, CPUs: 1, Start: slurmtest.Day("01:17:06"), End: slurmtest.Day("01:17:16"),
		})
	c := lab.Start(t)
	for _, tc := range []struct{ args, want string }{
		{"-n -P -j 95 -o jobid,state,exitcode,elapsed", "95|PENDING|0:0|00:00:00\n"},
		{
			"-n -P -D -j 95 -o jobid,jobname,state,exitcode,elapsed,nodelist",
			"95|again|REQUEUED|0:0|00:00:04|n001\n95.batch|batch|CANCELLED|0:15|00:00:04|n001\n" +
				"95.0|one|CANCELLED|0:0|00:00:04|n001\n" +
				"95|again|NODE_FAIL|0:0|00:00:10|n001\n95.batch|batch|NODE_FAIL|0:15|00:00:10|n001\n" +
				"95.1|two|NODE_FAIL|0:0|00:00:10|n001\n" +
				"95|again|PENDING|0:0|00:00:00|None assigned\n",
		},
	} {
		got := c.Run(t, "sacct", Run, strings.Fields(tc.args))
		if d := cmp.Diff(tc.want, got.Out); d != "" || got.Code != 0 {
			t.Errorf("%s: %s(-want +got)\n%s", tc.args, got.Err, d)
		}
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	got := history().Start(t).Run(t, "sacct", Run, []string{"--json=v0.0.38", "-j", "82"})
	slurmtest.RecordedKeys(t, "sacct-json", "jobs", got.Out)
	var answer struct {
		Jobs []struct {
			JobID int64 `json:"job_id"`
			State struct{ Current string }
			Steps []struct {
				State string
				Step  struct{ ID string }
				Exit  struct {
					Code int `json:"return_code"`
				} `json:"exit_code"`
			}
		}
	}
	if err := json.Unmarshal([]byte(got.Out), &answer); err != nil {
		t.Fatal(err)
	}
	if len(answer.Jobs) != 1 || answer.Jobs[0].State.Current != "COMPLETED" || len(answer.Jobs[0].Steps) != 3 ||
		answer.Jobs[0].Steps[1].Step.ID != "0" || answer.Jobs[0].Steps[1].Exit.Code != 1 {
		t.Errorf("got %+v", answer)
	}
}

func TestAllFields(t *testing.T) {
	t.Parallel()
	got := history().Start(t).Run(t, "sacct", Run, []string{"-n", "-P", "-X", "-j", "78", "--format=ALL"})
	if n := strings.Count(got.Out, "|"); n != report.NumListedFields-1 || got.Code != 0 {
		t.Errorf("%d columns, exit code %d: %s%s", n+1, got.Code, got.Out, got.Err)
	}
}

func TestHelpNamesEveryOption(t *testing.T) {
	t.Parallel()
	got := history().Start(t).Run(t, "sacct", Run, []string{"--help"})
	for _, o := range parser.Options {
		if !strings.Contains(got.Out, "--"+o.Long) {
			t.Errorf("--%s is not named", o.Long)
		}
	}
}
