package scontrol

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm/slurmtest"
)

// reservations are those of the recordings.
func reservations(c *slurmtest.Cluster) {
	c.Reservations = []client.Reservation{
		{State: "INACTIVE", Cores: 128, CPUs: 128, AdvanceReservation: core.AdvanceReservation{
			Name: "maint", ID: 1, Start: slurmtest.Day("02:15:15"), End: slurmtest.Day("04:15:15"), Nodes: "n[001-002]",
			NodeCount: 2,
			Users:     []core.UserName{"root"}, Flags: core.ReserveMaint | core.ReserveSpecNodes,
		}},
		{State: "ACTIVE", Cores: 128, CPUs: 128, AdvanceReservation: core.AdvanceReservation{
			Name: "physics_2", ID: 2, Start: slurmtest.Day("01:15:15"), End: slurmtest.Day("02:15:15"),
			Nodes: "n[002-003]", NodeCount: 2,
			Partition: "main", Projects: []core.ProjectName{"physics"}, Flags: core.ReserveIgnoreJobs,
		}},
	}
}

func TestReservationWords(t *testing.T) {
	t.Parallel()
	now := slurmtest.Day("01:00:00")
	for _, tc := range []struct {
		args string
		sent string
		out  string
		err  string
		code int
	}{
		{
			args: "create res res=x start=now dur=1-0 nodes=ALL user=-alan,-bob acc=physics feat=ib part=main " +
				"flags=daily,purge_comp=00:10:00 maxstart=5 comment=hi corecnt=2,3 lic=matlab:2",
			sent: `POST reservations {"name":"x","id":0,"start":1794704400000000,"end":1794790800000000,"nodes":"ALL",` +
				`"core_count":5,"partition":"main","features":"ib","users":["-alan","-bob"],"accounts":["physics"],` +
				`"licenses":[{"name":"matlab","total":2}],` +
				`"flags":["DAILY","PURGE_COMP"],"purge_comp":600,"max_start_delay":300,"comment":"hi"}`,
			out: "Reservation created: x\n",
		},
		{
			args: "create reservationname=y starttime=02:00 endtime=03:00 tres=node=2,license/a=1 groups=staff flags=time_float",
			sent: `POST reservations {"name":"y","id":0,"start":1794708000000000,"end":1794711600000000,"node_count":2,` +
				`"groups":["staff"],"licenses":[{"name":"a","total":1}],"flags":["TIME_FLOAT"]}`,
			out: "Reservation created: y\n",
		},
		{
			args: "update reservationname=maint duration=60 flags-=maint flags+=weekly",
			sent: `PATCH reservations/maint {"duration":3600,"set_flags":["WEEKLY"],"drop_flags":["MAINT"]}`,
			out:  "Reservation updated.\n",
		},
		{
			args: "update res=maint users+=ann users-=root nodes+=n003",
			sent: `PATCH reservations/maint {"nodes":"n[001-003]","users":["ann"]}`, out: "Reservation updated.\n",
		},
		{
			args: "update reservation=zz duration=60", sent: `PATCH reservations/zz {"duration":3600}`,
			err: "Error updating the reservation: Requested reservation is invalid\n", code: 1,
		},
		{args: "delete reservationname=maint", sent: `DELETE reservations/maint`},
		{args: "delete reservation maint", sent: `DELETE reservations/maint`},
		{
			args: "delete reservationname=physics_1", sent: `DELETE reservations/physics_1`,
			err: "delete_reservation reservationname=physics_1: Requested reservation is invalid\n", code: 1,
		},
		{args: "show reservation zz", out: "Reservation zz not found\n", code: 1},
		{
			args: "create reservation duration=60 users=root nodes=n001",
			err:  "scontrol: error: A start time must be given.  No reservation created.\n", code: 1,
		},
		{
			args: "create reservation start=now users=root nodes=n001",
			err:  "scontrol: error: An end time or duration must be specified.  No reservation created.\n", code: 1,
		},
		{
			args: "create reservation start=now dur=1 users=root nodes=n001 flags=dialy",
			err:  "scontrol: error: Error parsing flags dialy.  No reservation created.\n", code: 1,
		},
		{
			args: "create reservation start=never dur=1 users=root",
			err: "Invalid time specification (pos=0): never\n" +
				"scontrol: error: Invalid start time start=never.  No reservation created.\n", code: 1,
		},
		{args: "create reservation foo=bar", err: "scontrol: error: Unknown parameter foo=bar.  No reservation " +
			"created.\n", code: 1},
		{
			args: "create reservation start=now dur=1 users=root burstbuffer=x",
			err:  "scontrol: error: burstbuffer cannot be reserved here.  No reservation created.\n", code: 1,
		},
		{args: "create frob=x", err: "scontrol: error: Invalid creation entity: frob=x\n", code: 1},
	} {
		c := lab()
		reservations(c)
		c.Now = now.Go().UTC()
		got := c.Start(t).Run(t, "scontrol", Run, strings.Fields(tc.args))
		if d := cmp.Diff(tc.sent, strings.Join(c.Resvs, "\n")); d != "" {
			t.Errorf("%s: sent (-want +got)\n%s", tc.args, d)
		}
		if got.Out != tc.out || got.Err != tc.err || got.Code != tc.code {
			t.Errorf("%s: got %+v", tc.args, got)
		}
	}
	for reason, want := range map[string]string{
		"reservation_overlap": "Requested reservation overlaps with another reservation",
		"nodes_busy":          "Requested nodes are busy",
		"invalid_node":        "Invalid node name specified", "invalid_time_value": "Invalid time specified",
	} {
		c := lab()
		c.Refuse = core.Errorf(core.Conflict, "no").Because(reason)
		got := c.Start(t).Run(t, "scontrol", Run, strings.Fields("create reservation start=now dur=1 users=root nodes=n001"))
		if got.Err != "Error creating the reservation: "+want+"\n" || got.Code != 1 {
			t.Errorf("%s: %+v", reason, got)
		}
	}
}

func TestReconfigure(t *testing.T) {
	t.Parallel()
	asked := 0
	c := lab()
	c.Handle = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method+" "+r.URL.Path != "POST /api/v1/reconfigure" {
			return false
		}
		asked++
		fmt.Fprint(w, `{"changes":[],"settings":[],"applied":true}`)
		return true
	}
	if got := c.Start(t).Run(t, "scontrol", Run, []string{"reconfigure"}); got.Out+got.Err != "" || got.Code != 0 ||
		asked != 1 {
		t.Errorf("got %+v, asked %d times", got, asked)
	}
	c = lab()
	c.Handle = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method+" "+r.URL.Path != "POST /api/v1/reconfigure" {
			return false
		}
		fmt.Fprint(w, `{"changes":[],"settings":[],"restart":[{"name":"cluster","was":"a","is":"b"}],"applied":true}`)
		return true
	}
	if got := c.Start(t).Run(t, "scontrol", Run, []string{"reconfigure"}); got.Code != 0 || got.Hint !=
		"scontrol: hint: cluster: a is in force until the server is restarted; the file says b\n" {
		t.Errorf("got %+v", got)
	}
	c = lab()
	bad := core.Errorf(core.Invalid, "config.yml: 2 faults")
	bad.Faults = []core.Fault{
		{Path: "line 1: partitons", Message: "there is no such setting"},
		{Path: "line 2: cluster", Message: "may not be empty"},
	}
	c.Refuse = bad
	want := "slurm_reconfigure error: config.yml: 2 faults\nline 1: partitons: there is no such setting\nline 2: " +
		"cluster: may not be empty\n"
	if got := c.Start(t).Run(t, "scontrol", Run, []string{"reconfigure"}); got.Err != want || got.Code != 1 {
		t.Errorf("got %+v, want %s", got, want)
	}
	c = lab()
	c.Refuse = core.Errorf(core.Denied, "no").Because("access_denied")
	if got := c.Start(t).Run(t, "scontrol", Run, []string{"reconfigure"}); got.Err !=
		"slurm_reconfigure error: Access/permission denied\n" || got.Code != 1 {
		t.Errorf("got %+v", got)
	}
}
