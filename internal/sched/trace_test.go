package sched

import (
	"bufio"
	"compress/gzip"
	"container/heap"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"bireme.dev/bireme/internal/core"
)

// swfJob is a job of a trace, as much as the rules need.
type swfJob struct {
	submit, run, procs, estimate int64
	start                        int64
}

// readTrace reads a trace by the rules its figures were made by: requested processors, else those given; estimates no
// shorter than the run; jobs that never ran or do not fit dropped.
func readTrace(t *testing.T, path string, procs int64) (jobs []swfJob) {
	f, err := os.Open(path)
	if err != nil {
		t.Skip("no trace: ", err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	sc := bufio.NewScanner(z)
	for sc.Scan() {
		line := sc.Text()
		if line == "" || line[0] == ';' {
			continue
		}
		var v [18]int64
		for i, w := range strings.Fields(line) {
			if v[i], err = strconv.ParseInt(w, 10, 64); err != nil {
				x, _ := strconv.ParseFloat(w, 64)
				v[i] = int64(x)
			}
		}
		j := swfJob{submit: v[1], run: v[3], procs: v[7], estimate: max(v[8], v[3])}
		if j.procs <= 0 {
			j.procs = v[4]
		}
		if j.run > 0 && j.procs > 0 && j.procs <= procs {
			jobs = append(jobs, j)
		}
	}
	return jobs
}

// ends is a heap of running jobs by their real end.
type running []struct {
	end int64
	job *core.Job
}

func (r running) Len() int           { return len(r) }
func (r running) Less(i, k int) bool { return r[i].end < r[k].end }
func (r running) Swap(i, k int)      { r[i], r[k] = r[k], r[i] }
func (r *running) Push(x any)        { *r = append(*r, x.(running)[0]) }
func (r *running) Pop() any {
	x := (*r)[len(*r)-1]
	*r = (*r)[:len(*r)-1]
	return x
}

const epoch = core.Time(1_000_000) * 1_000_000

// play runs a trace through a planner and fills in the starts.
func play(t *testing.T, rule core.Rule, procs int64, jobs []swfJob) {
	p := New(Config{
		Partitions: []core.Partition{{Name: "main"}},
		Hosts:      func(string) map[core.NodeName]bool { return nil }, Rule: rule,
	})
	p.Apply(Changes{Nodes: []*core.Node{{
		ID: 1, Name: "m", Roles: core.Compute,
		Hardware: core.Hardware{CPUs: int32(procs)},
	}}})
	at := func(s int64) core.Time { return epoch + core.Time(s)*1_000_000 }
	records := make([]*core.Job, len(jobs)+1)
	var run running
	next, started := 0, 0
	wake := core.Time(0)
	var c Changes
	for started < len(jobs) || len(run) > 0 {
		now := int64(1 << 62)
		if next < len(jobs) {
			now = jobs[next].submit
		}
		if len(run) > 0 {
			now = min(now, run[0].end)
		}
		if wake != 0 {
			now = min(now, int64(wake-epoch)/1_000_000)
		}
		c.Jobs = c.Jobs[:0]
		for len(run) > 0 && run[0].end == now {
			e := *run[0].job
			e.State, e.End = core.Completed, at(now)
			c.Jobs = append(c.Jobs, &e)
			heap.Pop(&run)
		}
		for ; next < len(jobs) && jobs[next].submit <= now; next++ {
			w := &jobs[next]
			j := &core.Job{ID: core.JobID(next + 1), Submit: at(w.submit), Priority: 1, Spec: &core.Spec{
				Partition: core.ListPartitions("main"), TimeLimit: core.Seconds(w.estimate),
				Shape: core.Shape{NodesMin: 1, NodesMax: 1, Tasks: 1, CPUsPerTask: int32(w.procs)},
			}}
			records[j.ID] = j
			c.Jobs = append(c.Jobs, j)
		}
		p.Apply(c)
		plan := p.Pass(at(now))
		wake = plan.WakeAt
		c.Jobs = c.Jobs[:0]
		for _, s := range plan.Starts {
			w := &jobs[s.Job-1]
			w.start = now
			j := *records[s.Job]
			j.State, j.Start, j.Alloc = core.Running, at(now), s.Alloc
			c.Jobs = append(c.Jobs, &j)
			heap.Push(&run, running{{now + w.run, &j}})
			records[s.Job] = nil
			started++
		}
		p.Apply(c)
		if len(plan.Starts) == 0 && len(run) == 0 && wake == 0 && next == len(jobs) && started < len(jobs) {
			t.Fatalf("%d jobs never start", len(jobs)-started)
		}
	}
}

// TestTraces holds the rules against figures of an independent simulator. The traces are not ours to carry: their
// folder comes from the environment.
func TestTraces(t *testing.T) {
	dir := os.Getenv("BIREME_TRACES")
	if dir == "" {
		t.Skip("BIREME_TRACES names no folder with traces")
	}
	type figures map[core.Rule][2]float64 // mean bounded slowdown, mean wait
	for _, tc := range []struct {
		name  string
		procs int64
		want  figures
	}{
		{"KTH-SP2-1996-2.1-cln", 100, figures{
			core.RuleFCFS: {4294.50, 218832},
			core.RuleEASY: {86.37, 6351}, core.RuleEASYSJBF: {
				66.40,
				5623,
			}, core.RuleConservative: {89.44, 7006}, core.RuleSJFEASY: {41.87, 4378},
		}},
		{"SDSC-SP2-1998-4.2-cln", 128, figures{
			core.RuleFCFS: {13993.26, 1551989},
			core.RuleEASY: {92.63, 21184}, core.RuleEASYSJBF: {
				86.76,
				21686,
			}, core.RuleConservative: {93.48, 23453}, core.RuleSJFEASY: {53.83, 31369},
		}},
		{"CEA-Curie-2011-2.1-cln", 93312, figures{
			core.RuleFCFS: {456.20, 14615},
			core.RuleEASY: {16.29, 1308}, core.RuleEASYSJBF: {
				11.62,
				1012,
			}, core.RuleSJFEASY: {9.42, 640},
		}},
		{"lublin_256", 256, figures{
			core.RuleFCFS: {66502.48, 2388444}, core.RuleEASY: {590.05, 97156}, core.RuleEASYSJBF: {219.56, 73394},
			core.RuleConservative: {489.20, 131568}, core.RuleSJFEASY: {40.56, 59632},
		}},
	} {
		for _, rule := range core.Rules {
			want, ok := tc.want[rule]
			if !ok {
				continue
			}
			t.Run(tc.name+"/"+rule.String(), func(t *testing.T) {
				jobs := readTrace(t, filepath.Join(dir, tc.name+".swf.gz"), tc.procs)
				began := time.Now()
				play(t, rule, tc.procs, jobs)
				took := time.Since(began)
				var slow, wait float64
				for i := range jobs {
					j := &jobs[i]
					w := float64(j.start - j.submit)
					wait += w
					slow += max(1, (w+float64(j.run))/max(float64(j.run), 10))
				}
				slow, wait = slow/float64(len(jobs)), wait/float64(len(jobs))
				t.Logf("%.2f / %.0f, %.0f jobs/s", slow, wait, float64(len(jobs))/took.Seconds())
				if d := slow - want[0]; d > 0.0051 || d < -0.0051 {
					t.Errorf("mean bounded slowdown %.2f, want %.2f", slow, want[0])
				}
				if d := wait - want[1]; d > 0.51 || d < -0.51 {
					t.Errorf("mean wait %.0f, want %.0f", wait, want[1])
				}
			})
		}
	}
}
