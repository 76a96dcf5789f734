package policy

import (
	"math"
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
	own    []bool
	meters []*metered // by account, then user

	fact factAt // what is known of time, as of a moment
}

// counterKey names what is counted: an association with all below it, one user of an account, a QOS, or a user or an
// account in one.
type counterKey struct {
	qos     core.QOSName
	account core.ProjectName
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
	rules   []rule
	submit  []rule
	counts  []int32 // the counters its jobs are in
	deny    bool    // DenyOnLimit
	shares  bool    // some rule is about fair shares
	Timed   bool    // time alone may open it
	ahead   bool    // some rule is about minutes ahead
	used    bool    // or about minutes that were used
	stakes  []*Stake
	NoPlace bool // NoReserve: its jobs get no place in the plan before they can start
	known   closed
}

// Stake is what one running job has in the counters.
type Stake struct {
	gate *Gate
	ask  *Ask
	end  core.Time // 0: it has no limit
	pos  int
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

// bump changes a count.
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
func (t *Tally) Start(g *Gate, a *Ask, end core.Time) *Stake {
	if g == nil {
		return nil
	}
	s := &Stake{gate: g, ask: a, end: end, pos: len(g.stakes)}
	g.stakes = append(g.stakes, s)
	t.move(s, 1)
	return s
}

// End takes away what Start counted.
func (t *Tally) End(s *Stake) {
	if s == nil {
		return
	}
	last := len(s.gate.stakes) - 1
	s.gate.stakes[s.pos] = s.gate.stakes[last]
	s.gate.stakes[s.pos].pos = s.pos
	s.gate.stakes[last] = nil
	s.gate.stakes = s.gate.stakes[:last]
	t.move(s, -1)
}

func (t *Tally) move(s *Stake, k int64) {
	for _, c := range s.gate.counts {
		t.bump(c, 0, k)
		for i, n := range s.ask.count {
			t.bump(c, 2+i, k*n)
		}
	}
	if f := &t.fact; f.at != 0 && t.rules.ahead {
		t.stakeAhead(f, s, k)
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
			for _, s := range g.stakes {
				t.stakeAhead(f, s, 1)
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

// stakeAhead adds what a running job has ahead.
func (t *Tally) stakeAhead(f *factAt, s *Stake, k int64) {
	if s.end == 0 {
		return
	}
	left := int64((s.end - f.at + minute - 1) / minute)
	if left <= 0 {
		return
	}
	n := len(t.rules.names)
	for _, c := range s.gate.counts {
		for i, have := range s.ask.count {
			f.ahead[int(c)*n+i] += k * times(have, left)
		}
	}
}

// View is what was counted at a moment: a value, never changed.
type View struct {
	rules  *Rules
	gates  map[Who]*Gate
	pages  [][]int64
	fact   factAt
	shares *Tree
}

// View gives the counts as they are now, with the fair shares that go with them.
func (t *Tally) View(now core.Time, shares *Tree) *View {
	f := *t.know(now)
	f.ahead = slices.Clone(f.ahead) // used is made anew for each moment, ahead moves with starts
	v := &View{rules: t.rules, gates: t.gates, pages: slices.Clone(t.pages), fact: f, shares: shares}
	t.shared = true
	clear(t.own)
	return v
}

// Check tells which limit keeps a job from starting, and why, in Slurm's word and a sentence. What nobody had asked about
// when the view was made is not known.
func (v *View) Check(w Who, a *Ask, length core.Time) (reason core.Reason, text string, known bool) {
	g, known := v.gates[w]
	if g == nil {
		return "", "", known
	}
	r, have := g.first(g.rules, &counts{v.pages, &v.fact, v.rules, v.shares, false}, a, minutesOf(length))
	if r == nil {
		return "", "", true
	}
	return r.reason, r.text(v.rules.names, have), true
}

// Rules are those the view was counted against.
func (v *View) Rules() *Rules {
	if v == nil {
		return nil
	}
	return v.rules
}

// closed is what was found of a gate in one pass of the caller's, while counts only grew: it is shut for all jobs that ask
// for so much of a resource or more.
type closed struct {
	pass int64
	tres int32 // -1: for any job
	want int64
}

// Shut tells whether a limit keeps a job of some length from starting now. Within one pass of the caller's, numbered from
// 1, nothing may have ended.
func (t *Tally) Shut(g *Gate, a *Ask, length, now core.Time, shares *Tree, pass int64) bool {
	if k := &g.known; k.pass == pass && (k.tres < 0 || a.count[k.tres] >= k.want) {
		return true
	}
	c := t.counts(g, now, shares)
	r, _ := g.first(g.rules, &c, a, minutesOf(length))
	if r == nil {
		return false
	}
	switch r.test {
	case jobsMost:
		g.known = closed{pass, -1, 0}
	case heldMost:
		if k := &g.known; k.pass != pass || k.tres != r.tres && k.tres >= 0 || a.count[r.tres] < k.want {
			g.known = closed{pass, r.tres, a.count[r.tres]}
		}
	}
	return true
}

// Why is Shut with the reason.
func (t *Tally) Why(g *Gate, a *Ask, length, now core.Time, shares *Tree) (core.Reason, string) {
	c := t.counts(g, now, shares)
	r, have := g.first(g.rules, &c, a, minutesOf(length))
	if r == nil {
		return "", ""
	}
	return r.reason, r.text(t.rules.names, have)
}

// Admit tells which limit keeps somebody from submitting so many jobs: those on how many there are, and with DenyOnLimit
// all that a job could not keep even if nothing else ran.
func (t *Tally) Admit(g *Gate, a *Ask, length core.Time, jobs int64) (core.Reason, string) {
	c := &counts{pages: t.pages, rules: t.rules, fact: &factAt{}}
	for i := range g.submit {
		r := &g.submit[i]
		if have := c.at(r.at, 1); have+jobs > r.limit {
			return r.reason, r.text(t.rules.names, have)
		}
	}
	if !g.deny {
		return "", ""
	}
	r, have := g.first(g.rules, &counts{rules: t.rules, fact: &factAt{}, alone: true}, a, minutesOf(length))
	if r == nil {
		return "", ""
	}
	never := *r
	never.safe = true // in words: what it needs is told, not what is used
	return r.reason, never.text(t.rules.names, have)
}

func (t *Tally) counts(g *Gate, now core.Time, shares *Tree) counts {
	f := &t.fact
	if g.ahead || g.used {
		f = t.know(now)
	}
	return counts{t.pages, f, t.rules, shares, false}
}

// counts is what rules are held against.
type counts struct {
	pages  [][]int64
	fact   *factAt
	rules  *Rules
	shares *Tree
	alone  bool // as if nobody had anything and nothing had been used
}

func (c *counts) at(id int32, value int) int64 {
	if c.alone {
		return 0
	}
	i := int(id)*(2+len(c.rules.names)) + value
	if i/pageSize >= len(c.pages) {
		return 0
	}
	return c.pages[i/pageSize][i%pageSize]
}

func (c *counts) ahead(id, tres int32) int64 {
	if i := int(id)*len(c.rules.names) + int(tres); i < len(c.fact.ahead) && !c.alone {
		return c.fact.ahead[i]
	}
	return 0
}

func (c *counts) used(id, tres int32) int64 {
	if i := int(id)*(len(c.rules.names)+1) + int(tres); i < len(c.fact.used) && !c.alone {
		return int64(c.fact.used[i] / 60)
	}
	return 0
}

// first finds the first rule that a job does not keep, and what the job or its counter then has.
func (g *Gate) first(rules []rule, c *counts, a *Ask, mins int64) (*rule, int64) {
	for i := range rules {
		r := &rules[i]
		var want, have int64
		if r.tres >= 0 {
			want = a.count[r.tres]
		}
		switch r.test {
		case jobMost:
			have = want
		case nodeMost:
			have = a.perNode[r.tres]
		case minutesMost:
			have = times(want, mins)
		case jobLeast:
			if want < r.limit {
				return r, want
			}
			continue
		case wallMost:
			have = mins
		case shareLeast:
			if c.shares != nil && !c.alone {
				if f, ok := c.shares.Factor(g.Account, g.User); ok && f < r.share {
					return r, 0
				}
			}
			continue
		case jobsMost:
			if have = c.at(r.at, 0); have >= r.limit {
				return r, have
			}
			continue
		case heldMost:
			if want == 0 { // a resource it does not touch is not its affair
				continue
			}
			have = plus(c.at(r.at, 2+int(r.tres)), want)
		case aheadMost:
			if want == 0 {
				continue
			}
			have = plus(c.ahead(r.at, r.tres), times(want, mins))
		case usedMost:
			if want == 0 {
				continue
			}
			if have = c.used(r.at, r.tres); r.safe || c.alone {
				have = plus(have, plus(c.ahead(r.at, r.tres), times(want, mins)))
			} else if have >= r.limit {
				return r, have
			}
		case wallUsed:
			if c.alone {
				continue
			}
			have = c.used(r.at, int32(len(c.rules.names)))
			if r.safe {
				have = plus(have, mins)
			} else if have >= r.limit {
				return r, have
			}
		}
		if have > r.limit {
			return r, have
		}
	}
	return nil, 0
}

// minutesOf is how long a job may last in minutes, endless beyond a century.
func minutesOf(length core.Time) int64 {
	if length <= 0 || length > 100*365*24*60*minute {
		return math.MaxInt64
	}
	return int64((length + minute - 1) / minute)
}

// times multiplies without running over.
func times(a, b int64) int64 {
	if a > 0 && b > math.MaxInt64/a {
		return math.MaxInt64
	}
	return a * b
}

// plus adds without running over.
func plus(a, b int64) int64 {
	if b > math.MaxInt64-a {
		return math.MaxInt64
	}
	return a + b
}
