package sim

import (
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"
)

// expected is the mean bounded slowdown and mean wait that the traces' own page gives for a rule.
type expected struct {
	slowdown, wait float64
}

var traces = map[string]map[string]expected{
	"KTH-SP2-1996-2.1-cln": {
		"fcfs": {4294.50, 218832}, "easy": {86.37, 6351}, "easy-sjbf": {66.40, 5623}, "conservative": {89.44, 7006},
		"sjf-easy": {41.87, 4378},
	},
	"SDSC-SP2-1998-4.2-cln": {
		"fcfs": {13993.26, 1551989}, "easy": {92.63, 21184}, "easy-sjbf": {86.76, 21686},
		"conservative": {93.48, 23453}, "sjf-easy": {53.83, 31369},
	},
	"CEA-Curie-2011-2.1-cln": {
		"fcfs": {456.20, 14615}, "easy": {16.29, 1308}, "easy-sjbf": {11.62, 1012}, "sjf-easy": {9.42, 640},
	},
	"lublin_256": {
		"fcfs": {66502.48, 2388444}, "easy": {590.05, 97156}, "easy-sjbf": {219.56, 73394},
		"conservative": {489.20, 131568}, "sjf-easy": {40.56, 59632},
	},
}

// utilisation is what the page gives for EASY.
var utilisation = map[string]float64{
	"KTH-SP2-1996-2.1-cln": 0.6841, "SDSC-SP2-1998-4.2-cln": 0.8339, "CEA-Curie-2011-2.1-cln": 0.6178,
	"lublin_256": 0.9363,
}

// shared reads the usable jobs of a shared trace.
func shared(t *testing.T, name string) (jobs []Job, procs int64) {
	t.Helper()
	dir := os.Getenv("BIREME_TRACES")
	if dir == "" {
		t.Skip("BIREME_TRACES names no folder of traces")
	}
	f, err := os.Open(filepath.Join(dir, name+".swf.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := NewReader(name, f)
	if err != nil {
		t.Fatal(err)
	}
	procs = r.Procs()
	r.Limit(procs)
	for {
		j, err := r.Next()
		if errors.Is(err, io.EOF) {
			return jobs, procs
		}
		if err != nil {
			t.Fatal(err)
		}
		jobs = append(jobs, *j)
	}
}

// TestTracesStartAsTheReference: on the shared traces every job starts when the plain rules say, and the figures are
// those of the traces' page.
func TestTracesStartAsTheReference(t *testing.T) {
	for name, rules := range traces {
		for rule, want := range rules {
			t.Run(name+"/"+rule, func(t *testing.T) {
				t.Parallel()
				jobs, procs := shared(t, name)
				s := agree(t, rule, procs, jobs, []int32{int32(procs)})
				if math.Abs(s.Slowdown.Mean-want.slowdown) > 0.006 || math.Abs(s.MeanWait-want.wait) > 0.6 {
					t.Errorf("mean bounded slowdown %.2f and wait %.0f s, want %.2f and %.0f", s.Slowdown.Mean,
						s.MeanWait, want.slowdown, want.wait)
				}
				if rule == "easy" && math.Abs(s.Utilisation-utilisation[name]) > 0.00006 {
					t.Errorf("utilisation %.4f, want %.4f", s.Utilisation, utilisation[name])
				}
			})
		}
	}
}

// agree runs jobs by the production rules and by the reference and compares every start.
func agree(t *testing.T, rule string, procs int64, jobs []Job, nodes []int32) *Summary {
	t.Helper()
	r, err := ParseRule(rule)
	if err != nil {
		t.Fatal(err)
	}
	want := referenceStarts(rule, procs, jobs)
	i, wrong := 0, 0
	s, err := Run(Config{Nodes: nodes, Rule: r}, &sorted{jobs: jobs}, func(row *Row) error {
		j := &jobs[i]
		if exp := (Row{j.Number, j.Submit, want[i], want[i] + j.Run, j.Procs, j.index}); *row != exp {
			if wrong++; wrong <= 5 {
				t.Errorf("row %d: %+v, want %+v", i, *row, exp)
			}
		}
		i++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if i != len(jobs) || wrong > 0 {
		t.Errorf("%d of %d jobs, %d of them wrong", i, len(jobs), wrong)
	}
	return s
}
