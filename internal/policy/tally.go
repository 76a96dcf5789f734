package policy

import (
	"slices"

	"bireme.dev/bireme/internal/core"
)

// Tally counts what runs and waits, for every limit that asks. Its counts live in pages that views share until they
// change, so that a view costs what changed since the last one.
type Tally struct {
	rules  *Rules
	gates  map[Who]*Gate
	shared bool // a view has gates: they are copied before they change
	ids    map[counterKey]int32
	list   []*Gate // in the order they were made
	pages  [][]int64
	own    []bool     // by page: it is not shared with a view and may be written
	meters []*metered // by account, then user

	fact factAt // usage and shares, as of a time
}

// counterKey names what is counted: an association with all below it, one user of an account, a QOS, or a user or an
// account in one.
type counterKey struct {
	qos     core.QOSName
	project core.ProjectName
	user    core.UserName
}

const pageSize = 64

// NewTally counts nothing yet.
func NewTally(r *Rules) *Tally {
	return &Tally{rules: r, gates: map[Who]*Gate{}, ids: map[counterKey]int32{}}
}

// Gate is the limits that some jobs are under: those of one user in one account, with one QOS, in partitions with one
// QOS. It is made once; asking it makes nothing.
type Gate struct {
	Who
	rules              []rule
	submit             []rule
	counts             []int32 // the counters its jobs are in
	deny               bool    // DenyOnLimit
	shares             bool    // some rule is about fair shares
	Timed              bool    // time alone may open it
	ahead              bool    // some rule is about minutes ahead
	used               bool    // or about minutes that were used
	factor             float64 // what its minutes ahead count
	uses               []*Use
	NoReserve          bool   // NoReserve: its jobs get no reservation
	MinReservePriority uint32 // MinPrioThreshold: jobs of a lower priority get none either
	accrue             []rule
	known              closed // which rules close it now
}

// Use is what one running job has in the counters.
type Use struct {
	gate    *Gate
	request *Request
	end     core.Time // 0: it has no limit
	pos     int
}

// Gate finds the limits of some jobs; nil if there are none.
func (t *Tally) Gate(w Who) *Gate {
	g, ok := t.gates[w]
	if !ok {
		if t.shared {
			m := make(map[Who]*Gate, len(t.gates)+1)
			for k, v := range t.gates {
				m[k] = v
			}
			t.gates, t.shared = m, false
		}
		if g = t.compile(w); g != nil {
			t.list = append(t.list, g)
		}
		t.gates[w] = g
	}
	return g
}

// MaxWall is how many minutes a job may last, if a limit says so.
func (g *Gate) MaxWall() (minutes int64, ok bool) {
	for i := range g.rules {
		if g.rules[i].test == wallMost {
			return g.rules[i].limit, true
		}
	}
	return 0, false
}

// stride is the values of a counter: running jobs, submitted ones, and every resource.
func (t *Tally) stride() int { return 2 + len(t.rules.names) }

func (t *Tally) counter(k counterKey) int32 {
	id, ok := t.ids[k]
	if !ok {
		id = int32(len(t.ids))
		t.ids[k] = id
		for need := len(t.ids) * t.stride(); len(t.pages)*pageSize < need; {
			t.pages, t.own = append(t.pages, make([]int64, pageSize)), append(t.own, true)
		}
		t.fact.at = 0
	}
	return id
}

// bump adds to a count.
func (t *Tally) bump(id int32, value int, by int64) {
	if by == 0 {
		return
	}
	i := int(id)*t.stride() + value
	page := i / pageSize
	if !t.own[page] {
		t.pages[page], t.own[page] = slices.Clone(t.pages[page]), true
	}
	t.pages[page][i%pageSize] += by
}

// Submit counts so many jobs more that run or wait.
func (t *Tally) Submit(g *Gate, by int64) {
	if g != nil {
		for _, c := range g.counts {
			t.bump(c, 1, by)
		}
	}
}

// Start counts a job that runs, until end at the latest; 0 if it has no limit. End takes it away again.
func (t *Tally) Start(g *Gate, a *Request, end core.Time) *Use {
	if g == nil {
		return nil
	}
	s := &Use{gate: g, request: a, end: end, pos: len(g.uses)}
	g.uses = append(g.uses, s)
	t.move(s, 1)
	return s
}

// End takes away what Start counted.
func (t *Tally) End(s *Use) {
	if s == nil {
		return
	}
	last := len(s.gate.uses) - 1
	s.gate.uses[s.pos] = s.gate.uses[last]
	s.gate.uses[s.pos].pos = s.pos
	s.gate.uses[last] = nil
	s.gate.uses = s.gate.uses[:last]
	t.move(s, -1)
}

func (t *Tally) move(s *Use, k int64) {
	for _, c := range s.gate.counts {
		t.bump(c, 0, k)
		for i, n := range s.request.count {
			t.bump(c, 2+i, k*n)
		}
	}
	if f := &t.fact; f.at != 0 && t.rules.ahead {
		t.addAhead(f, s, k)
	}
}

// factAt is what time makes of the counts: worked out when a gate first asks for a moment.
type factAt struct {
	at    core.Time
	ahead []int64   // resource-minutes that running jobs have left, by counter and resource
	used  []float64 // resource-seconds that were used, by counter, resource; and the seconds of jobs
}

// minute is the length that limits on minutes go by.
const minute = core.Time(60_000_000)

// NextMinute is when to ask a timed gate again if nothing else happens: whom time alone lets through, it lets through
// when the clock's minute turns at the latest.
func NextMinute(now core.Time) core.Time { return now - now%minute + minute }

// know works out what time makes of the counts.
func (t *Tally) know(now core.Time) *factAt {
	f := &t.fact
	if f.at == now {
		return f
	}
	*f = factAt{at: now}
	n := len(t.rules.names)
	if t.rules.ahead {
		f.ahead = make([]int64, len(t.ids)*n)
		for _, g := range t.list {
			for _, s := range g.uses {
				t.addAhead(f, s, 1)
			}
		}
	}
	if t.rules.mins {
		f.used = make([]float64, len(t.ids)*(n+1))
		for _, m := range t.meters {
			m.read(t, f, now)
		}
	}
	return f
}

// addAhead adds what a running job has ahead.
func (t *Tally) addAhead(f *factAt, s *Use, k int64) {
	if s.end == 0 {
		return
	}
	left := int64((s.end - f.at + minute - 1) / minute)
	if left <= 0 {
		return
	}
	n := len(t.rules.names)
	for _, c := range s.gate.counts {
		for i, have := range s.request.count {
			f.ahead[int(c)*n+i] += k * s.gate.minutes(have, left)
		}
	}
}
