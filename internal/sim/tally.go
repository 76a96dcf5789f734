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

// Quantity is a distribution in three figures. Quantiles lie between the two nearest values, in proportion.
type Quantity struct {
	Mean   float64 `json:"mean"`
	Median float64 `json:"median"`
	P95    float64 `json:"p95"`
}

// tau bounds the slowdown of short jobs, in seconds.
const tau = 10

// tally gathers the figures of a schedule as it is made.
type tally struct {
	slow        []float64
	waits, work float64
	maxWait     int64
	first, last int64
}

func (t *tally) add(j *Row) {
	if len(t.slow) == 0 || j.Submit < t.first {
		t.first = j.Submit
	}
	t.last = max(t.last, j.End)
	wait, run := j.Start-j.Submit, j.End-j.Start
	t.slow = append(t.slow, max(1, float64(wait+run)/float64(max(run, tau))))
	t.waits += float64(wait)
	t.maxWait = max(t.maxWait, wait)
	t.work += float64(run) * float64(j.Procs)
}

func (t *tally) summary(procs int64) *Summary {
	s := &Summary{Jobs: int64(len(t.slow)), MaxWait: t.maxWait}
	if s.Jobs == 0 {
		return s
	}
	s.MeanWait, s.Makespan = t.waits/float64(s.Jobs), t.last-t.first
	s.Utilisation = t.work / (float64(procs) * float64(s.Makespan))
	slices.Sort(t.slow)
	sum := 0.0
	for _, v := range t.slow { // smallest first: the sum is as exact as it gets
		sum += v
	}
	s.Slowdown = Quantity{Mean: sum / float64(s.Jobs), Median: quantile(t.slow, 0.5), P95: quantile(t.slow, 0.95)}
	return s
}

func quantile(ordered []float64, q float64) float64 {
	at := q * float64(len(ordered)-1)
	lo := int(math.Floor(at))
	hi := min(lo+1, len(ordered)-1)
	return ordered[lo] + (ordered[hi]-ordered[lo])*(at-float64(lo))
}
