package sim

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
)

// load is a made workload: the shape of real ones (bursts, powers of two, round estimates far above run times, many
// short jobs and few long ones, copies of the job before), none of their data.
type load struct {
	seed  uint64
	jobs  int
	procs int64
	gap   float64 // mean seconds between arrivals
}

// make gives the jobs of a load; the same load gives the same jobs.
func (l load) make() []Job {
	rng := rand.New(rand.NewPCG(l.seed, 0x5f1d))
	rounds := []int64{60, 300, 600, 1800, 3600, 7200, 14400, 43200}
	jobs := make([]Job, l.jobs)
	now := int64(0)
	for i := range jobs {
		j := &jobs[i]
		switch rng.IntN(4) {
		case 0: // at the same instant as the one before
		default:
			now += int64(rng.ExpFloat64() * l.gap * 4 / 3)
		}
		if i > 0 && rng.IntN(5) == 0 {
			*j = jobs[i-1]
		} else {
			j.Procs = 1 << rng.IntN(bits(l.procs))
			if rng.IntN(3) == 0 {
				j.Procs = 1 + rng.Int64N(l.procs)/(1+rng.Int64N(8))
			}
			j.Run = max(1, int64(math.Exp(rng.NormFloat64()*2+5)))
			j.Estimate = j.Run
			switch rng.IntN(4) {
			case 0: // exact
			case 1:
				j.Estimate += rng.Int64N(1 + j.Run)
			default:
				for _, r := range rounds {
					if j.Estimate = max(j.Run, r); r >= j.Run && rng.IntN(2) == 0 {
						break
					}
				}
			}
		}
		j.Number, j.Submit, j.index = int64(i+1), now, int64(i)
	}
	return jobs
}

func bits(n int64) (b int) {
	for ; n > 0; n >>= 1 {
		b++
	}
	return b
}

// swf writes jobs as a trace.
func swf(procs int64, jobs []Job) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "; Version: 2.2\n; MaxProcs: %d\n", procs)
	for i := range jobs {
		j := &jobs[i]
		fmt.Fprintf(&b, "%d %d -1 %d %d -1 -1 %d %d -1 1 1 1 -1 1 -1 -1 -1\n", j.Number, j.Submit, j.Run, j.Procs,
			j.Procs, j.Estimate)
	}
	return b.Bytes()
}
