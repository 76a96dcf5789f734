package sim

import (
	"math"
	"slices"
)

// Summary is what a simulation tells of a schedule.
type Summary struct {
	Jobs        int64    `json:"jobs"`
	Slowdown    Quantity `json:"bounded_slowdown"`
	MeanWait    float64  `json:"mean_wait_s"`
	MaxWait     int64    `json:"max_wait_s"`
	Makespan    int64    `json:"makespan_s"`  // last end less first submit
	Utilisation float64  `json:"utilisation"` // work / (processors × makespan)
	Passes      int64    `json:"passes"`      // how often the planner was asked
}

// Quantity is a distribution in three figures. Quantiles lie between the two nearest values, in proportion; beyond
// half a million jobs they are right to a ten-thousandth of their value.
type Quantity struct {
	Mean   float64 `json:"mean"`
	Median float64 `json:"median"`
	P95    float64 `json:"p95"`
}

// tau bounds the slowdown of short jobs, in seconds.
const tau = 10

// tally gathers the figures of a schedule as it is made.
type tally struct {
	jobs                    int64
	slow                    spread
	slowdowns, waits, works float64
	maxWait                 int64
	first, last             int64
}

func (t *tally) add(j *Row) {
	if t.jobs == 0 || j.Submit < t.first {
		t.first = j.Submit
	}
	t.jobs++
	t.last = max(t.last, j.End)
	wait, run := j.Start-j.Submit, j.End-j.Start
	slow := max(1, float64(wait+run)/float64(max(run, tau)))
	t.slow.add(slow)
	t.slowdowns += slow
	t.waits += float64(wait)
	t.maxWait = max(t.maxWait, wait)
	t.works += float64(run) * float64(j.Procs)
}

func (t *tally) summary(procs int64) *Summary {
	s := &Summary{Jobs: t.jobs, MaxWait: t.maxWait}
	if s.Jobs == 0 {
		return s
	}
	n := float64(t.jobs)
	s.MeanWait, s.Makespan = t.waits/n, t.last-t.first
	s.Utilisation = t.works / (float64(procs) * float64(s.Makespan))
	s.Slowdown = Quantity{Mean: t.slowdowns / n, Median: t.slow.quantile(0.5), P95: t.slow.quantile(0.95)}
	return s
}

// spread is a distribution of values of 1 and more. It keeps up to maxExact of them; with more it counts them in
// classes that are a ten-thousandth of their value wide, so that its size does not follow the number of jobs.
type spread struct {
	exact   []float64
	classes []int64 // nil while all values are in exact
	n       int64
}

const (
	maxExact = 1 << 19
	width    = 1e-4
)

func (s *spread) add(v float64) {
	s.n++
	if s.classes == nil {
		if s.exact = append(s.exact, v); len(s.exact) <= maxExact {
			return
		}
		for _, v := range s.exact {
			s.count(v)
		}
		s.exact = nil
		return
	}
	s.count(v)
}

func (s *spread) count(v float64) {
	k := int(math.Log(v) / width)
	if k >= len(s.classes) {
		s.classes = append(s.classes, make([]int64, k+1-len(s.classes))...)
	}
	s.classes[k]++
}

func (s *spread) quantile(q float64) float64 {
	at := q * float64(s.n-1)
	if s.classes == nil {
		slices.Sort(s.exact)
		lo := int(at)
		hi := min(lo+1, len(s.exact)-1)
		return s.exact[lo] + (s.exact[hi]-s.exact[lo])*(at-float64(lo))
	}
	seen := int64(0)
	for k, n := range s.classes {
		if seen += n; float64(seen) > at {
			if k == 0 {
				return 1
			}
			return math.Exp((float64(k) + 0.5) * width)
		}
	}
	return 0
}
