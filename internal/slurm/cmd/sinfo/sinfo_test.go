package sinfo

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm/slurmtest"
)

func TestMain(m *testing.M) {
	time.Local = time.UTC // the recordings were made in UTC
	os.Exit(m.Run())
}

// lab is the idle cluster of the recordings, with the loads it had.
func lab() *slurmtest.Cluster {
	c := slurmtest.Lab()
	for i, l := range []float64{36.14, 36.07, 36.07, 35.88, 35.88, 35.88, 35.77, 35.77} {
		c.Nodes[i].Load = l
		c.Nodes[i].FreeMem = core.Bytes([]int64{12809, 12760, 12775, 12724, 12789, 12754, 12772, 12758}[i]) * core.MiB
	}
	// Slurm knows of none
	c.Nodes = append(c.Nodes, client.Node{Node: core.Node{Name: "login", Roles: core.Login}, State: "IDLE"})
	return c
}

func TestAgainstRecordings(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"sinfo-idle": nil,
		"sinfo-s":    {"-s"},
		"sinfo-N-l":  {"-N", "-l"},
		"sinfo-custom-o": {"-o", "%P %a %l %D %t %N %C %m %G %f %O %e %c %z %X %Y %Z %w %E %T %F %A %B %h %I " +
			"%L %p %r %R %s %S %v %V"},
		"sinfo-O":              {"-O", "NodeList:20,Partition,StateLong,CPUsState,FreeMem,Memory,Gres:20,GresUsed:30"},
		"sinfo-h-noheader":     {"-h", "-o", "%D"},
		"sinfo-all-partitions": {"-a", "-l"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, code := slurmtest.Golden(t, name)
			got := lab().Start(t).Run(t, "sinfo", Run, args)
			if d := cmp.Diff(slurmtest.Without(want, "Sun Nov"), slurmtest.Without(got.Out, "Sun Nov")); d != "" ||
				got.Code != code || got.Err != "" {
				t.Errorf("code %d, want %d, %s(-want +got)\n%s", got.Code, code, got.Err, d)
			}
		})
	}
}

func TestMixedStates(t *testing.T) {
	t.Parallel()
	c := lab()
	for i, s := range []string{
		"MIXED+COMPLETING", "IDLE+PLANNED", "IDLE+DRAIN", "IDLE", "IDLE", "DOWN*", "ALLOCATED",
		"MIXED",
	} {
		c.Nodes[i].State = s
	}
	c.Nodes[2].Reason, c.Nodes[2].ReasonBy, c.Nodes[2].ReasonAt = "bad disk", "root", slurmtest.Day("01:15:19")
	c.Nodes[6].AllocCPUs, c.Nodes[7].AllocCPUs = 64, 4
	c.Start(t)
	for _, tc := range []struct{ args, want string }{
		{
			"-h -p main -o %t|%D|%N",
			"comp|1|n001\nplnd|1|n002\ndown*|1|n006\ndrain|1|n003\nmix|1|n008\nalloc|1|n007\nidle|2|n[004-005]\n",
		},
		{"-h -p main -o %P|%C|%F", "main*|68/316/128/512|3/3/2/8\n"},
		{"-h -t drain,down -p main", "main*        up   infinite      1  down* n006\nmain*        up   infinite      " +
			"1  drain n003\n"},
		{"-h -t down", "main*        up   infinite      1  down* n006\nshort        up      30:00      1  down* " +
			"n006\ndebug        up      10:00      0    n/a \n"},
		{"-R", "REASON               USER      TIMESTAMP           NODELIST\nbad disk             root      " +
			"2026-11-15T01:15:19 n003\n"},
		{"-h -n n004 -O StateCompact:|,NodeList:|,NodeAIOT:", "idle|n004|0/1/0/1\n"}, // of two partitions, yet once
		{"-h -n n004 -O PartitionName:|,NodeList:", "main|n004\nshort|n004\ndebug|\n"},
		{"-h -n n004,n007 -o %n|%T -p short", "vm|allocated\nvm|idle\n"},
	} {
		got := c.Run(t, "sinfo", Run, strings.Fields(tc.args))
		if d := cmp.Diff(tc.want, got.Out); d != "" || got.Code != 0 {
			t.Errorf("%s: %s(-want +got)\n%s", tc.args, got.Err, d)
		}
	}
	if got := c.Run(t, "sinfo", Run, []string{"-t", "nope"}); got.Code != 1 {
		t.Errorf("a bad state is taken: %+v", got)
	}
}

func TestServerAway(t *testing.T) {
	t.Parallel()
	want, code := slurmtest.Golden(t, "down-sinfo")
	got := (*slurmtest.Cluster)(nil).Run(t, "sinfo", Run, nil)
	if got.Err != want || got.Code != code {
		t.Errorf("got %d %q, want %d %q", got.Code, got.Err, code, want)
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	got := lab().Start(t).Run(t, "sinfo", Run, []string{"--json=v0.0.38"})
	slurmtest.RecordedKeys(t, "sinfo-json", "nodes", got.Out)
	var answer struct {
		Nodes []map[string]any `json:"nodes"`
	}
	if err := json.Unmarshal([]byte(got.Out), &answer); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"name": "n001", "state": "idle", "cpus": 64.0, "cpu_load": 3614.0, "free_memory": 12809.0, "gres": "gpu:a100:4",
		"idle_cpus": 64.0,
		"tres":      "cpu=64,mem=64G,billing=64,gres/gpu=4", "partitions": []any{"main", "short", "debug"}, "tres_used": nil,
	}
	for key, v := range want {
		if d := cmp.Diff(v, answer.Nodes[0][key]); d != "" {
			t.Errorf("%s (-want +got)\n%s", key, d)
		}
	}
}

func TestReservations(t *testing.T) {
	t.Parallel()
	want, code := slurmtest.Golden(t, "sinfo-reservations")
	c := lab()
	c.Reservations = []client.Reservation{
		{State: "INACTIVE", AdvanceReservation: core.AdvanceReservation{
			Name: "maint", Start: slurmtest.Day("02:15:15"),
			End: slurmtest.Day("04:15:15"), Nodes: "n[001-002]",
		}},
		{State: "ACTIVE", AdvanceReservation: core.AdvanceReservation{
			Name: "physics_2", Start: slurmtest.Day("01:15:15"), End: slurmtest.Day("02:15:15"), Nodes: "n[002-003]",
		}},
	}
	c.Nodes[1].State, c.Nodes[2].State = "IDLE+RESERVED", "IDLE+MAINTENANCE+RESERVED"
	c.Start(t)
	if got := c.Run(t, "sinfo", Run, []string{"-T"}); got.Out != want || got.Code != code {
		t.Errorf("got %d\n%s\nwant\n%s", got.Code, got.Out, want)
	}
	if got := c.Run(t, "sinfo", Run, strings.Fields("-h -p main -t resv,maint -o %t|%T|%N")); got.Out !=
		"resv|reserved|n002\nmaint|maint|n003\n" {
		t.Errorf("got %s", got.Out)
	}
	if got := lab().Start(t).Run(t, "sinfo", Run, []string{"-T"}); got.Out != "No reservations in the system\n" {
		t.Errorf("got %s", got.Out)
	}
}

// TestHiddenPartitions: a partition with Hidden=YES is listed to administrators, with --all, and by its name.
func TestHiddenPartitions(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		args  string
		admin bool
		shown bool
	}{
		{"-h -o %P", false, false},
		{"-h -o %P --hide", false, false},
		{"-h -o %P -a", false, true},
		{"-h -o %P -p debug", false, true},
		{"-h -o %P", true, true},
	} {
		c := lab()
		c.Who.Admin = tc.admin
		for i := range c.Info.Partitions {
			c.Info.Partitions[i].Hidden = c.Info.Partitions[i].Name == "debug"
		}
		got := c.Start(t).Run(t, "sinfo", Run, strings.Fields(tc.args))
		if got.Code != 0 || strings.Contains(got.Out, "debug") != tc.shown || got.Out == "" {
			t.Errorf("sinfo %s, admin %v: %d %q %q", tc.args, tc.admin, got.Code, got.Out, got.Err)
		}
	}
}
