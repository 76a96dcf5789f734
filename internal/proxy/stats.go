package proxy

import (
	"sync"
	"sync/atomic"
	"time"
)

// slots is how many seconds of statistics are kept: the longest window of scaling.
const slots = 300

// bounds are the upper ends of the classes of latency, in seconds.
var bounds = [...]float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}

// Bounds are the upper ends of the classes of latency that Stats counts, in seconds; the last class has none.
func Bounds() []float64 { return bounds[:] }

// Stats counts the requests of one service.
type Stats struct {
	InFlight atomic.Int64 // that replicas answer
	Waiting  atomic.Int64 // that are held until there is a replica
	Retried  atomic.Int64

	mu     sync.Mutex
	codes  [6]int64 // by the first digit of the status
	total  [len(bounds) + 1]int64
	sum    float64
	second [slots]second
}

// second is what was answered in one second.
type second struct {
	at      int64
	n       int64
	classes [len(bounds) + 1]int32
}

// answered counts a request.
func (s *Stats) answered(status int, took time.Duration, now time.Time) {
	class := 0
	for class < len(bounds) && took.Seconds() > bounds[class] {
		class++
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.codes[min(max(status/100, 0), 5)]++
	s.total[class]++
	s.sum += took.Seconds()
	slot := s.slot(now.Unix())
	slot.n++
	slot.classes[class]++
}

func (s *Stats) slot(at int64) *second {
	x := &s.second[at%slots]
	if x.at != at {
		*x = second{at: at}
	}
	return x
}

// Load is what a service had to do in a window of time.
type Load struct {
	RPS      float64 // requests a second that were answered
	P95      float64 // seconds that the slowest twentieth took, at least
	InFlight int64
	Waiting  int64
}

// Load sums the last seconds up, the present one excepted.
func (s *Stats) Load(window time.Duration, now time.Time) Load {
	n := int64(window / time.Second)
	out := Load{InFlight: s.InFlight.Load(), Waiting: s.Waiting.Load()}
	if n <= 0 {
		return out
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var count int64
	var classes [len(bounds) + 1]int64
	for i := range min(n, slots-1) {
		x := &s.second[(now.Unix()-1-i+slots)%slots]
		if x.at != now.Unix()-1-i {
			continue
		}
		count += x.n
		for c, k := range x.classes {
			classes[c] += int64(k)
		}
	}
	out.RPS = float64(count) / float64(n)
	rest := count / 20
	for c := len(classes) - 1; c >= 0 && count > 0; c-- {
		if rest -= classes[c]; rest < 0 {
			out.P95 = bounds[min(c, len(bounds)-1)]
			break
		}
	}
	return out
}

// Totals are what was counted since the service came.
type Totals struct {
	Codes   [6]int64 // answers by the first digit of their status
	Classes []int64  // by latency; see Bounds
	Sum     float64  // seconds
	Retried int64
}

// Totals gives all that was counted.
func (s *Stats) Totals() Totals {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Totals{Codes: s.codes, Classes: append([]int64(nil), s.total[:]...), Sum: s.sum, Retried: s.Retried.Load()}
}

// Stats gives the statistics of a service by its id; nil: it is not in the table.
func (p *Proxy) Stats(id string) *Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.byID[id]; r != nil {
		return &r.state.stats
	}
	return nil
}
