package license

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/storage"
	"bireme.dev/bireme/internal/sched/advance"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/cluster"
	"bireme.dev/bireme/internal/sched/ledger"
)

// Licenses is the licenses of a cluster.
type Licenses struct {
	pools    map[string]*Pool
	jobs     *cluster.Jobs
	reserved *cluster.Reservations
	advances *cluster.Advances

	// For the current pass.
	Now     core.Time
	Placing core.JobID         // the job being placed: what is reserved for it elsewhere does not count
	started *[]ledger.AllocEnd // starts of the pass
	holders map[string][]ledger.AdvanceJob
}

// Pool is the total of a license and what jobs hold of it.
type Pool struct{ Total, Used int64 }

// New returns the licenses of a cluster. What jobs hold is booked with Book.
func New(list []core.License, jobs *cluster.Jobs, reserved *cluster.Reservations, advances *cluster.Advances,
) *Licenses {
	ls := &Licenses{pools: map[string]*Pool{}, jobs: jobs, reserved: reserved, advances: advances}
	for _, l := range list {
		ls.pools[l.Name] = &Pool{Total: l.Total}
	}
	return ls
}

// BeginPass prepares for a pass at time now, with its starts in a list.
func (ls *Licenses) BeginPass(now core.Time, started *[]ledger.AllocEnd) {
	ls.Now, ls.Placing, ls.started, ls.holders = now, 0, started, nil
}

// Totals returns the number of each license.
func (ls *Licenses) Totals() map[string]int64 {
	out := map[string]int64{}
	for name, p := range ls.pools {
		if storage.OfLicense(name) == "" {
			out[name] = p.Total
		}
	}
	return out
}

// pool finds the pool of a license; nil if there is none. Of a volume that one job at a time may have there is one.
func (ls *Licenses) pool(name string) *Pool {
	p := ls.pools[name]
	if p == nil && storage.OfLicense(name) != "" {
		p = &Pool{Total: 1}
		ls.pools[name] = p
	}
	return p
}

// Pool returns the total and use of a license; zeros if there is none.
func (ls *Licenses) Pool(name string) Pool {
	if p := ls.pool(name); p != nil {
		return *p
	}
	return Pool{}
}

// Book books the licenses of a job, or with sign -1 returns them.
func (ls *Licenses) Book(al *core.Alloc, sign int64) {
	for _, l := range al.Licenses() {
		p := ls.pool(l.Name)
		if p == nil {
			continue
		}
		p.Used += sign * l.Total
		if p.Used == 0 && storage.OfLicense(l.Name) != "" {
			delete(ls.pools, l.Name) // there are as many as users make volumes
		}
	}
}

// For returns the licenses that a request would get between two times, or nil if they are not free. own is the advance
// reservation the job would run in.
func (ls *Licenses) For(req *core.LicenseRequest, own *advance.Reservation, from, end core.Time) []core.License {
	for i := range req.List {
		ok := ls.isFree(&req.List[i], own, from, end)
		if ok && req.Any {
			return req.List[i : i+1]
		}
		if !ok && !req.Any {
			return nil
		}
	}
	if req.Any {
		return nil
	}
	return req.List
}

// isFree reports whether so much of a license is free between two times: at the first, and whenever a reserved job or
// an advance reservation that has some of it begins.
func (ls *Licenses) isFree(l *core.License, own *advance.Reservation, from, end core.Time) bool {
	p := ls.pool(l.Name)
	if p == nil || l.Total > p.Total || from == ls.Now && l.Total > p.Total-p.Used ||
		l.Total > ls.left(l.Name, own, from) {
		return false
	}
	for _, r := range ls.reserved.List {
		if r.Nodes != nil && r.Job != ls.Placing && r.Start > from && alloc.Overlaps(r.Start, end) &&
			alloc.LicenseCount(r.Licenses, l.Name) > 0 && l.Total > ls.left(l.Name, own, r.Start) {
			return false
		}
	}
	for _, r := range ls.advances.List {
		if r == own || alloc.LicenseCount(r.Licenses, l.Name) == 0 {
			continue
		}
		for _, w := range r.Windows {
			if w.Start > from && alloc.Overlaps(w.Start, end) && l.Total > ls.left(l.Name, own, w.Start) {
				return false
			}
		}
		if r.RecursFrom > from && alloc.Overlaps(r.RecursFrom, end) && l.Total > ls.left(l.Name, own, r.RecursFrom) {
			return false
		}
	}
	return true
}

// left returns what is left of a license at a time, beside the jobs that hold it then and what other advance
// reservations have of it.
func (ls *Licenses) left(name string, own *advance.Reservation, t core.Time) int64 {
	p := ls.pool(name)
	free := p.Total
	if t == ls.Now && !ls.isReserved(name) {
		return free - p.Used
	}
	holders := ls.holdersOf(name)
	for i := range holders {
		if holders[i].End > t {
			free -= holders[i].Count
		}
	}
	for _, r := range ls.reserved.List {
		if r.Job != ls.Placing && r.IsActive(t) {
			free -= alloc.LicenseCount(r.Licenses, name)
		}
	}
	for _, r := range ls.advances.List {
		if has := alloc.LicenseCount(r.Licenses, name); has > 0 && r != own && r.IsActive(t) {
			free -= max(0, has-ls.usedIn(r.Name, name, t))
		}
	}
	return free
}

// usedIn returns how much of a license the jobs hold at a time that run in an advance reservation.
func (ls *Licenses) usedIn(in, name string, t core.Time) (n int64) {
	holders := ls.holdersOf(name)
	for i := range holders {
		if holders[i].End > t && holders[i].Advance == in {
			n += holders[i].Count
		}
	}
	for _, r := range ls.reserved.List {
		if r.Advance == in && r.Job != ls.Placing && r.IsActive(t) {
			n += alloc.LicenseCount(r.Licenses, name)
		}
	}
	return n
}

// isReserved reports whether an advance reservation has the license.
func (ls *Licenses) isReserved(name string) bool {
	for _, r := range ls.advances.List {
		if alloc.LicenseCount(r.Licenses, name) > 0 {
			return true
		}
	}
	return false
}

// holdersOf lists the jobs that hold a license, with the starts of the pass.
func (ls *Licenses) holdersOf(name string) []ledger.AdvanceJob {
	if ls.holders == nil {
		ls.holders = map[string][]ledger.AdvanceJob{}
		for _, h := range ls.jobs.Allocs {
			ls.AddHolder(h.Alloc, max(h.End, ls.Now+alloc.OverdueDelay))
		}
		for _, s := range *ls.started {
			ls.AddHolder(s.Alloc.Alloc, s.At)
		}
	}
	return ls.holders[name]
}

// AddHolder records a job that starts among the holders of its licenses.
func (ls *Licenses) AddHolder(al *core.Alloc, end core.Time) {
	if ls.holders == nil { // nobody has asked for them
		return
	}
	for _, l := range al.Licenses() {
		ls.holders[l.Name] = append(ls.holders[l.Name], ledger.AdvanceJob{
			Count: l.Total, End: end, Advance: al.Inside(),
		})
	}
}

// ForgetHolders is called when starts of the pass were taken back.
func (ls *Licenses) ForgetHolders() { ls.holders = nil }

// Missing returns the name of a license of a request that is not free now; "": the request can be served.
func (ls *Licenses) Missing(req *core.LicenseRequest, own *advance.Reservation) (name string) {
	for i := range req.List {
		l := &req.List[i]
		if p := ls.pool(l.Name); p != nil && l.Total <= p.Total-p.Used && l.Total <= ls.left(l.Name, own, ls.Now) {
			if req.Any {
				return ""
			}
			continue
		}
		if name = l.Name; !req.Any {
			return name
		}
	}
	return name
}
