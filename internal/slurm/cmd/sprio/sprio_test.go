package sprio

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm/slurmtest"
)

// recorded are the jobs of the recordings. fair is the fair-share factor, size the points of the job's size.
func recorded() *client.PriorityList {
	list := &client.PriorityList{Weights: factors(0, 0, 0)}
	add := func(id core.JobID, user core.UserName, fair, size float64, now uint32) {
		list.Jobs = append(list.Jobs, client.JobPriority{
			ID: id, User: user, Project: "bench", Partition: "main",
			Priority: client.Priority{Now: now, Factors: factors(fair, size/1000, 0.1)},
		})
	}
	add(13, "root", 1, 507.8, 10607)
	for _, id := range []core.JobID{14, 21, 22, 23, 24} {
		add(id, "root", 1, 63.2, 10163)
	}
	add(25, "games", 0, 63.2, 163)
	return list
}

func factors(fair, size, part float64) []client.Factor {
	list := []client.Factor{
		{Name: "age", Weight: 1000},
		{Name: "fairshare", Value: fair, Weight: 10000},
		{Name: "job_size", Value: size, Weight: 1000},
		{Name: "partition", Value: part, Weight: 1000},
		{Name: "qos", Weight: 1000},
		{Name: "assoc"},
	}
	for i := range list {
		list[i].Points = list[i].Value * list[i].Weight
	}
	return list
}

// lab answers for priorities with a list; asked gets the query of the last call.
func lab(t *testing.T, list *client.PriorityList, asked *string) *slurmtest.Cluster {
	c := slurmtest.Lab()
	c.Missing = []string{"nosuchuser"}
	c.Handle = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/api/v1/priorities" {
			return false
		}
		*asked = r.URL.RawQuery
		json.NewEncoder(w).Encode(list)
		return true
	}
	return c.Start(t)
}

func TestAgainstRecordings(t *testing.T) {
	t.Parallel()
	for name, args := range map[string]string{"sprio": "", "sprio-l": "-l", "sprio-w": "-w"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, code := slurmtest.Golden(t, name)
			var asked string
			got := lab(t, recorded(), &asked).Run(t, "sprio", Run, strings.Fields(args))
			if d := cmp.Diff(want, got.Out); d != "" || got.Code != code || got.Err != "" {
				t.Errorf("code %d, %s (-want +got)\n%s", got.Code, got.Err, d)
			}
		})
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	fixed := recorded()
	fixed.Jobs = fixed.Jobs[:1]
	fixed.Jobs[0].Fixed, fixed.Jobs[0].Site, fixed.Jobs[0].Nice = true, 7, 3
	tres := recorded()
	tres.Jobs = tres.Jobs[:1]
	tres.Jobs[0].Site, tres.Jobs[0].Nice = -5, 3
	tres.Jobs[0].Factors = append(tres.Jobs[0].Factors,
		client.Factor{Name: "tres cpu", Value: 0.5, Weight: 8e6, Points: 4e6})
	tres.Weights = append(tres.Weights, client.Factor{Name: "tres cpu", Weight: 8e6})
	for name, tc := range map[string]struct {
		list           *client.PriorityList
		args, out, err string
		query          string
		code           int
	}{
		"normalized": {
			list: tres, args: "-n -h",
			out: "             13 main      0.00000246 0.0000000  1.0000000  0.5078000  0.1000000  0.0000000  " +
				"cpu=0.5             \n",
		},
		"resources":        {list: tres, args: "-h -o %i|%T|%t|%S|%N", out: "13|cpu=4000000|cpu=0.5|-5|3\n"},
		"weights of them":  {list: tres, args: "-w -h -o %i|%Y|%A|%B|%T|%S", out: "Weights||1000|0|cpu=8000000|1\n"},
		"priority was set": {list: fixed, args: "-h -o %i|%Y|%F|%J|%S|%N", out: "13|10607|0|0|0|0\n"},
		"sorted":           {args: "-h -S -i -o %i", out: "25\n24\n23\n22\n21\n14\n13\n"},
		"by priority": {args: "-h -S Y -o %i:%c", out: "" +
			"25:anchor\n14:anchor\n21:anchor\n22:anchor\n23:anchor\n24:anchor\n13:anchor\n"},
		"users have a column": {
			list: fixed, args: "-u root -h", query: "user=root",
			out: "             13 main          root      10607          0          0          0          0" +
				"          0          0\n",
		},
		"filters": {
			list: &client.PriorityList{Weights: factors(0, 0, 0)},
			args: "-j 7,8 -p main", query: "id=7&id=8&partition=main",
			out: "Unable to find jobs matching user/id(s) specified\n",
		},
		"nothing waits": {list: &client.PriorityList{Weights: factors(0, 0, 0)}, args: "-o %i", out: "JOBID\n"},
		"unknown user":  {args: "-u nosuchuser -o %i", out: "JOBID\n", err: "sprio: error: Invalid user: nosuchuser\n\n"},
		"unknown letter": {
			list: fixed, args: "-o %i%Z", err: "sprio: error: Invalid job format specification: Z\n", out: "JOBID%Z\n13%Z\n",
		},
		"another cluster": {
			args: "-M zz", code: 1,
			err: "sprio: error: No cluster 'zz' known by database.\nsprio: error: 'zz' can't be reached now, or it is an " +
				"invalid entry for --cluster.  Use 'sacctmgr list clusters' to see available clusters.\n",
		},
		"not an id": {args: "-j x", err: "sprio: error: Invalid job id: x\n", code: 1},
		"first come, first served": {
			list: &client.PriorityList{}, code: 1,
			err: "You are not running a supported priority plugin\n(priority/basic).\n" +
				"Only 'priority/multifactor' is supported.\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked string
			if tc.list == nil {
				tc.list = recorded()
			}
			got := lab(t, tc.list, &asked).Run(t, "sprio", Run, strings.Fields(tc.args))
			if got.Out != tc.out || got.Err != tc.err || got.Code != tc.code || tc.query != "" && asked != tc.query {
				t.Errorf("code %d, asked %q\n%s%s", got.Code, asked, got.Out, got.Err)
			}
		})
	}
}
