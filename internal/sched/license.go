package sched

import (
	"fmt"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
)

// licenseRequest is the licences a job asks for: all of a list, or any one of it.
type licenseRequest struct {
	list []core.License
	any  bool
}

// parseLicenses reads what a job asks for; admission has seen to it that it can be read.
func parseLicenses(text string) *licenseRequest {
	if text == "" {
		return nil
	}
	list, any, err := grammar.ParseLicenses(text)
	if err != nil {
		return &licenseRequest{list: []core.License{{Name: text, Total: 1}}}
	}
	ask := &licenseRequest{any: any}
	for _, l := range list {
		ask.list = append(ask.list, core.License{Name: l.Name, Total: l.Count})
	}
	return ask
}

// licenses is what there is of a licence, and what jobs hold.
type licensePool struct{ total, used int64 }

// freeLicenses books the licences of a job, or with -1 gives them back.
func (p *Planner) bookLicenses(al *core.Alloc, sign int64) {
	for _, l := range al.Licenses() {
		if st := p.licenses[l.Name]; st != nil {
			st.used += sign * l.Total
		}
	}
}

// licensesFor gives the licences a job of a class would hold from one moment to another, or nil if they are not to be
// had.
func (ps *pass) licensesFor(s *partitionClass, from, end core.Time) []core.License {
	for i := range s.licenses.list {
		ok := ps.isLicenseFree(s, &s.licenses.list[i], from, end)
		if ok && s.licenses.any {
			return s.licenses.list[i : i+1]
		}
		if !ok && !s.licenses.any {
			return nil
		}
	}
	if s.licenses.any {
		return nil
	}
	return s.licenses.list
}

// isLicenseFree tells whether so much of a licence is free from one moment to another: at the first, and whenever a
// promised job or
// a reservation that has some of it begins.
func (ps *pass) isLicenseFree(s *partitionClass, l *core.License, from, end core.Time) bool {
	p := ps.p
	st := p.licenses[l.Name]
	if st == nil || l.Total > st.total || from == ps.plan.Now && l.Total > st.total-st.used ||
		l.Total > ps.licensesLeft(s, l.Name, from) {
		return false
	}
	for i := range ps.reserved {
		if r := ps.reserved[i]; r.nodes != nil && r.job != ps.currentJob && r.start > from && overlaps(r.start, end) &&
			licenseCount(r.licenses, l.Name) > 0 && l.Total > ps.licensesLeft(s, l.Name, r.start) {
			return false
		}
	}
	for _, r := range p.advances {
		if r == s.advance || licenseCount(r.Licenses, l.Name) == 0 {
			continue
		}
		for _, w := range r.windows {
			if w.start > from && overlaps(w.start, end) && l.Total > ps.licensesLeft(s, l.Name, w.start) {
				return false
			}
		}
		if r.recursFrom > from && overlaps(r.recursFrom, end) && l.Total > ps.licensesLeft(s, l.Name, r.recursFrom) {
			return false
		}
	}
	return true
}

// licensesLeft is what is left of a licence at a moment, beside all that hold it then and what other reservations have
// of it.
// What the job itself was promised, in another of its partitions, does not count.
func (ps *pass) licensesLeft(s *partitionClass, name string, t core.Time) int64 {
	p := ps.p
	free := p.licenses[name].total
	if t == ps.plan.Now && !p.isLicenseReserved(name) {
		return free - p.licenses[name].used
	}
	seats := ps.licenseUse()[name]
	for i := range seats {
		if seats[i].end > t {
			free -= seats[i].count
		}
	}
	for i := range ps.reserved {
		if r := ps.reserved[i]; r.job != ps.currentJob && r.isActive(t) {
			free -= licenseCount(r.licenses, name)
		}
	}
	inside := func(in string) (n int64) {
		for i := range seats {
			if seats[i].end > t && seats[i].advance == in {
				n += seats[i].count
			}
		}
		for i := range ps.reserved {
			if r := ps.reserved[i]; r.advance == in && r.job != ps.currentJob && r.isActive(t) {
				n += licenseCount(r.licenses, name)
			}
		}
		return n
	}
	for _, r := range p.advances {
		if has := licenseCount(r.Licenses, name); has > 0 && r != s.advance && r.isActive(t) {
			free -= max(0, has-inside(r.Name))
		}
	}
	return free
}

// isLicenseReserved tells whether some reservation has a licence.
func (p *Planner) isLicenseReserved(name string) bool {
	for _, r := range p.advances {
		if licenseCount(r.Licenses, name) > 0 {
			return true
		}
	}
	return false
}

// pools tells whether a promised job would run at t.
func (r *reservation) isActive(t core.Time) bool {
	return r.nodes != nil && r.start <= t && (t < r.end || r.end == never)
}

func licenseCount(list []core.License, name string) int64 {
	for i := range list {
		if list[i].Name == name {
			return list[i].Total
		}
	}
	return 0
}

// licenses are the jobs that hold licences, by licence, with those the pass has started.
func (ps *pass) licenseUse() map[string][]advanceJob {
	if ps.licenseHolders == nil {
		ps.licenseHolders = map[string][]advanceJob{}
		for _, h := range ps.p.allocations {
			ps.addLicenseUse(h.alloc, max(h.end, ps.plan.Now+overdueDelay))
		}
		for i := range ps.started {
			ps.addLicenseUse(ps.started[i].alloc.alloc, ps.started[i].at)
		}
	}
	return ps.licenseHolders
}

// addLicenseUse notes a job among seats, if anybody has asked for them.
func (ps *pass) addLicenseUse(al *core.Alloc, end core.Time) {
	if ps.licenseHolders == nil {
		return
	}
	for _, l := range al.Licenses() {
		ps.licenseHolders[l.Name] = append(ps.licenseHolders[l.Name], advanceJob{count: l.Total, end: end,
			advance: al.Inside()})
	}
}

// missingLicense names the licence of which there is too little now for a job of a class; "" if there is enough.
func (ps *pass) missingLicense(s *partitionClass) (name string) {
	if len(s.options) > 0 {
		for i := range s.options {
			if name = ps.missingLicense(&s.options[i]); name == "" {
				return ""
			}
		}
		return name
	}
	for i := range s.licenses.list {
		l := &s.licenses.list[i]
		if st := ps.p.licenses[l.Name]; st != nil && l.Total <= st.total-st.used && l.Total <= ps.licensesLeftNow(s, l.Name) {
			if s.licenses.any {
				return ""
			}
			continue
		}
		if name = l.Name; !s.licenses.any {
			return name
		}
	}
	return name
}

// licensesLeftNow is licensesLeft for now, without promised jobs: none of them has begun.
func (ps *pass) licensesLeftNow(s *partitionClass, name string) int64 {
	return ps.licensesLeft(s, name, ps.plan.Now)
}

// waitsForOther tells whether a job waits for licences, or for a reservation to begin. Nodes may stand idle for such a
// job for
// long: if it is the first of its queue, the first behind it that waits for nodes is kept from being pushed back for
// ever
// too, though nothing is promised to that one.
func (ps *pass) waitsForOther(e *queueEntry) bool {
	s := e.class
	if s.licenses != nil && ps.missingLicense(s) != "" {
		return true
	}
	for i := range s.options {
		if _, _, ok := endTimes(e.job.Spec, s.options[i].advance, ps.plan.Now); ok {
			return false
		}
	}
	return s.namesAdvance
}

// explainLicenses tells which classes wait for licences at the end of a pass.
func (ps *pass) explainLicenses() {
	for k, c := range ps.p.classes {
		if c.licenses == nil || len(c.partitions) == 0 {
			continue
		}
		if name := ps.missingLicense(&c.partitions[0]); name != "" {
			if ps.plan.licenseReasons == nil {
				ps.plan.licenseReasons = map[classKey]Reason{}
			}
			st := licensePool{}
			if is := ps.p.licenses[name]; is != nil {
				st = *is
			}
			ps.plan.licenseReasons[k] = Reason{Code: core.ReasonLicenses,
				Text: fmt.Sprintf("it waits for licence %s: %d of %d are in use", name, st.used, st.total)}
		}
	}
}
