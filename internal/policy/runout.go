package policy

import (
	"fmt"
	"math"

	"bireme.dev/bireme/internal/core"
)

// RunsOut is when the first limit on minutes in all will be used up if what runs goes on as it does: never later than
// it is, and now if one is. 0: none will be. What safe starts have left room for does not run out.
func (t *Tally) RunsOut(now core.Time) (first core.Time) {
	if t.rules.Safe || !t.rules.mins {
		return 0
	}
	f := t.know(now)
	n := len(t.rules.names) + 1
	rates, keeps := t.rates()
	for _, g := range t.list {
		if !g.used || len(g.uses) == 0 {
			continue
		}
		for i := range g.rules {
			r := &g.rules[i]
			at := int(r.at)*n + n - 1
			switch {
			case r.test == usedMost:
				at = int(r.at)*n + int(r.tres)
			case r.test != wallUsed:
				continue
			}
			s, ok := t.rules.reach(f.used[at], rates[at], float64(r.limit)*60, keeps[r.at])
			if !ok || s > 1e9 { // thirty years are never
				continue
			}
			// The millisecond makes sure that it is reached then, whatever the last digits are.
			when := now + 1000*core.Time(math.Ceil(s*1000-0.01)+1)
			if first == 0 || when < first {
				first = when
			}
		}
	}
	return first
}

// rates are what is added a second to what the counters have used, by counter, resource and the time of jobs; and which
// counters forget nothing.
func (t *Tally) rates() (rates []int64, keeps []bool) {
	names := t.rules.names
	n := len(names) + 1
	rates, keeps = make([]int64, len(t.ids)*n), make([]bool, len(t.ids))
	add := func(c int32, r *Reading) {
		base := int(c) * n
		for _, x := range r.TRES {
			if i, ok := t.rules.find(x.Name); ok {
				rates[base+i] += x.Rate
			}
		}
		if i, ok := t.rules.find("billing"); ok {
			rates[base+i] += r.RawRate
		}
		rates[base+n-1] += r.WallRate
	}
	for _, m := range t.meters {
		for _, c := range m.at {
			add(c, &m.All)
		}
		for j, c := range m.qos {
			if c >= 0 {
				add(c, &m.QOS[j].Reading)
				keeps[c] = m.QOS[j].NoDecay
			}
		}
	}
	return rates, keeps
}

// reach is in how many seconds a value that grows at a rate, and decays meanwhile, comes to what is wanted; false:
// never.
func (s *Setting) reach(have float64, rate int64, want float64, keep bool) (float64, bool) {
	if rate <= 0 {
		return 0, false
	}
	if have >= want {
		return 0, true
	}
	per := float64(rate) / Micro
	if keep || s.HalfLife <= 0 || s.HalfLife == core.Forever {
		return (want - have) / per, true
	}
	k := -math.Log1p(-0.693 / float64(max(2, s.HalfLife)))
	most := per / k // what it comes to in the end
	if most <= want {
		return 0, false
	}
	return math.Log((most-have)/(most-want)) / k, true
}

// RanOut tells which limit on minutes in all a running job has to end for.
func (t *Tally) RanOut(s *Use, now core.Time) (core.Reason, string) {
	if s == nil || !s.gate.used || t.rules.Safe {
		return "", ""
	}
	c := t.counts(s.gate, now, nil)
	for i := range s.gate.rules {
		r := &s.gate.rules[i]
		at := r.tres
		switch {
		case r.test == wallUsed:
			at = int32(len(t.rules.names))
		case r.test != usedMost || s.request.count[r.tres] == 0:
			continue
		}
		if have := c.used(r.at, at); have >= r.limit {
			return r.reason, r.text(t.rules.names, have)
		}
	}
	return "", ""
}

// Lasts is how long a running job may go on by limits on its own minutes, and which of them says so; 0: none does.
func (t *Tally) Lasts(s *Use) (core.Time, string) {
	if s == nil || t.rules.Safe {
		return 0, ""
	}
	var least core.Time
	text := ""
	for i := range s.gate.rules {
		r := &s.gate.rules[i]
		if r.test != minutesMost || s.request.count[r.tres] == 0 {
			continue
		}
		if n := core.Time(float64(r.limit) * float64(minute) / float64(s.request.count[r.tres])); least == 0 || n < least {
			least = max(1, n)
			text = fmt.Sprintf("%s: at most %d %s-minutes a job; this one has had them", r.who, r.limit, t.rules.names[r.tres])
		}
	}
	return least, text
}
