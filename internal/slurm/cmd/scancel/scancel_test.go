package scancel

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/slurm/slurmtest"
)

func TestAgainstRecordings(t *testing.T) {
	t.Parallel()
	denied := func(w http.ResponseWriter, r *http.Request) bool {
		json.NewEncoder(w).Encode(
			client.Cancelled{Results: []client.CancelResult{{ID: "1", Error: core.Errorf(core.Denied, "not yours")}}})
		return true
	}
	for name, tc := range map[string]struct {
		args   string
		handle func(w http.ResponseWriter, r *http.Request) bool
	}{
		"scancel-bad":     {args: "999999"},
		"scancel-denied":  {args: "1", handle: denied},
		"scancel-nothing": {},
		"scancel-v":       {args: "-v 5"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, code := slurmtest.Golden(t, name)
			c := slurmtest.Lab()
			c.Handle = tc.handle
			got := c.Start(t).Run(t, "scancel", Run, strings.Fields(tc.args))
			if d := cmp.Diff(want, got.Err+got.Out); d != "" || got.Code != code {
				t.Errorf("code %d, want %d (-want +got)\n%s", got.Code, code, d)
			}
		})
	}
}

func TestWhatIsAsked(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		args string
		want []client.Cancel
	}{
		{"1 4_3 4_[10-12]", []client.Cancel{{IDs: []string{"1", "4_3", "4_[10-12]"}}}},
		{"1,2 3.0", []client.Cancel{{IDs: []string{"1", "2"}}, {IDs: []string{"3"}, Step: "0", Signal: 9}}},
		{"-t PD -n dep2", []client.Cancel{{Names: []string{"dep2"}, States: []string{"PENDING"}}}},
		{"-s USR1 -b 1", []client.Cancel{{IDs: []string{"1"}, Signal: 10, Batch: true}}},
		{"-s KILL -b 1", []client.Cancel{{IDs: []string{"1"}}}},
		{"-t CG", nil},
		{
			"-R maint --wckey=w --cron 7",
			[]client.Cancel{{IDs: []string{"7"}, Reservations: []string{"maint"}, WCKeys: []string{"w"}, Cron: true}},
		},
		{"-R maint", []client.Cancel{{Reservations: []string{"maint"}}}},
		{
			"--me -p a,b -w n[1-2]",
			[]client.Cancel{{Users: []string{"root"}, Partitions: []string{"a", "b"}, Nodes: []string{"n1", "n2"}}},
		},
	} {
		c := slurmtest.Lab().Start(t)
		got := c.Run(t, "scancel", Run, strings.Fields(tc.args))
		if d := cmp.Diff(tc.want, c.Cancels); d != "" || got.Code != 0 {
			t.Errorf("%s: %+v (-want +got)\n%s", tc.args, got, d)
		}
	}
}

func TestBadArguments(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"abc":       "scancel: error: Invalid job id abc\n",
		"1 -s NOPE": "Unknown job signal: NOPE\n",
		"1 -s PIPE": "Unknown job signal: PIPE\n",
		"1 -s 0":    "Unknown job signal: 0\n",
		"-t XX":     "Invalid job state specified: XX\nValid job states are PENDING, RUNNING, and SUSPENDED\n",
		"-t R,PD":   "Invalid job state specified: R,PD\nValid job states are PENDING, RUNNING, and SUSPENDED\n",
		"-u a,b":    "scancel: error: Invalid user name: a,b\n",
		"1.batch":   "scancel: error: Invalid job id 1.batch\n",
		"1_[9":      "scancel: error: Invalid job id 1_[9\n",
	} {
		c := slurmtest.Lab().Start(t)
		if got := c.Run(t, "scancel", Run, strings.Fields(args)); got.Err != want || got.Code != 1 || len(c.Cancels) > 0 {
			t.Errorf("%s: got %+v, %d calls", args, got, len(c.Cancels))
		}
	}
}

func TestInteractiveAsksForEach(t *testing.T) {
	t.Parallel()
	c := slurmtest.Lab().Start(t)
	got := c.Run(t, "scancel", Run, []string{"-i", "1", "2"}, func(w *cmd.World) { w.In = strings.NewReader("n\ny\n") })
	want := "Cancel job_id=1 name=sleeper partition=main [y/n]? Cancel job_id=2 name=par partition=main [y/n]? "
	if got.Out != want || len(c.Cancels) != 1 || c.Cancels[0].IDs[0] != "2" {
		t.Errorf("got %+v, %+v", got, c.Cancels)
	}
}

// An id that is not active is told of only if more than the id was said.
func TestInactive(t *testing.T) {
	t.Parallel()
	told := "scancel: error: Kill job error on job id 99: Invalid job id specified\n"
	for args, want := range map[string]slurmtest.Result{
		"99":           {},
		"-Q -f 99":     {},
		"-v 99":        {Err: "scancel: Terminating job 99\n" + told},
		"-s USR1 99":   {Err: told, Code: 1},
		"-b 99":        {Err: told, Code: 1},
		"--me 99":      {Err: told, Code: 1},
		"-Q -t PD 99":  {Code: 1},
		"-p main 1 99": {Err: told, Code: 1},
		"-p main":      {}, // it ended between being found and being canceled
	} {
		for _, reason := range []*core.Error{core.Errorf(core.NotFound, "no job"), core.Errorf(core.Conflict, "has ended").
			Because("job_finished")} {
			if args == "-v 99" && core.CodeOf(reason) == core.Conflict {
				want.Err = strings.ReplaceAll(want.Err, "Invalid job id specified", "Job/step already completing or completed")
			}
			c := slurmtest.Lab()
			c.Handle = func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodPost {
					json.NewEncoder(w).Encode(
						client.Cancelled{Results: []client.CancelResult{{ID: "99", Error: reason}}})
					return true
				}
				return false
			}
			if d := cmp.Diff(want, c.Start(t).Run(t, "scancel", Run, strings.Fields(args))); d != "" {
				t.Errorf("%s: (-want +got)\n%s", args, d)
			}
		}
	}
}

// A step that is not there is told of when it should end, and a signal to it is lost. -v names what is done.
func TestSteps(t *testing.T) {
	t.Parallel()
	none := core.Errorf(core.Conflict, "no step").Because(slurm.ReasonNoStep)
	ended := core.Errorf(core.NotFound, "no job").Because(slurm.ReasonInvalidJobID)
	for _, tc := range []struct {
		args string
		err  *core.Error
		want slurmtest.Result
	}{
		{"-v 9.0", nil, slurmtest.Result{Err: "scancel: Terminating step 9.0\n"}},
		{"-v -s USR1 9.0", nil, slurmtest.Result{Err: "scancel: Signal 10 to step 9.0\n"}},
		{"-s USR1 9.5", none, slurmtest.Result{}},
		{"9.5", none, slurmtest.Result{
			Err: "scancel: error: Kill job error on job step id 9: Invalid job id specified\n", Code: 225,
		}},
		{"-v 9.5", ended, slurmtest.Result{
			Err: "scancel: error: Kill job error on job step id 9.5: Invalid job id specified\n", Code: 1,
		}},
		{"-v -b 9", nil, slurmtest.Result{Err: "scancel: Terminating batch job 9\n"}},
		{"-v -f 9", nil, slurmtest.Result{Err: "scancel: Terminating full job 9\n"}},
		{"-v -b -s KILL 9", nil, slurmtest.Result{Err: "scancel: Signal 9 to batch job 9\n"}},
	} {
		c := slurmtest.Lab()
		c.Handle = func(w http.ResponseWriter, r *http.Request) bool {
			json.NewEncoder(w).Encode(client.Cancelled{Results: []client.CancelResult{{ID: "9", Error: tc.err}}})
			return true
		}
		if d := cmp.Diff(tc.want, c.Start(t).Run(t, "scancel", Run, strings.Fields(tc.args))); d != "" {
			t.Errorf("%s: (-want +got)\n%s", tc.args, d)
		}
	}
}
