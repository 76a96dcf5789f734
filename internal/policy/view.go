package policy

import (
	"math"
	"slices"

	"bireme.dev/bireme/internal/core"
)

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
	f.ahead = slices.Clone(f.ahead) // used is made again for each moment, ahead moves with starts
	v := &View{rules: t.rules, gates: t.gates, pages: slices.Clone(t.pages), fact: f, shares: shares}
	t.shared = true
	clear(t.own)
	return v
}

// Check tells which limit keeps a job from starting, and why, in Slurm's word and a sentence. What nobody had asked
// about when the view was made is not known.
func (v *View) Check(w Who, a *Request, length core.Time) (reason core.Reason, text string, known bool) {
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

// closed is what was found of a gate in one pass of the caller's, while counts only grew: it blocks all jobs that
// ask for so much of a resource or more.
type closed struct {
	pass int64
	tres int32 // -1: for any job
	want int64
}

// Blocks reports whether a limit keeps a job of some length from starting now. Within one pass of the caller's,
// numbered from 1, nothing may have ended.
func (t *Tally) Blocks(g *Gate, a *Request, length, now core.Time, shares *Tree, pass int64) bool {
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
	default:
	}
	return true
}

// CouldStart reports whether a job may start now, or when something ends: all that keeps it is a limit on what runs.
func (t *Tally) CouldStart(g *Gate, a *Request, length, now core.Time, shares *Tree) bool {
	c := t.counts(g, now, shares)
	r, _ := g.first(g.rules, &c, a, minutesOf(length))
	if r == nil {
		return true
	}
	switch r.test {
	case jobsMost:
		return r.limit > 0
	case heldMost:
		return a.count[r.tres] <= r.limit
	case aheadMost:
		return g.minutes(a.count[r.tres], minutesOf(length)) <= r.limit
	default:
		return false
	}
}

// Why is like Blocks and gives the reason.
func (t *Tally) Why(g *Gate, a *Request, length, now core.Time, shares *Tree) (core.Reason, string) {
	c := t.counts(g, now, shares)
	r, have := g.first(g.rules, &c, a, minutesOf(length))
	if r == nil {
		return "", ""
	}
	return r.reason, r.text(t.rules.names, have)
}

// Admit tells which limit on how many there are keeps somebody from submitting so many jobs.
func (t *Tally) Admit(g *Gate, jobs int64) (core.Reason, string) {
	if g == nil {
		return "", ""
	}
	c := &counts{pages: t.pages, rules: t.rules, fact: &factAt{}}
	for i := range g.submit {
		r := &g.submit[i]
		if have := c.at(r.at, 1); have+jobs > r.limit {
			return r.reason, r.text(t.rules.names, have)
		}
	}
	return "", ""
}

// Never tells, with DenyOnLimit, which limit a job could not keep even if nothing else ran.
func (t *Tally) Never(g *Gate, a *Request, length core.Time) (core.Reason, string) {
	if g == nil || !g.deny {
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
func (g *Gate) first(rules []rule, c *counts, a *Request, mins int64) (*rule, int64) {
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
				if f, ok := c.shares.Factor(g.Project, g.User); ok && f < r.share {
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
			have = plus(c.ahead(r.at, r.tres), g.minutes(want, mins))
		case usedMost:
			if want == 0 {
				continue
			}
			if have = c.used(r.at, r.tres); r.safe || c.alone {
				have = plus(have, plus(c.ahead(r.at, r.tres), g.minutes(want, mins)))
			} else if have >= r.limit {
				return r, have
			}
		case wallUsed:
			if c.alone {
				continue
			}
			have = c.used(r.at, int32(len(c.rules.names)))
			if r.safe {
				have = plus(have, g.minutes(1, mins))
			} else if have >= r.limit {
				return r, have
			}
		case submitsMost: // tested when a job is submitted, not when it starts
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

// minutes is what so much of a resource counts ahead for so long: as Slurm's UsageFactorSafe, by what it will be
// charged.
func (g *Gate) minutes(n, mins int64) int64 {
	all := times(n, mins)
	if g.factor == 1 || all == math.MaxInt64 {
		return all
	}
	return int64(min(math.Ceil(float64(all)*g.factor), 1<<62))
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
