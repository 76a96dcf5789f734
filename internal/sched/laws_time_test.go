package sched

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
	"bireme.dev/bireme/internal/sched/advance"
	"bireme.dev/bireme/internal/sched/alloc"
)

// timeWorld is a lawWorld with advance reservations, licenses and jobs that may be cut short.
type timeWorld struct {
	*lawWorld
	books []*core.AdvanceReservation
	made  int
	apart bool // what is reserved is nobody else's: no job, node or license belongs to two reservations
}

var lawLicences = []core.License{{Name: "l", Total: 3}, {Name: "m", Total: 2}}

func newTimeWorld(t *rapid.T, rule core.Rule, seed uint64, parts int) *timeWorld {
	w := &timeWorld{lawWorld: newLawWorld(t, rule, seed, parts)}
	w.cfg.Licenses = lawLicences
	w.p = New(w.cfg)
	w.p.Apply(Changes{Nodes: w.nodes})
	w.dress = w.season
	w.also = func() Changes { return Changes{Reservations: w.books} }
	w.started = w.lawful
	return w
}

// season makes some jobs ask for reservations, licenses or less time.
func (w *timeWorld) season(s *core.Spec) {
	x := &core.Extra{}
	s.User = core.UserName([]string{"ann", "bob"}[w.r.IntN(2)])
	if w.r.IntN(3) == 0 && len(w.books) > 0 {
		x.Reservation = w.books[w.r.IntN(len(w.books))].Name
		if w.r.IntN(4) == 0 && !w.apart {
			x.Reservation += "," + w.books[w.r.IntN(len(w.books))].Name
		}
	}
	if w.r.IntN(3) == 0 && !(w.apart && x.Reservation != "") {
		x.Licenses = coretest.Licenses([]string{"l", "l:2", "m", "l:3,m", "l:2|m:2"}[w.r.IntN(5)])
	}
	if w.r.IntN(3) == 0 && s.TimeLimit != core.Forever {
		x.TimeMin = max(1, s.TimeLimit/core.Seconds(1+w.r.IntN(4)))
	}
	if s.TimeLimit == core.Forever && x.Reservation != "" {
		x.Fill = w.r.IntN(2) == 0
	}
	if w.r.IntN(8) == 0 && !w.apart { // nobody here removes those that miss it
		x.Deadline = w.now + core.Time(w.r.IntN(500))*1e6
	}
	if w.r.IntN(8) == 0 {
		x.Signal = &core.WarnSignal{Reserve: true}
	}
	s.Extra = x
}

// reserve makes a reservation of some nodes, cores or licenses, soon, for some.
func (w *timeWorld) reserve() {
	w.made++
	start := w.now + core.Time(w.r.IntN(300))*1e6
	r := &core.AdvanceReservation{
		Name: fmt.Sprint("r", w.made), ID: int64(w.made), Created: w.now, Start: start, End: start +
			core.Time(20+w.r.IntN(300))*1e6,
	}
	for _, n := range w.nodes {
		taken := w.apart && slices.ContainsFunc(w.books,
			func(r *core.AdvanceReservation) bool { return w.cfg.Hosts(r.Nodes)[n.Name] })
		if w.r.IntN(3) == 0 && !taken {
			r.Nodes += string(n.Name)
		}
	}
	if r.Nodes != "" && w.r.IntN(4) == 0 && !w.apart {
		r.CoreCount = int32(1 + w.r.IntN(2*len(r.Nodes)))
	}
	if r.Nodes == "" || w.r.IntN(4) == 0 {
		r.Licenses = []core.License{{Name: "l", Total: 1 + w.r.Int64N(3)}}
	}
	for _, f := range []core.ReserveFlag{
		core.ReserveHourly, core.ReserveFlex, core.ReserveMagnetic, core.ReserveMaint, core.ReserveOverlap,
		core.ReserveTimeFloat,
	} {
		if w.r.IntN(6) == 0 && !(w.apart && f&(core.ReserveMagnetic|core.ReserveMaint|core.ReserveOverlap) != 0) {
			r.Flags |= f
		}
	}
	if w.r.IntN(4) == 0 {
		r.MaxDelay = core.Seconds(10 + w.r.IntN(50))
	}
	switch w.r.IntN(4) {
	case 0:
		r.Users = []core.UserName{"ann"}
	case 1:
		r.Users = []core.UserName{"-ann"}
	}
	w.books = append(w.books, r)
	w.p.Apply(Changes{Reservations: []*core.AdvanceReservation{r}})
}

func (w *timeWorld) drop() {
	if len(w.books) > 0 {
		i := w.r.IntN(len(w.books))
		name := w.books[i].Name
		w.books = slices.Delete(slices.Clone(w.books), i, i+1)
		w.p.Apply(Changes{GoneReservations: []string{name}})
	}
}

// during lists the occurrences of a reservation that somebody who is there until end meets.
func (w *timeWorld) during(r *core.AdvanceReservation, end core.Time) (list []advance.Window) {
	if r.Flags&core.ReserveTimeFloat != 0 {
		if from := w.now + r.Start - r.Created; alloc.Overlaps(from, end) {
			list = append(list, advance.Window{Start: from, End: alloc.Never})
		}
		return list
	}
	from, to := r.Current(w.now, nil)
	for again := to > w.now; again && alloc.Overlaps(from, end) && len(list) < 100; from, to, again = r.After(from, to,
		nil) {
		list = append(list, advance.Window{Start: from, End: to})
	}
	return list
}

// lawful holds a start against the reservations and licenses there are, without any of the planner's own means.
func (w *timeWorld) lawful(j *core.Job, al *core.Alloc) {
	end := alloc.AddTime(w.now, alloc.TimeLimit(j.Spec))
	own := slices.IndexFunc(w.books, func(r *core.AdvanceReservation) bool { return r.Name == al.Inside() })
	mayOverlap := false
	if al.Inside() != "" {
		r := w.books[own]
		mayOverlap = r.Flags&(core.ReserveMaint|core.ReserveOverlap) != 0
		if !r.Admits(j.Spec.User, func(core.ProjectName) bool { return false }) {
			w.t.Fatalf("job %d of %s runs in %s, which is for %v", j.ID, j.Spec.User, r.Name, r.Users)
		}
		if r.Flags&core.ReserveFlex == 0 {
			now := w.during(r, end)
			if len(now) == 0 || now[0].Start > w.now || end > now[0].End {
				w.t.Fatalf("job %d runs from %d to %d in %s, which is %v", j.ID, w.now, end, r.Name, now)
			}
			for i := range al.Nodes {
				if r.Nodes != "" && !w.cfg.Hosts(r.Nodes)[al.Nodes[i].Node] {
					w.t.Fatalf("job %d runs in %s, which has %s, on %s", j.ID, r.Name, r.Nodes, al.Nodes[i].Node)
				}
			}
		}
	} else if j.Spec.More().Reservation != "" {
		w.t.Fatalf("job %d asks for %s and runs outside", j.ID, j.Spec.More().Reservation)
	}
	for i, r := range w.books {
		if i == own || mayOverlap {
			continue
		}
		for _, win := range w.during(r, end) {
			slack := core.Time(0)
			if x := j.Spec.More(); x.Signal != nil && x.Signal.Reserve {
				slack = core.Time(r.MaxDelay) * 1e6
			}
			for k := range al.Nodes {
				if r.CoreCount == 0 && w.cfg.Hosts(r.Nodes)[al.Nodes[k].Node] && alloc.Overlaps(win.Start+slack, end) &&
					win.Start+slack < win.End {
					w.t.Fatalf("job %d runs until %d on %s, which %s has from %d on", j.ID, end, al.Nodes[k].Node, r.Name, win.Start)
				}
			}
		}
	}
	w.counted(j, al, end, mayOverlap)
}

// counted adds up, at every moment at which a reservation begins, what it has and what others do.
func (w *timeWorld) counted(j *core.Job, al *core.Alloc, end core.Time, mayOverlap bool) {
	there := func(t core.Time, do func(*core.Job, *core.Alloc)) {
		do(j, al)
		for _, o := range w.jobs {
			if o.State == core.Running && o.ID != j.ID && max(alloc.LatestEnd(o), w.now+alloc.OverdueDelay) > t {
				do(o, o.Alloc)
			}
		}
	}
	moments := []core.Time{w.now}
	for _, r := range w.books {
		for _, win := range w.during(r, end) {
			moments = append(moments, max(w.now, win.Start))
		}
	}
	for _, t := range moments {
		for _, l := range lawLicences {
			used, inside := int64(0), map[string]int64{}
			there(t, func(_ *core.Job, al *core.Alloc) {
				used += alloc.LicenseCount(al.Licenses(), l.Name)
				inside[al.Inside()] += alloc.LicenseCount(al.Licenses(), l.Name)
			})
			if t == w.now && used > l.Total {
				w.t.Fatalf("with job %d, %d of license %s are out and there are %d", j.ID, used, l.Name, l.Total)
			}
			for _, r := range w.books {
				if r.Name != al.Inside() && slices.ContainsFunc(w.during(r, alloc.Never),
					func(win advance.Window) bool { return win.Start <= t && t < win.End }) {
					used += max(0, alloc.LicenseCount(r.Licenses, l.Name)-inside[r.Name])
				}
			}
			if alloc.LicenseCount(al.Licenses(), l.Name) > 0 && used > l.Total {
				w.t.Fatalf("with job %d, %d of license %s are out or set aside at %d and there are %d", j.ID, used, l.Name, t,
					l.Total)
			}
		}
		for i := range al.Nodes {
			w.countedCores(j, &al.Nodes[i], al.Inside(), t, mayOverlap, there)
		}
	}
}

func (w *timeWorld) countedCores(j *core.Job, na *core.NodeAlloc, own string, t core.Time, mayOverlap bool,
	there func(core.Time, func(*core.Job, *core.Alloc)),
) {
	used, inside := int64(0), map[string]int64{}
	there(t, func(_ *core.Job, al *core.Alloc) {
		for k := range al.Nodes {
			if al.Nodes[k].Node == na.Node {
				used += int64(al.Nodes[k].CPUs)
				inside[al.Inside()] += int64(al.Nodes[k].CPUs)
			}
		}
	})
	set := false
	for _, r := range w.books {
		if r.CoreCount == 0 || !w.cfg.Hosts(r.Nodes)[na.Node] || !slices.ContainsFunc(w.during(r, alloc.Never),
			func(win advance.Window) bool { return win.Start <= t && t < win.End }) {
			continue
		}
		cpus := int64((&advance.Reservation{AdvanceReservation: r}).CoresOn(slices.Index([]byte(r.Nodes), na.Node[0]),
			len(r.Nodes)))
		switch {
		case r.Name == own && r.Flags&core.ReserveFlex == 0:
			if inside[own] > cpus {
				w.t.Fatalf("job %d in %s has %s more than the %d CPUs that are set aside", j.ID, own, na.Node, cpus)
			}
		case r.Name != own && !mayOverlap:
			used += max(0, cpus-inside[r.Name])
			set = set || cpus > 0
		}
	}
	n := w.nodes[slices.IndexFunc(w.nodes, func(n *core.Node) bool { return n.Name == na.Node })]
	if set && used > int64(n.Hardware.CPUs) {
		w.t.Fatalf("with job %d, %d CPUs of %s are used or set aside at %d and there are %d", j.ID, used, na.Node, t,
			n.Hardware.CPUs)
	}
}

// on goes to the next moment at which something ends or the plan wants to be looked at again.
func (w *timeWorld) on(plan *Plan) bool {
	next := core.Time(0)
	for _, t := range w.endings {
		if next == 0 || t < next {
			next = t
		}
	}
	if plan.WakeAt != 0 && plan.WakeAt <= w.now {
		w.t.Fatalf("at %d the plan is to be looked at again at %d", w.now, plan.WakeAt)
	}
	if plan.WakeAt != 0 && (next == 0 || plan.WakeAt < next) {
		w.now = plan.WakeAt
		return true
	}
	w.end()
	return next != 0
}

// TestReservationsAndLicences lets jobs and advance reservations come and go: nothing is given twice, nobody is where
// others have reserved, and a planner kept up to date plans as one built cold.
func TestReservationsAndLicences(t *testing.T) {
	t.Parallel()
	for _, rule := range core.Rules {
		t.Run(rule.String(), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) {
				w := newTimeWorld(rt, rule, rapid.Uint64().Draw(rt, "seed"), 3)
				plan := &Plan{}
				for range 30 {
					switch w.r.IntN(12) {
					case 0:
						w.reserve()
					case 1:
						w.drop()
					case 2, 3, 4:
						w.on(plan)
					default:
						w.submit()
					}
					plan = w.pass()
				}
			})
		})
	}
}

// TestPromisesAmongReservations: with no new arrivals, what was promised holds, whatever is reserved or licensed.
func TestPromisesAmongReservations(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := newTimeWorld(rt, core.RuleEASY, rapid.Uint64().Draw(rt, "seed"), 1)
		w.apart = true
		for range w.r.IntN(4) {
			w.reserve()
		}
		for range 5 + w.r.IntN(25) {
			w.submit()
		}
		promised := map[core.JobID]core.Time{}
		for range 100 {
			plan := w.pass()
			for _, s := range plan.Starts {
				if at, ok := promised[s.Job]; ok && w.now > at {
					rt.Fatalf("job %d starts at %d and was promised %d", s.Job, w.now, at)
				}
			}
			for id := range plan.expected {
				if at, _, ok := plan.Expected(id); ok {
					if was, had := promised[id]; had && at > was {
						rt.Fatalf("job %d was promised %d and is now %d", id, was, at)
					}
					promised[id] = at
				}
			}
			if !w.on(plan) {
				break
			}
		}
	})
}
