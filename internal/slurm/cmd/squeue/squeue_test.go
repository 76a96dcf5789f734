package squeue

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
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

// sorted compares listings whose order among equals Slurm leaves open.
func sorted(text string) []string { l := slurmtest.Lines(text); slices.Sort(l); return l }

func TestAgainstRecordings(t *testing.T) {
	t.Parallel()
	het := []string{"16+", "16.batch"}
	for name, tc := range map[string]struct {
		args string
		at   string // when it was recorded
		drop []string
	}{
		"squeue":               {at: "01:10:19", drop: het},
		"squeue-l":             {args: "-l", at: "01:10:19", drop: het},
		"squeue-r":             {args: "-r", at: "01:10:19", drop: het},
		"squeue-t-PD":          {args: "-t PD", at: "01:10:19"},
		"squeue-t-R-l":         {args: "-t R -l", at: "01:10:20", drop: het},
		"squeue-user":          {args: "-u games", at: "01:10:19"},
		"squeue-sort-priority": {args: "-S -p,i -t PD -o %i|%Q|%r", at: "01:10:19"},
		"squeue-steps":         {args: "-s", at: "01:10:20", drop: het},
		"squeue-bad-job":       {args: "-j 999999"},
		"squeue-bad-state":     {args: "-t NOPE"},
		"squeue-bad-user":      {args: "-u nosuchuser"},
		"squeue-bad-partition": {args: "-p nope"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := name
			if name == "squeue-bad-partition" {
				file = "squeue-empty"
			}
			want, code := slurmtest.Golden(t, file)
			c := slurmtest.Lab()
			c.Missing = []string{"nosuchuser"}
			if tc.at != "" {
				c.Now = slurmtest.Day(tc.at).Go().UTC()
			}
			got := c.Start(t).Run(t, "squeue", Run, strings.Fields(tc.args))
			if name == "squeue-sort-priority" {
				got.Out = strings.ReplaceAll(got.Out, "|", " ")
				if got.Out != want { // here the order is given in full
					t.Errorf("got\n%s\nwant\n%s", got.Out, want)
				}
			}
			want = slurmtest.Without(want, append(tc.drop, "Sun Nov")...)
			text := slurmtest.Without(got.Err+got.Out, "Sun Nov")
			// A recording and the lab may differ by the second in which the running time was read.
			if d := cmp.Diff(sorted(blurTime(want)), sorted(blurTime(text))); d != "" || got.Code != code {
				t.Errorf("code %d, want %d (-want +got)\n%s", got.Code, code, d)
			}
		})
	}
}

// blurTime takes the last second off running times.
func blurTime(text string) string {
	for _, s := range []string{"1:09", "1:10", "1:11", "1:12"} {
		text = strings.ReplaceAll(text, " "+s+" ", " 1:1x ")
	}
	for _, s := range []string{"0:54", "0:55", "0:56"} {
		text = strings.ReplaceAll(text, " "+s+" ", " 0:5x ")
	}
	for _, s := range []string{"1:19", "1:20"} {
		text = strings.ReplaceAll(text, " "+s+" ", " 1:2x ")
	}
	for _, s := range []string{"1:22", "1:23"} {
		text = strings.ReplaceAll(text, " "+s+" ", " 1:2y ")
	}
	for _, s := range []string{"1:27", "1:28"} {
		text = strings.ReplaceAll(text, " "+s+" ", " 1:2z ")
	}
	return text
}

func TestDefaultOrder(t *testing.T) {
	t.Parallel()
	got := slurmtest.Lab().Start(t).Run(t, "squeue", Run, []string{"-h", "-o", "%t %Q %i"})
	var prev string
	var prevPrio, prevState int
	for i, line := range slurmtest.Lines(got.Out) {
		var state, id string
		var prio int
		fmt.Sscan(line, &state, &prio, &id)
		rank := map[string]int{"PD": 0, "R": 1}[state]
		if i > 0 && (rank < prevState || rank == prevState && prio > prevPrio) {
			t.Errorf("%q comes after %q", line, prev)
		}
		prev, prevPrio, prevState = line, prio, rank
	}
	if !strings.HasPrefix(got.Out, "PD 10607 13\n") {
		t.Errorf("the first is not job 13:\n%s", got.Out)
	}
}

func TestCustomFormat(t *testing.T) {
	t.Parallel()
	want, _ := slurmtest.Golden(t, "squeue-custom-o")
	data, _ := os.ReadFile("../../testdata/golden/squeue-custom-o.txt")
	first, _, _ := strings.Cut(string(data), "\n")
	format := strings.Trim(strings.TrimPrefix(first, "$ squeue -o "), `"`)
	c := slurmtest.Lab()
	c.Now = slurmtest.Day("01:10:20").Go().UTC()
	got := c.Start(t).Run(t, "squeue", Run, []string{"-o", format})
	lines := func(text string) map[string]string {
		m := map[string]string{}
		for _, l := range slurmtest.Lines(text) {
			f := strings.Split(l, "|")
			m[f[0]] = strings.Join(f, "|")
		}
		return m
	}
	w, g := lines(want), lines(got.Out)
	for _, id := range []string{"JOBID", "13", "21", "6", "24", "12", "11", "4_[5-20%4]", "25", "19"} {
		if d := cmp.Diff(w[id], g[id]); d != "" {
			t.Errorf("job %s (-want +got)\n%s", id, d)
		}
	}
}

func TestLongFormat(t *testing.T) {
	t.Parallel()
	want, _ := slurmtest.Golden(t, "squeue-O")
	c := slurmtest.Lab()
	c.Now = slurmtest.Day("01:10:20").Go().UTC()
	got := c.Start(t).Run(t, "squeue", Run, []string{
		"-O",
		"JobID,ArrayJobID,ArrayTaskID,Name,UserName,Account,Partition,StateCompact,TimeUsed,NumNodes,NumCPUs," +
			"tres-alloc:60,ReasonList",
	})
	drop := []string{"16   ", "17   ", "gpt  ", "par  "} // their memory is not the lab's 10 MiB a CPU
	if d := cmp.Diff(sorted(slurmtest.Without(want, drop...)), sorted(slurmtest.Without(got.Out, drop...))); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// After a colon a column is as wide as is said, or as its value; what follows the width is printed as it is.
func TestLongFormatWidths(t *testing.T) {
	t.Parallel()
	for format, want := range map[string]string{
		"JobID:,Name:":           "1sleeper\n",
		"jobid:|,name:|,state:":  "1|sleeper|RUNNING\n",
		"jobid:4 ,name:.3### ":   "1    sle### \n",
		"jobid: ,name:\x1f":      "1 sleeper\x1f\n",
		" jobid:3, name , state": "1  sleeper             RUNNING             \n",
	} {
		got := slurmtest.Lab().Start(t).Run(t, "squeue", Run, []string{"-h", "-j", "1", "-O", format})
		if got.Out != want {
			t.Errorf("-O %q: got %q, want %q", format, got.Out, want)
		}
	}
}

func TestBadFormatIsToldAndKept(t *testing.T) {
	t.Parallel()
	got := slurmtest.Lab().Start(t).Run(t, "squeue", Run, []string{"-j", "1", "-o", "%i %!"})
	want := slurmtest.Result{Out: "JOBID %!\n1 %!\n", Err: "squeue: error: Invalid job format specification: !\n"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestServerAway(t *testing.T) {
	t.Parallel()
	want, code := slurmtest.Golden(t, "down-squeue")
	got := (*slurmtest.Cluster)(nil).Run(t, "squeue", Run, nil)
	if got.Err != want || got.Code != code {
		t.Errorf("got %d %q, want %d %q", got.Code, got.Err, code, want)
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	got := slurmtest.Lab().Start(t).Run(t, "squeue", Run, []string{"--json=v0.0.38", "-j", "1"})
	slurmtest.RecordedKeys(t, "squeue-json", "jobs", got.Out)
	var answer struct {
		Jobs []map[string]any `json:"jobs"`
	}
	if err := json.Unmarshal([]byte(got.Out), &answer); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{
		"job_id": 1.0, "job_state": "RUNNING", "account": "bench", "nodes": "n001", "time_limit": 10.0,
		"memory_per_cpu": 10.0,
		"start_time":     1794704932.0, "end_time": 1794705532.0, "tres_alloc_str": "cpu=1,mem=10M,node=1,billing=1",
		"name":    "sleeper",
		"cluster": "anchor", "array_job_id": 0.0, "array_task_id": nil, "priority": 10163.0,
	} {
		if d := cmp.Diff(want, answer.Jobs[0][key]); d != "" {
			t.Errorf("%s (-want +got)\n%s", key, d)
		}
	}
}

func TestEnvironmentAndBitstringLength(t *testing.T) {
	t.Parallel()
	got := slurmtest.Lab().Start(t).Run(t, "squeue", Run, []string{"-h"}, func(w *cmd.World) {
		w.Environ = append(w.Environ, "SQUEUE_FORMAT=%i %K", "SQUEUE_STATES=PD", "SQUEUE_NAMES=arr", "SLURM_BITSTR_LEN=3")
	})
	if got.Out != "4_[5-20%4] 5-20%4\n" && got.Out != "4_[...%4] ...%4\n" {
		t.Errorf("got %q, %s", got.Out, got.Err)
	}
}

func TestCompletingAndEnded(t *testing.T) {
	t.Parallel()
	c := slurmtest.Lab()
	c.Jobs = append(c.Jobs[:1],
		slurmtest.Job(30, "cg", "01:00:00", slurmtest.Running("01:00:00", slurmtest.On("n001", 1)),
			slurmtest.Ended("01:05:00", core.Cancelled, core.Exit{Signal: 15}), func(j *client.Job) {
				j.Flags = core.Completing
			}),
		slurmtest.Job(31, "done", "01:00:00", slurmtest.Running("01:00:00", slurmtest.On("n001", 1)),
			slurmtest.Ended("01:09:00", core.Failed, core.Exit{Code: 3}), func(j *client.Job) {
				j.Reason = core.ReasonNonZeroExit
			}))
	c.Start(t)
	if got := c.Run(t, "squeue", Run, []string{"-h", "-o", "%i %t %M %R"}); got.Out != "30 CG 5:00 n001\n1 R 1:27 n001\n" {
		t.Errorf("by default: %q", got.Out)
	}
	if got := c.Run(t, "squeue", Run, []string{"-h", "-t", "all", "-o", "%i %T %R"}); got.Out !=
		"30 COMPLETING n001\n1 RUNNING n001\n31 FAILED (NonZeroExitCode)\n" {
		t.Errorf("all: %q", got.Out)
	}
	if got := c.Run(t, "squeue", Run, []string{"-h", "-j", "31"}); got.Out != "" || got.Code != 0 {
		t.Errorf("an ended job: %+v", got)
	}
}
