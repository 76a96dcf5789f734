package sreport

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm/slurmtest"
)

// minutesOf is resources × minutes, as a server gives them.
func minutesOf(cpu, mem, node, gpu int64) core.TRES {
	return core.TRESOf(
		core.Amount{Name: "cpu", Count: cpu * 60}, core.Amount{Name: "mem", Count: mem * 60},
		core.Amount{Name: "node", Count: node * 60}, core.Amount{Name: "billing", Count: cpu * 60},
		core.Amount{Name: "gres/gpu", Count: gpu * 60})
}

// day is what a server says of the day of which testdata/day.txt holds Slurm's reports. Without jobs is what a
// reservation left idle.
func day() *client.Usage {
	return &client.Usage{
		Rows: []client.UsageRow{
			{Project: "bench", User: "root", TRES: core.TRES{{Name: "cpu", Count: 240 * 60}}},
			{Project: "bench", User: "root", CPUs: 1, Jobs: 1, TRES: minutesOf(30, 0, 30, 0)},
			{Project: "physics", User: "daemon", CPUs: 16, Jobs: 1, TRES: minutesOf(960, 122880, 120, 0)},
			{Project: "physics", User: "games", WCKey: "wa", CPUs: 4, Jobs: 1, TRES: minutesOf(440, 450560, 110, 0)},
			{Project: "sub", User: "games", WCKey: "wb", CPUs: 2, Jobs: 1, TRES: minutesOf(360, 184320, 180, 180)},
		},
		Cluster: client.ClusterUsage{
			Capacity:  core.TRES{{Name: "billing", Count: 24}, {Name: "cpu", Count: 24}, {Name: "gres/gpu", Count: 12}},
			Reported:  minutesOf(34560, 283115520, 60, 17280),
			Allocated: minutesOf(1760, 757760, 0, 180).Plus(core.TRES{{Name: "cpu", Count: 480 * 60}}, 1),
			Down:      minutesOf(480, 3932160, 60, 240),
			Planned:   core.TRES{{Name: "cpu", Count: 2400}},
		},
		Reservations: []client.ReservationUsage{{
			AdvanceReservation: core.AdvanceReservation{
				Name: "rr", ID: 1, Start: slurmtest.Day("05:00:00"), End: slurmtest.Day("06:00:00"), Nodes: "n001",
			},
			Size:  core.TRES{{Name: "cpu", Count: 8}, {Name: "node", Count: 1}},
			Total: minutesOf(480, 0, 60, 0), Used: minutesOf(30, 0, 30, 0),
		}},
	}
}

func lab(t *testing.T, usage *client.Usage) *slurmtest.Cluster {
	c := slurmtest.Lab()
	c.Handle = func(w http.ResponseWriter, r *http.Request) bool {
		switch r.URL.Path {
		case "/api/v1/usage":
			json.NewEncoder(w).Encode(usage)
		case "/api/v1/policy":
			json.NewEncoder(w).Encode(client.PolicyList{Policy: core.Policy{Projects: []core.Project{
				{Name: "bench"}, {Name: "physics"}, {Name: "sub", Parent: "physics"},
			}}})
		default:
			return false
		}
		return true
	}
	c.Now = slurmtest.Day("12:00:00").Go().AddDate(0, 0, 1)
	return c.Start(t)
}

// TestAgainstSlurm compares reports of one day with those of Slurm. A line that begins with "! " is standard error.
func TestAgainstSlurm(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/day.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(string(text), "$ sreport ")[1:] {
		args, want, _ := strings.Cut(block, "\n")
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			got := lab(t, day()).Run(t, "sreport", Run, strings.Fields(args))
			out := got.Out
			for l := range strings.Lines(got.Err) {
				out += "! " + strings.TrimSuffix(l, "\n") + "\n"
			}
			if got.Code != 0 {
				out += fmt.Sprintf("[%d]\n", got.Code)
			}
			if d := cmp.Diff(want, out); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestBadNodes: a list of nodes that does not expand is refused. A report about all nodes would be taken for theirs.
func TestBadNodes(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"job sizes nodes=n[1", "reservation util nodes=n[1"} {
		got := lab(t, day()).Run(t, "sreport", Run, strings.Fields(args))
		if got.Code != 1 || got.Out != "" || !strings.Contains(got.Err, "Invalid hostlist: n[1") {
			t.Errorf("sreport %s: %d %q %q", args, got.Code, got.Out, got.Err)
		}
	}
}
