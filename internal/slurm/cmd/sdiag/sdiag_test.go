package sdiag

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/slurm/slurmtest"
)

func lab(t *testing.T, resets *int) *slurmtest.Cluster {
	c := slurmtest.Lab()
	c.Handle = func(w http.ResponseWriter, r *http.Request) bool {
		switch r.Method + " " + strings.TrimPrefix(r.URL.Path, "/api/v1") {
		case "GET /diag":
			json.NewEncoder(w).Encode(client.Diag{
				Now: slurmtest.Day("01:10:29"), Since: slurmtest.Day("01:07:55"), Pending: 26, Running: 13, Streams: 2,
				Jobs:   client.JobCounts{Submitted: 39, Started: 13},
				Passes: client.PassCounts{Count: 20, Last: 118, Longest: 1399, Total: 4980, Backfilled: 5, BackfilledSince: 4},
				Calls: []client.CallCount{
					{Name: "GET /cluster", Count: 52, Total: 63017},
					{Name: "GET /jobs", Count: 32, Total: 38934},
					{Name: "GET /fleets", Count: 1, Total: 90000},
				},
				Users: []client.CallCount{
					{Name: "root", Count: 204, Total: 645284}, {Name: "games", UID: 5, Count: 2, Total: 13625},
				},
			})
		case "POST /diag/reset":
			*resets++
			w.Write([]byte("{}"))
		default:
			return false
		}
		return true
	}
	return c.Start(t)
}

// The blocks, words and widths are the recording's. Its calls and the tables of backfill, which there are none of here,
// are left out.
func TestAgainstRecording(t *testing.T) {
	t.Parallel()
	want, code := slurmtest.Golden(t, "sdiag")
	got := lab(t, new(int)).Run(t, "sdiag", Run, nil)
	numbers := regexp.MustCompile(`\d+`)
	shape := func(text string) []string {
		var out []string
		for line := range strings.Lines(slurmtest.Without(text, "table size", "\tREQUEST_", "\tMESSAGE_", "\tACCOUNTING_",
			"\troot ", "\tslurm ", "\tgames ", "\tGET ", "Last cycle when")) {
			out = append(out, numbers.ReplaceAllString(line, "N"))
		}
		return out
	}
	if d := cmp.Diff(shape(want), shape(got.Out)); d != "" || got.Code != code || got.Err != "" {
		t.Errorf("code %d, %s (-want +got)\n%s", got.Code, got.Err, d)
	}
	for _, line := range []string{
		"\tREQUEST_PARTITION_INFO                  ( 2009) count:52     ave_time:1211   total_time:63017\n",
		"\troot            (       0) count:204    ave_time:3163   total_time:645284\n",
		"\tgames           (       5) count:2      ave_time:6812   total_time:13625\n",
		"Jobs submitted: 39\nJobs started:   13\n", "\tMean cycle:   249\n",
		"\tTotal backfilled jobs (since last stats cycle start): 4\n",
	} {
		if !strings.Contains(got.Out, line) {
			t.Errorf("there is no line %q in\n%s", line, got.Out)
		}
	}
}

func TestOrderAndReset(t *testing.T) {
	t.Parallel()
	resets := 0
	c := lab(t, &resets)
	for option, first := range map[string]string{
		"": "REQUEST_PARTITION_INFO", "-t": "GET /fleets", "-T": "GET /fleets", "-i": "GET /fleets",
	} {
		got := c.Run(t, "sdiag", Run, strings.Fields(option))
		_, rest, _ := strings.Cut(got.Out, "by message type\n\t")
		if !strings.HasPrefix(rest, first) {
			t.Errorf("sdiag %s begins with %.60q", option, rest)
		}
	}
	if got := c.Run(t, "sdiag", Run, []string{"-r"}); got.Out != "Reset scheduling statistics\n" || resets != 1 {
		t.Errorf("-r: %q, %d resets", got.Out, resets)
	}
	got := c.Run(t, "sdiag", Run, []string{"--nope"})
	if got.Code != 1 || !strings.Contains(got.Err, "Try \"sdiag --help\" for more information") {
		t.Errorf("--nope: %d %s", got.Code, got.Err)
	}
}
