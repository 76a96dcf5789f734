package sched

import (
	"fmt"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/ledger"
)

// licensePool is the total of a license and what jobs hold of it.
type licensePool struct{ total, used int64 }

// bookLicenses books the licenses of a job, or with -1 returns them.
func (p *Planner) bookLicenses(al *core.Alloc, sign int64) {
	for _, l := range al.Licenses() {
		if st := p.licenses[l.Name]; st != nil {
			st.used += sign * l.Total
		}
	}
}

// licensesFor returns the licenses a job of a class would hold between two times, or nil if they are not free.
func (ps *pass) licensesFor(s *partitionClass, from, end core.Time) []core.License {
	for i := range s.licenses.List {
		ok := ps.isLicenseFree(s, &s.licenses.List[i], from, end)
		if ok && s.licenses.Any {
			return s.licenses.List[i : i+1]
		}
		if !ok && !s.licenses.Any {
			return nil
		}
	}
	if s.licenses.Any {
		return nil
	}
	return s.licenses.List
}

// isLicenseFree reports whether so much of a license is free between two times: at the first, and whenever a reserved
// job or an advance reservation that has some of it begins.
func (ps *pass) isLicenseFree(s *partitionClass, l *core.License, from, end core.Time) bool {
	p := ps.p
	st := p.licenses[l.Name]
	if st == nil || l.Total > st.total || from == ps.plan.Now && l.Total > st.total-st.used ||
		l.Total > ps.licensesLeft(s, l.Name, from) {
		return false
	}
	for i := range ps.reserved {
		if r := ps.reserved[i]; r.Nodes != nil && r.Job != ps.currentJob && r.Start > from && alloc.Overlaps(r.Start, end) &&
			alloc.LicenseCount(r.Licenses, l.Name) > 0 && l.Total > ps.licensesLeft(s, l.Name, r.Start) {
			return false
		}
	}
	for _, r := range p.advances {
		if r == s.Advance || alloc.LicenseCount(r.Licenses, l.Name) == 0 {
			continue
		}
		for _, w := range r.Windows {
			if w.Start > from && alloc.Overlaps(w.Start, end) && l.Total > ps.licensesLeft(s, l.Name, w.Start) {
				return false
			}
		}
		if r.RecursFrom > from && alloc.Overlaps(r.RecursFrom, end) && l.Total > ps.licensesLeft(s, l.Name, r.RecursFrom) {
			return false
		}
	}
	return true
}

// licensesLeft returns what is left of a license at a time, beside the jobs that hold it then and what other advance
// reservations have of it. What is reserved for the job itself in another of its partitions does not count.
func (ps *pass) licensesLeft(s *partitionClass, name string, t core.Time) int64 {
	p := ps.p
	free := p.licenses[name].total
	if t == ps.plan.Now && !p.isLicenseReserved(name) {
		return free - p.licenses[name].used
	}
	seats := ps.licenseUse()[name]
	for i := range seats {
		if seats[i].End > t {
			free -= seats[i].Count
		}
	}
	for i := range ps.reserved {
		if r := ps.reserved[i]; r.Job != ps.currentJob && r.IsActive(t) {
			free -= alloc.LicenseCount(r.Licenses, name)
		}
	}
	inside := func(in string) (n int64) {
		for i := range seats {
			if seats[i].End > t && seats[i].Advance == in {
				n += seats[i].Count
			}
		}
		for i := range ps.reserved {
			if r := ps.reserved[i]; r.Advance == in && r.Job != ps.currentJob && r.IsActive(t) {
				n += alloc.LicenseCount(r.Licenses, name)
			}
		}
		return n
	}
	for _, r := range p.advances {
		if has := alloc.LicenseCount(r.Licenses, name); has > 0 && r != s.Advance && r.IsActive(t) {
			free -= max(0, has-inside(r.Name))
		}
	}
	return free
}

// isLicenseReserved reports whether an advance reservation has the license.
func (p *Planner) isLicenseReserved(name string) bool {
	for _, r := range p.advances {
		if alloc.LicenseCount(r.Licenses, name) > 0 {
			return true
		}
	}
	return false
}

// licenseUse returns the jobs that hold licenses, by license, with the starts of the pass.
func (ps *pass) licenseUse() map[string][]ledger.AdvanceJob {
	if ps.licenseHolders == nil {
		ps.licenseHolders = map[string][]ledger.AdvanceJob{}
		for _, h := range ps.p.jobs.Allocs {
			ps.addLicenseUse(h.Alloc, max(h.End, ps.plan.Now+alloc.OverdueDelay))
		}
		for i := range ps.started {
			ps.addLicenseUse(ps.started[i].Alloc.Alloc, ps.started[i].At)
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
		ps.licenseHolders[l.Name] = append(ps.licenseHolders[l.Name], ledger.AdvanceJob{
			Count: l.Total, End: end,
			Advance: al.Inside(),
		})
	}
}

// missingLicense returns the name of a license that is not free now for a job of the class; "": all are.
func (ps *pass) missingLicense(s *partitionClass) (name string) {
	if len(s.options) > 0 {
		for i := range s.options {
			if name = ps.missingLicense(&s.options[i]); name == "" {
				return ""
			}
		}
		return name
	}
	for i := range s.licenses.List {
		l := &s.licenses.List[i]
		if st := ps.p.licenses[l.Name]; st != nil && l.Total <= st.total-st.used && l.Total <= ps.licensesLeftNow(s, l.Name) {
			if s.licenses.Any {
				return ""
			}
			continue
		}
		if name = l.Name; !s.licenses.Any {
			return name
		}
	}
	return name
}

// licensesLeftNow is licensesLeft for now, without promised jobs: none of them has begun.
func (ps *pass) licensesLeftNow(s *partitionClass, name string) int64 {
	return ps.licensesLeft(s, name, ps.plan.Now)
}

// waitsForOther reports whether a job waits for licenses, or for an advance reservation to begin. Nodes may be idle for
// it for long. If it is the head of its queue, the first job behind it that waits for nodes gets a reservation too, so
// that it is not delayed forever. Its start is not promised in the plan.
func (ps *pass) waitsForOther(e *queueEntry) bool {
	s := e.class
	if s.licenses != nil && ps.missingLicense(s) != "" {
		return true
	}
	for i := range s.options {
		if _, _, ok := endTimes(e.job.Spec, s.options[i].Advance, ps.plan.Now); ok {
			return false
		}
	}
	return s.namesAdvance
}

// explainLicenses records which classes wait for licenses at the end of a pass.
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
			ps.plan.licenseReasons[k] = Reason{
				Code: core.ReasonLicenses,
				Text: fmt.Sprintf("it waits for licence %s: %d of %d are in use", name, st.used, st.total),
			}
		}
	}
}
