package sched

import (
	"fmt"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
)

// licenceAsk is the licences a job asks for: all of a list, or any one of it.
type licenceAsk struct {
	list []core.License
	any  bool
}

// newAsk reads what a job asks for; admission has seen to it that it can be read.
func newAsk(text string) *licenceAsk {
	if text == "" {
		return nil
	}
	list, any, err := grammar.ParseLicenses(text)
	if err != nil {
		return &licenceAsk{list: []core.License{{Name: text, Total: 1}}}
	}
	ask := &licenceAsk{any: any}
	for _, l := range list {
		ask.list = append(ask.list, core.License{Name: l.Name, Total: l.Count})
	}
	return ask
}

// stock is what there is of a licence, and what jobs hold.
type stock struct{ total, used int64 }

// seat books the licences of a job, or with -1 gives them back.
func (p *Planner) seat(al *core.Alloc, sign int64) {
	for _, l := range al.Licenses() {
		if st := p.stock[l.Name]; st != nil {
			st.used += sign * l.Total
		}
	}
}

// grant gives the licences a job of a class would hold from one moment to another, or nil if they are not to be had.
func (ps *pass) grant(s *slot, from, end core.Time) []core.License {
	for i := range s.lic.list {
		ok := ps.has(s, &s.lic.list[i], from, end)
		if ok && s.lic.any {
			return s.lic.list[i : i+1]
		}
		if !ok && !s.lic.any {
			return nil
		}
	}
	if s.lic.any {
		return nil
	}
	return s.lic.list
}

// has tells whether so much of a licence is free from one moment to another: at the first, and whenever a promised job or
// a reservation that has some of it begins.
func (ps *pass) has(s *slot, l *core.License, from, end core.Time) bool {
	p := ps.p
	st := p.stock[l.Name]
	if st == nil || l.Total > st.total || from == ps.plan.Now && l.Total > st.total-st.used || l.Total > ps.seatsAt(s, l.Name, from) {
		return false
	}
	for i := range ps.reserved {
		if r := ps.reserved[i]; r.nodes != nil && r.job != ps.self && r.at > from && hits(r.at, end) && amountOf(r.lic, l.Name) > 0 && l.Total > ps.seatsAt(s, l.Name, r.at) {
			return false
		}
	}
	for _, r := range p.books {
		if r == s.own || amountOf(r.Licenses, l.Name) == 0 {
			continue
		}
		for _, w := range r.windows {
			if w.from > from && hits(w.from, end) && l.Total > ps.seatsAt(s, l.Name, w.from) {
				return false
			}
		}
		if r.tail > from && hits(r.tail, end) && l.Total > ps.seatsAt(s, l.Name, r.tail) {
			return false
		}
	}
	return true
}

// seatsAt is what is left of a licence at a moment, beside all that hold it then and what other reservations have of it.
// What the job itself was promised, in another of its partitions, does not count.
func (ps *pass) seatsAt(s *slot, name string, t core.Time) int64 {
	p := ps.p
	free := p.stock[name].total
	if t == ps.plan.Now && !p.licensed(name) {
		return free - p.stock[name].used
	}
	seats := ps.seats()[name]
	for i := range seats {
		if seats[i].end > t {
			free -= seats[i].count
		}
	}
	for i := range ps.reserved {
		if r := ps.reserved[i]; r.job != ps.self && r.holds(t) {
			free -= amountOf(r.lic, name)
		}
	}
	inside := func(in string) (n int64) {
		for i := range seats {
			if seats[i].end > t && seats[i].in == in {
				n += seats[i].count
			}
		}
		for i := range ps.reserved {
			if r := ps.reserved[i]; r.in == in && r.job != ps.self && r.holds(t) {
				n += amountOf(r.lic, name)
			}
		}
		return n
	}
	for _, r := range p.books {
		if has := amountOf(r.Licenses, name); has > 0 && r != s.own && r.covers(t) {
			free -= max(0, has-inside(r.Name))
		}
	}
	return free
}

// licensed tells whether some reservation has a licence.
func (p *Planner) licensed(name string) bool {
	for _, r := range p.books {
		if amountOf(r.Licenses, name) > 0 {
			return true
		}
	}
	return false
}

// holds tells whether a promised job would run at t.
func (r *reservation) holds(t core.Time) bool {
	return r.nodes != nil && r.at <= t && (t < r.to || r.to == never)
}

func amountOf(list []core.License, name string) int64 {
	for i := range list {
		if list[i].Name == name {
			return list[i].Total
		}
	}
	return 0
}

// seats are the jobs that hold licences, by licence, with those the pass has started.
func (ps *pass) seats() map[string][]tenant {
	if ps.seated == nil {
		ps.seated = map[string][]tenant{}
		for _, h := range ps.p.holding {
			ps.sit(h.alloc, max(h.end, ps.plan.Now+overdue))
		}
		for i := range ps.taken {
			ps.sit(ps.taken[i].h.alloc, ps.taken[i].at)
		}
	}
	return ps.seated
}

// sit notes a job among seats, if anybody has asked for them.
func (ps *pass) sit(al *core.Alloc, end core.Time) {
	if ps.seated == nil {
		return
	}
	for _, l := range al.Licenses() {
		ps.seated[l.Name] = append(ps.seated[l.Name], tenant{count: l.Total, end: end, in: al.Inside()})
	}
}

// short names the licence of which there is too little now for a job of a class; "" if there is enough.
func (ps *pass) short(s *slot) (name string) {
	if len(s.ways) > 0 {
		for i := range s.ways {
			if name = ps.short(&s.ways[i]); name == "" {
				return ""
			}
		}
		return name
	}
	for i := range s.lic.list {
		l := &s.lic.list[i]
		if st := ps.p.stock[l.Name]; st != nil && l.Total <= st.total-st.used && l.Total <= ps.seatsNow(s, l.Name) {
			if s.lic.any {
				return ""
			}
			continue
		}
		if name = l.Name; !s.lic.any {
			return name
		}
	}
	return name
}

// seatsNow is seatsAt for now, without promised jobs: none of them has begun.
func (ps *pass) seatsNow(s *slot, name string) int64 { return ps.seatsAt(s, name, ps.plan.Now) }

// lacks tells whether a job waits for licences, or for a reservation to begin. Nodes may stand idle for such a job for
// long: if it is the first of its queue, the first behind it that waits for nodes is kept from being pushed back for ever
// too, though nothing is promised to that one.
func (ps *pass) lacks(e *entry) bool {
	s := e.slot
	if s.lic != nil && ps.short(s) != "" {
		return true
	}
	for i := range s.ways {
		if _, _, ok := spanOf(e.job.Spec, s.ways[i].own, ps.plan.Now); ok {
			return false
		}
	}
	return s.named
}

// shortages tells which classes wait for licences at the end of a pass.
func (ps *pass) shortages() {
	for k, c := range ps.p.classes {
		if c.licences == nil || len(c.slots) == 0 {
			continue
		}
		if name := ps.short(&c.slots[0]); name != "" {
			if ps.plan.short == nil {
				ps.plan.short = map[classKey]Why{}
			}
			st := stock{}
			if is := ps.p.stock[name]; is != nil {
				st = *is
			}
			ps.plan.short[k] = Why{Reason: core.ReasonLicenses, Text: fmt.Sprintf("it waits for licence %s: %d of %d are in use", name, st.used, st.total)}
		}
	}
}
