package sched

import (
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/policy"
)

// outlookAside is what a forecast knows beside nodes: advance reservations, licences and limits. Jobs that wait for those
// are in nobody's way meanwhile, as in a pass.
type outlookAside struct {
	books []*advance
	edges []core.Time      // when one of them begins or ends, soonest first
	seats map[string]int64 // licences that are free
	rules *policy.Rules    // nil: there are no limits
	share *policy.Tree
	tally *policy.Tally
	gates []*policy.Gate // of jobs, from 1
	index map[policy.Who]int32
}

// outlookBack is what a job gives back beside nodes.
type outlookBack struct {
	stakes   []*policy.Stake
	licences []core.License
	copies   int64
}

// edgesTold is how many occurrences of a reservation a forecast stops at.
const edgesTold = 4

func newOutlookAside(now core.Time, p *Planner) outlookAside {
	a := outlookAside{seats: map[string]int64{}, index: map[policy.Who]int32{}, gates: make([]*policy.Gate, 1)}
	for _, r := range p.books {
		if r.on == nil || r.shared() {
			continue
		}
		a.books = append(a.books, r)
		for _, w := range r.windows[:min(edgesTold, len(r.windows))] {
			for _, t := range []core.Time{w.from, w.to} {
				if t > now && t != never {
					a.edges = append(a.edges, t)
				}
			}
		}
	}
	slices.Sort(a.edges)
	a.edges = slices.Compact(a.edges)
	for name, st := range p.stock {
		a.seats[name] = st.total
	}
	if p.limits != nil {
		a.rules, a.share, a.tally = p.limits.rules, p.limits.shares, policy.NewTally(p.limits.rules)
	}
	return a
}

// opens tells whether a limit that keeps a job may let it through when something ends; nobody knows when others do.
func (w *forecasting) opens(e *entry) bool {
	l := w.p.limits
	if e.gate == nil || l == nil {
		return true
	}
	return l.tally.Opens(e.gate, l.ask(e.slot, e.job.Spec), e.length, w.out.now, l.shares)
}

// gate gives the number of a job's limits; 0: it is under none.
func (o *outlook) gate(g *policy.Gate) int32 {
	if g == nil || o.tally == nil {
		return 0
	}
	i, ok := o.index[g.Who]
	if !ok {
		i = int32(len(o.gates))
		o.gates = append(o.gates, o.tally.Gate(g.Who))
		o.index[g.Who] = i
	}
	return i
}

// setAside works out what the jobs of a class need beside nodes.
func (o *outlook) setAside(oc *outlookClass, s *slot, spec *core.Spec) {
	oc.lic, oc.confined = s.lic, len(s.ways) > 0
	for i := range s.ways {
		if own := s.ways[i].own; own == nil || !own.confines() {
			oc.confined = false
		}
		if own := s.ways[i].own; own != nil {
			oc.own = append(oc.own, own)
		}
	}
	if o.rules != nil {
		all, node := Asked(spec)
		oc.ask = o.rules.Ask(all, node, s.part.Name)
	}
}

// addHolder notes what a job that runs has beside its nodes; nil: nothing.
func (o *outlook) addHolder(h *holding, end core.Time) *outlookBack {
	var b outlookBack
	for _, l := range h.alloc.Licenses() {
		o.seats[l.Name] -= l.Total
	}
	b.licences, b.copies = h.alloc.Licenses(), 1
	if o.tally != nil && h.job != nil && h.job.End == 0 {
		s := h.job.Spec
		who := policy.Who{Account: s.Project, User: s.User, QOS: s.QOS}
		for _, part := range o.parts {
			if part.Name == h.alloc.Partition {
				who.Part = part.QOS
			}
		}
		if g := o.tally.Gate(who); g != nil {
			all, node := Allocated(h.alloc)
			if end == never {
				end = 0
			}
			b.stakes = append(b.stakes, o.tally.Start(g, o.rules.Ask(all, node, h.alloc.Partition), end))
		}
	}
	if len(b.licences)+len(b.stakes) == 0 {
		return nil
	}
	return &b
}

// giveBack takes back what a job that ended had beside its nodes.
func (o *outlook) giveBack(b *outlookBack) {
	if b == nil {
		return
	}
	for _, l := range b.licences {
		o.seats[l.Name] += l.Total * b.copies
	}
	for _, s := range b.stakes {
		o.tally.End(s)
	}
}

// bound tells whether a job needs something beside nodes that may not be there.
func (o *outlook) bound(j *outlookJob, c *outlookClass) bool { return j.gate != 0 || c.lic != nil }

// allows tells whether limits and licences let a job start in this event.
func (o *outlook) allows(j *outlookJob, c *outlookClass) bool {
	if j.gate != 0 {
		if g := o.gates[j.gate]; g != nil && o.tally.Shut(g, c.ask, j.length, o.at, o.share, int64(o.events)) {
			return false
		}
	}
	return c.lic == nil || o.seat(c.lic) != nil
}

// seat finds the licences of an ask, nil if they are not free.
func (o *outlook) seat(ask *licenceAsk) []core.License {
	for i := range ask.list {
		free := o.seats[ask.list[i].Name] >= ask.list[i].Total
		if free && ask.any {
			return ask.list[i : i+1]
		}
		if !free && !ask.any {
			return nil
		}
	}
	if ask.any {
		return nil
	}
	return ask.list
}

// taken notes what a job that starts has beside its nodes.
func (o *outlook) taken(j *outlookJob, c *outlookClass) *outlookBack {
	if !o.bound(j, c) {
		return nil
	}
	b := &outlookBack{copies: 1}
	if c.lic != nil {
		b.licences = o.seat(c.lic)
		for _, l := range b.licences {
			o.seats[l.Name] -= l.Total
		}
	}
	if g := o.gates[j.gate]; j.gate != 0 && g != nil {
		end := after(o.at, j.length)
		if end == never {
			end = 0
		}
		b.stakes = append(b.stakes, o.tally.Start(g, c.ask, end))
	}
	return b
}

// open tells whether advance reservations let a job of a class be on the nodes of a pool from one moment to another.
func (o *outlook) open(c *outlookClass, w *pool, from, end core.Time) bool {
	inside := false
	for _, r := range w.books {
		if slices.Contains(c.own, r) {
			if _, fits := r.fits(from, end); r.timed() && !fits {
				return false
			}
			inside = true
		} else if r.meets(from, end, 0) {
			return false
		}
	}
	return inside || !c.confined
}
