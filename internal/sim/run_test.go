package sim

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// loads are made workloads: an idle machine, a busy one, one that never catches up, one of a single processor.
var loads = map[string]load{
	"idle":     {seed: 1, jobs: 2000, procs: 64, gap: 2000},
	"busy":     {seed: 2, jobs: 3000, procs: 128, gap: 300},
	"flooded":  {seed: 3, jobs: 1500, procs: 32, gap: 60},
	"odd size": {seed: 4, jobs: 2000, procs: 97, gap: 300},
	"serial":   {seed: 5, jobs: 1000, procs: 1, gap: 900},
}

func TestGeneratedLoadsStartAsTheReference(t *testing.T) {
	t.Parallel()
	for name, l := range loads {
		for _, rule := range Rules() {
			t.Run(name+"/"+rule, func(t *testing.T) {
				t.Parallel()
				agree(t, rule, l.procs, l.make(), []int32{int32(l.procs)})
			})
		}
	}
}

// TestManyNodesAreOneMachineInOrder: where every CPU is as good as any other, how they are boxed changes nothing for a
// rule that looks at one job at a time. Backfilling rules promise nodes, not a number of CPUs, and so differ; they give
// nothing twice.
func TestManyNodesAreOneMachineInOrder(t *testing.T) {
	t.Parallel()
	l := load{seed: 6, jobs: 500, procs: 24, gap: 200}
	for name, nodes := range map[string][]int32{
		"24 of 1": slices.Repeat([]int32{1}, 24),
		"6 of 4":  slices.Repeat([]int32{4}, 6),
	} {
		for _, rule := range Rules() {
			t.Run(name+"/"+rule, func(t *testing.T) {
				t.Parallel()
				jobs := l.make()
				if rule == "fcfs" {
					agree(t, rule, l.procs, jobs, nodes)
					return
				}
				r, err := ParseRule(rule)
				if err != nil {
					t.Fatal(err)
				}
				change := map[int64]int64{}
				s, err := Run(Config{Nodes: nodes, Rule: r}, &sorted{jobs: jobs}, func(row *Row) error {
					change[row.Start] += row.Procs
					change[row.End] -= row.Procs
					return nil
				})
				if err != nil || s.Jobs != int64(len(jobs)) {
					t.Fatalf("%+v, %v", s, err)
				}
				used := int64(0)
				for _, at := range slices.Sorted(maps.Keys(change)) {
					if used += change[at]; used > l.procs {
						t.Fatalf("%d of %d processors are given at %d", used, l.procs, at)
					}
				}
			})
		}
	}
}

const small = `; Computer: a small one
;  MaxNodes: 2
; MaxProcs: 4 (of which two are warm)

1 10 -1 100 2 -1 -1 2 100 -1 1 1 1 1 1 1 -1 -1
2 10 -1 50 4 -1 -1 4 60 -1 1 1 1 1 1 1 -1 -1
; a remark
3 11 -1 20 1 5.5 -1 -1 -1 -1 1 1 1 1 1 1 -1 -1
4	12 -1 0 1 -1 -1 1 10 -1 5 1 1 1 1 1 -1 -1
5 13 -1 10 -1 -1 -1 -1 10 -1 1 1 1 1 1 1 -1 -1
6 14 -1 10 5 -1 -1 5 10 -1 1 1 1 1 1 1 -1 -1
7 15 -1 200 1 -1 -1 1 10 -1 1 1 1 1 1 1 -1 -1`

func read(t *testing.T, text string) *Reader {
	t.Helper()
	r, err := NewReader("a.swf", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	r.Limit(r.Procs())
	return r
}

func TestReaderFollowsTheStandardRules(t *testing.T) {
	t.Parallel()
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	fmt.Fprint(w, small)
	w.Close()
	for name, text := range map[string]string{
		"plain": small, "gzip": z.String(),
		"crlf": strings.ReplaceAll(small, "\n", "\r\n"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := read(t, text)
			var got []string
			for {
				j, err := r.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, fmt.Sprintf("%d: %d procs for %d of %d s at %d", j.Number, j.Procs, j.Run, j.Estimate, j.Submit))
			}
			want := []string{
				"1: 2 procs for 100 of 100 s at 10", "2: 4 procs for 50 of 60 s at 10",
				"3: 1 procs for 20 of 20 s at 11", "7: 1 procs for 200 of 200 s at 15",
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(Dropped{NoRunTime: 1, NoProcessors: 1, TooLarge: 1}, r.Dropped); d != "" {
				t.Error(d)
			}
			if r.Procs() != 4 || r.Malformed != 0 {
				t.Errorf("%d procs, %d malformed", r.Procs(), r.Malformed)
			}
		})
	}
}

// TestMoreFieldsAreLeftOut: some archives add columns of their own; the first 18 count.
func TestMoreFieldsAreLeftOut(t *testing.T) {
	t.Parallel()
	r := read(t, "; MaxProcs: 4\n1 10 -1 100 2 -1 -1 2 100 -1 1 1 1 1 1 1 -1 -1 x y 7\n")
	s, err := Run(Config{Nodes: []int32{4}}, r, func(*Row) error { return nil })
	if err != nil || s.Jobs != 1 || r.Malformed != 0 {
		t.Fatalf("%+v, %d malformed, %v", s, r.Malformed, err)
	}
}

func TestMalformedLinesAreNamed(t *testing.T) {
	t.Parallel()
	good := "1 10 -1 100 2 -1 -1 2 100 -1 1 1 1 1 1 1 -1 -1"
	field := func(n int, v string) string {
		f := strings.Fields(good)
		f[n-1] = v
		return strings.Join(f, " ")
	}
	for name, tc := range map[string]struct{ line, want string }{
		"word":     {field(4, "long"), `a.swf:3: field 4 (run time): "long" is not a whole number`},
		"fraction": {field(2, "1.5"), `a.swf:3: field 2 (submit time): "1.5" is not a whole number`},
		"unread":   {field(7, "x"), `a.swf:3: field 7 (used memory): "x" is not a whole number`},
		"huge": {
			field(9, "99999999999"),
			`a.swf:3: field 9 (requested time): 99999999999 is more than 4000000000 seconds`,
		},
		"overflow": {
			field(8, "99999999999999999999"),
			`a.swf:3: field 8 (requested processors): "99999999999999999999" is not a whole number`,
		},
		"no submit": {field(2, "-1"), `a.swf:3: field 2 (submit time): -1 is no time to submit a job at`},
		"few fields": {
			"1 10 -1 100",
			`a.swf:3: field 5 (allocated processors): it is missing: the line has 4 fields, not 18`,
		},
		"long": {strings.Repeat("1 ", maxLine), `a.swf:3: the line is longer than 65536 bytes`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := read(t, "; MaxProcs: 4\n"+good+"\n"+tc.line+"\n"+strings.Replace(good, "1", "2", 1)+"\n")
			var told []string
			r.Report = func(f *Fault) { told = append(told, f.Error()) }
			s, err := Run(Config{Nodes: []int32{4}}, r, func(*Row) error { return nil })
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff([]string{tc.want}, told); d != "" {
				t.Error(d)
			}
			if s.Jobs != 2 || r.Malformed != 1 {
				t.Errorf("%d jobs ran, %d lines were malformed; want 2 and 1", s.Jobs, r.Malformed)
			}
		})
	}
}

func TestBrokenFiles(t *testing.T) {
	t.Parallel()
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	w.Write(swf(64, loads["idle"].make()))
	w.Close()
	r := read(t, z.String()[:z.Len()/2])
	if _, err := Run(Config{Nodes: []int32{64}}, r, func(*Row) error {
		return nil
	}); !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), "a.swf: after line") {
		t.Errorf("half a file: %v", err)
	}
	if _, err := NewReader("a.swf", strings.NewReader("\x1f\x8bnonsense of which gzip says no")); err == nil {
		t.Error("nonsense is taken for a trace")
	}
}

// TestTraceOutOfOrder: such a trace is refused as a stream; sorted, it gives the schedule of the one in order, and rows
// in the order of the file.
func TestTraceOutOfOrder(t *testing.T) {
	t.Parallel()
	jobs := loads["busy"].make()
	mixed := slices.Clone(jobs)
	slices.Reverse(mixed[100:200])
	text := string(swf(128, mixed))
	if _, err := Run(Config{Nodes: []int32{128}}, read(t, text), func(*Row) error {
		return nil
	}); !errors.Is(err, ErrOrder) {
		t.Fatalf("as a stream: %v", err)
	}
	src, err := Sorted(read(t, text))
	if err != nil {
		t.Fatal(err)
	}
	i := 0
	if _, err := Run(Config{Nodes: []int32{128}}, src, func(r *Row) error {
		if r.Number != mixed[i].Number {
			t.Fatalf("row %d is of job %d, want %d", i, r.Number, mixed[i].Number)
		}
		i++
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// endless is the same busy hour again and again.
type endless struct {
	jobs []Job
	left int
	at   int
	out  Job
}

func (e *endless) Next() (*Job, error) {
	if e.left == 0 {
		return nil, io.EOF
	}
	e.left--
	e.out = e.jobs[e.at%len(e.jobs)]
	e.out.Submit += int64(e.at/len(e.jobs)) * 4_000_000
	e.at++
	return &e.out, nil
}

// TestMemoryIsFlat: what is kept does not grow with what is past.
func TestMemoryIsFlat(t *testing.T) {
	t.Parallel()
	s := newSim(Config{Nodes: []int32{64}})
	s.emit = func(*Row) error { return nil }
	if err := s.run(&endless{jobs: loads["idle"].make(), left: 20_000}); err != nil {
		t.Fatal(err)
	}
	if n := s.st.Snapshot().NumJobs(); n != 0 {
		t.Errorf("%d jobs are still in the state", n)
	}
	if c := s.st.Flush(); len(c.Jobs)+len(c.Events)+len(c.Specs) > 0 {
		t.Errorf("the state kept %d jobs, %d events and %d specs for nobody", len(c.Jobs), len(c.Events), len(c.Specs))
	}
	if len(s.rows.list) > 4000 || cap(s.ends) > 256 {
		t.Errorf("%d rows and %d ends are kept", len(s.rows.list), cap(s.ends))
	}
}

func TestFiguresByHand(t *testing.T) {
	t.Parallel()
	// Job 1 has half of the machine for 100 s, job 2 wants all of it, job 3 fits beside job 1 but comes behind job 2, and
	// job 7 runs for longer than it asked: its estimate is its run time.
	r := read(t, small)
	rule, err := ParseRule("fcfs")
	if err != nil {
		t.Fatal(err)
	}
	var rows []Row
	s, err := Run(Config{Nodes: []int32{4}, Rule: rule}, r, func(r *Row) error { rows = append(rows, *r); return nil })
	if err != nil {
		t.Fatal(err)
	}
	want := []Row{{1, 10, 10, 110, 2, 0}, {2, 10, 110, 160, 4, 1}, {3, 11, 160, 180, 1, 2}, {7, 15, 160, 360, 1, 3}}
	if !slices.Equal(rows, want) {
		t.Errorf("rows %v, want %v", rows, want)
	}
	// Slowdowns: 1, 150/50 = 3, 169/20 = 8.45, 345/200 = 1.725.
	wantSum := &Summary{
		Jobs: 4, MeanWait: 98.5, MaxWait: 149, Makespan: 350, Utilisation: 620.0 / 1400, Passes: s.Passes,
		Slowdown: Quantity{Mean: 14.175 / 4, Median: 2.3625, P95: 3 + 5.45*0.85},
	}
	near := cmp.Comparer(func(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 })
	if d := cmp.Diff(wantSum, s, near); d != "" {
		t.Error(d)
	}
}

// TestQuantilesOfManyJobs: what is counted in classes is right to a ten-thousandth.
func TestQuantilesOfManyJobs(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(7, 7))
	var few, many spread
	for range maxExact {
		v := math.Exp(rng.ExpFloat64() * 3)
		few.add(v)
		many.add(v)
		many.add(v)
	}
	if many.classes == nil || few.classes != nil || many.exact != nil {
		t.Fatal("the small one is not exact, or the large one not in classes")
	}
	for _, q := range []float64{0, 0.5, 0.95, 1} {
		a, b := few.quantile(q), many.quantile(q)
		if math.Abs(a-b) > 2*width*a {
			t.Errorf("quantile %.2f is %v exactly and %v in classes", q, a, b)
		}
	}
}
