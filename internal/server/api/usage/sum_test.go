package usage

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/store"
)

func at(minutes int) core.Time { return core.Time(minutes) * 60e6 }

func alloc(resv string, cpus ...int32) *core.Alloc {
	al := &core.Alloc{Partition: "main"}
	for i, n := range cpus {
		al.Nodes = append(al.Nodes, core.NodeAlloc{
			Node: core.NodeName([]string{"n1", "n2"}[i]), CPUs: n, Mem: core.GiB,
			Gres: []core.GresAlloc{{Name: "gpu", Units: []int32{0}}},
		})
	}
	if resv != "" {
		al.More = &core.AllocMore{Reservation: resv}
	}
	return al
}

// TestSum: a job counts with the part of it that lies in the window, its earlier attempts too, and what it waited.
func TestSum(t *testing.T) {
	t.Parallel()
	q := query{start: at(60), end: at(120)}
	for _, tc := range []struct {
		name   string
		u      store.JobUsage
		q      query
		want   string // of the row; empty: none
		waited float64
	}{
		{
			"inside",
			store.JobUsage{Start: at(70), End: at(80), Alloc: alloc("", 2)},
			q, "billing=1200,cpu=1200,gres/gpu=600,mem=614400,node=600", 0,
		},
		{
			"cut at both ends",
			store.JobUsage{Start: at(1), End: at(500), Alloc: alloc("", 1, 3)},
			q, "billing=14400,cpu=14400,gres/gpu=7200,mem=7372800,node=7200", 0,
		},
		{
			"runs on",
			store.JobUsage{Start: at(110), Alloc: alloc("", 1)},
			q, "billing=600,cpu=600,gres/gpu=600,mem=614400,node=600", 0,
		},
		{"before", store.JobUsage{Start: at(10), End: at(60), Alloc: alloc("", 1)}, q, "", 0},
		{"never ran", store.JobUsage{Submit: at(70), End: at(80)}, q, "", 0},
		{
			"half of it suspended",
			store.JobUsage{Start: at(70), End: at(80), PausedFor: int64(5 * time.Minute), Alloc: alloc("", 2)},
			q, "billing=600,cpu=600,gres/gpu=300,mem=307200,node=300", 0,
		},
		{
			"waited",
			store.JobUsage{Eligible: at(50), Start: at(70), End: at(80), Alloc: alloc("", 2)},
			q, "billing=1200,cpu=1200,gres/gpu=600,mem=614400,node=600", 1200,
		},
		{
			"twice",
			store.JobUsage{
				Start: at(70), End: at(80), Alloc: alloc("", 2),
				Earlier: &core.Earlier{Attempts: []core.Attempt{{Start: at(61), End: at(62), Alloc: alloc("", 2)}}},
			},
			q, "billing=1320,cpu=1320,gres/gpu=660,mem=675840,node=660", 0,
		},
		{
			"of a partition",
			store.JobUsage{Start: at(70), End: at(80), Alloc: alloc("", 2)},
			query{start: at(60), end: at(120), partitions: setOf([]string{"other"})},
			"", 0,
		},
		{
			"of a node",
			store.JobUsage{Start: at(70), End: at(80), Alloc: alloc("", 2)},
			query{start: at(60), end: at(120), nodes: setOf([]string{"n2"})},
			"", 0,
		},
		{
			"of an array",
			store.JobUsage{
				ID: 9, Array: &core.ArrayRef{Base: 7},
				Start: at(70), End: at(71), Alloc: alloc("", 1),
			},
			query{start: at(60), end: at(120), ids: setOf([]string{"7"})},
			"billing=60,cpu=60,gres/gpu=60,mem=61440,node=60", 0,
		},
		{
			"of a group",
			store.JobUsage{GID: 5, Start: at(70), End: at(71), Alloc: alloc("", 1)},
			query{start: at(60), end: at(120), groups: map[uint32]bool{4: true}},
			"", 0,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newSum(tc.q, nil)
			s.add(&tc.u)
			got := ""
			for _, x := range s.rows {
				got += x.tres().String()
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Error(d)
			}
			if w := s.waited / perSecond; w != tc.waited {
				t.Errorf("waited %v CPU seconds, want %v", w, tc.waited)
			}
		})
	}
}

// TestInside: what a job used of a reservation counts for the occurrence that it began in.
func TestInside(t *testing.T) {
	t.Parallel()
	past := []*core.AdvanceReservation{
		{Name: "r", ID: 1, Start: at(0), End: at(60)}, {Name: "r", ID: 1, Start: at(60), End: at(120)},
	}
	s := newSum(query{start: at(0), end: at(120)}, past)
	s.add(&store.JobUsage{Start: at(70), End: at(80), Alloc: alloc("r", 4)})
	s.add(&store.JobUsage{Start: at(70), End: at(80), Alloc: alloc("", 4)})
	if s.inside[0] != nil || s.inside[1] == nil || s.inside[1].tres().Count("cpu") != 2400 || s.busy[1] != 600e6 {
		t.Errorf("got %+v, %+v", s.inside, s.busy)
	}
}
